"""Numbers out of a log, as the ``incident`` section that checks judge: an out-of-memory's own figures, exit codes, lines."""

from __future__ import annotations

from doctor.explain.match import last_match
from doctor.model import Incident

_UNITS = {"B": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = r"(?P<{name}>[\d.]+) (?P<{name}_unit>bytes|B|KiB|MiB|GiB|TiB)"


def _size(name: str) -> str:
    return _SIZE.replace("{name}", name)


# CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.19 GiB is free.
_TRIED = r"[Tt]ried to allocate " + _size("tried")
# Of the allocated memory 20.12 GiB is allocated by PyTorch, and 1.35 GiB is reserved by PyTorch but unallocated.
_ALLOCATED = _size("allocated") + r" is allocated by PyTorch"
_UNALLOCATED = _size("rest") + r" is reserved by PyTorch but unallocated"
# (GPU 0; 7.79 GiB total capacity; 5.71 GiB already allocated; 5.31 MiB free; 6.00 GiB reserved in total by PyTorch)
_OLD_ALLOCATED = _size("allocated") + r" already allocated"
_OLD_RESERVED = _size("reserved") + r" reserved in total by PyTorch"
# Process finished with exit code 137   |   exitcode  : -9 (pid: 4242)   |   Exit Code: 1   |   EXIT CODE: 1
_EXIT = (
    r"exit(?:ed with)?[ _]?(?:[Cc]ode|[Ss]tatus)[ \t]*[:=]?[ \t]*(?P<code>-?\d+)"
    r"|Exit(?:ed with)?[ _]?(?:[Cc]ode|[Ss]tatus)[ \t]*[:=]?[ \t]*(?P<code2>-?\d+)"
    r"|EXIT[ _]?(?:CODE|STATUS)[ \t]*[:=]?[ \t]*(?P<code3>-?\d+)"
)


def incident_of(text: str) -> Incident:
    """Return what ``text`` says in numbers; a figure that is not there stays None."""
    allocated = _bytes(_ALLOCATED, "allocated", text) or _bytes(_OLD_ALLOCATED, "allocated", text)
    rest = _bytes(_UNALLOCATED, "rest", text)
    reserved = _bytes(_OLD_RESERVED, "reserved", text)
    if reserved is None and allocated is not None and rest is not None:
        reserved = allocated + rest
    ended = last_match(_EXIT, text)
    return Incident(
        log_lines=tuple(line[:500] for line in text.splitlines()[-50:]),
        exit_code=int(ended[ended.lastgroup or 0]) if ended else None,
        torch_allocated_bytes=allocated,
        torch_reserved_bytes=reserved,
        oom_tried_bytes=_bytes(_TRIED, "tried", text),
    )


def _bytes(regex: str, name: str, text: str) -> int | None:
    hit = last_match(regex, text)
    return int(float(hit[name]) * _UNITS[hit[f"{name}_unit"]]) if hit else None
