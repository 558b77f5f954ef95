"""Where an error was raised: the last frame of a text's last traceback, and the last of the person's own code before it. Pure."""

from __future__ import annotations

import re

from doctor.model import Record

# File "/workspace/train.py", line 45, in main   |   File ~/venv/lib/python3.11/site-packages/peft/peft_model.py:581, in PeftModel.load_adapter(...)
# │ /workspace/train.py:353 in <module>   |   Cell In[12], line 1
_FRAME = re.compile(
    r"File \"(?P<python>[^\"\n]+)\", line (?P<python_line>\d+)"
    r"|File (?P<ipython>[^\s\"]+\.py):(?P<ipython_line>\d+), in "
    r"|[│|] (?P<rich>[~/.\w][^\n│|]*?\.py):(?P<rich_line>\d+) in "
    r"|(?P<cell>Cell In ?\[\d+\]), line (?P<cell_line>\d+)"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\](?P<inside>(?P<library>\w+)[^\n]*)")
_NOBODYS = re.compile(r"^<|[/\\]lib[/\\]python\d|[/\\]s?bin[/\\][^/\\]+$|^Lib[/\\]")
"""Python's own files, what has no file, and the commands that start a run."""
TRACEBACK = "Traceback (most recent call last)"


class Raised(Record, frozen=True):
    place: str
    """``peft/peft_model.py:581``, or the path as the traceback has it."""
    library: str = ""
    """The installed package that the place is in; empty: the person's own code."""
    own: str = ""
    """The last line of the person's own code on the way there; empty where there is none, or where it is the place."""


def raised_in(text: str) -> Raised | None:
    """Return where the last traceback of ``text`` ends; None where it has none, or only Python's own frames."""
    begin = text.rfind(TRACEBACK)
    if begin < 0:
        return None
    frames = [_place(frame) for frame in _FRAME.finditer(text, begin)]
    frames = [(path, line) for path, line in frames if _INSTALLED.search(path) or not _NOBODYS.search(path)]
    if not frames:
        return None
    path, line = frames[-1]
    inside = _INSTALLED.search(path)
    if inside is None:
        return Raised(place=f"{path}:{line}")
    own = [f"{path}:{line}" for path, line in frames if not _INSTALLED.search(path)]
    return Raised(place=f"{inside['inside']}:{line}", library=inside["library"], own=own[-1] if own else "")


def _place(frame: re.Match[str]) -> tuple[str, str]:
    kind = next(name for name in ("python", "ipython", "rich", "cell") if frame[name])
    return frame[kind], frame[f"{kind}_line"]
