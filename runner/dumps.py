"""Where a rank stood, from the stacks that it left in ``RUN_DIR/stacks/rank-R.txt``. Pure.

The file holds what :mod:`faulthandler` writes (the innermost frame first) and, of a rank that left by itself, Python's own
traceback (the innermost frame last).
"""

from __future__ import annotations

import re

from runner.phases import Place, is_exchange, own_place

# Current thread 0x00007f3c (most recent call first):      Thread 0x00007f3c [python] (most recent call first):
_DUMP = re.compile(r"^(Current thread|Thread) 0x\w+.*\(most recent call first\):$", re.MULTILINE)
# File "/home/me/train.py", line 12 in forward      File "/home/me/train.py", line 12, in forward
_FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+),? in (\S+)$', re.MULTILINE)
# /root/venv/lib/python3.11/site-packages/torch/nn/modules/module.py
_SITE = re.compile(r"^.*/(?:site|dist)-packages/")
# RUN/code/runner/passes.py
_OURS = re.compile(r"^.*/code/(?=runner/)")


def frames_of_dump(text: str) -> list[Place]:
    """Return the main thread's newest stack in a rank's file, outermost first, libraries' files from their own name on."""
    # The main thread takes the signals, and is dumped last.
    heads = list(_DUMP.finditer(text))
    if not heads:
        return [_place(match) for match in _FRAME.finditer(text)]
    body = text[heads[-1].end() :]
    return [_place(match) for match in _FRAME.finditer(body)][::-1]


def _place(match: re.Match[str]) -> Place:
    file = _SITE.sub("", match[1])
    return match[3], file, int(match[2])


def where_in(text: str) -> str:
    """Return ``file:line in function`` of where a rank stood: its user's own code where that is on the stack, else the
    innermost frame; empty: it left no stack."""
    frames = frames_of_dump(text)
    if not frames:
        return ""
    function, file, line = own_place(frames) or frames[-1]
    return f"{_OURS.sub('', file)}:{line} in {function}"


def waits_for_others(text: str) -> bool:
    """Return whether the main thread stood in an exchange with other ranks."""
    return is_exchange(frames_of_dump(text))
