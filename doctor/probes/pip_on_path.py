"""Which Python the command ``pip`` of this session installs into: by the first line of the script. It is not run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.model import PipCommand
from doctor.probes.bounded import is_file, is_there, read_bytes
from doctor.probes.interpreter import read_layout
from doctor.probes.on_path import pyenv_command
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context
    from doctor.probes.target import Target

# #!/root/miniconda3/bin/python3.10
_FIRST_LINE = re.compile(rb"#! ?(/[^\r\n]*?/(?:python|pypy)[\w.]*)[ \r]*\n")
# #!/bin/sh
# '''exec' "/a path/with blanks/bin/python" "$0" "$@"
_LONG_PATH = re.compile(rb"#! ?/bin/sh\n'''exec' \"?(/[^\"\r\n]*?/(?:python|pypy)[\w.]*)\"? \"\$0\" \"\$@\"")


def pip_command(context: Context, target: Target) -> PipCommand | None:
    """Return the ``pip`` on PATH and whose it is; None where there is none, or its script does not tell."""
    for name in ("pip", "pip3"):
        for folder in context.environ.get("PATH", "").split(":"):
            path = Path(context.cwd, folder, name)
            if is_file(path) and os.access(path, os.X_OK):
                return _described(path, context, target)
    return None


def _described(path: Path, context: Context, target: Target) -> PipCommand | None:
    real = pyenv_command(path, context) or path
    python = interpreter_of(real)
    if python is None or not is_there(python):
        return None
    return PipCommand(
        path=printable(str(path)), python=printable(str(python)), is_of_judged=_is_of(python, target)
    )


def interpreter_of(script: Path) -> Path | None:
    """Return the interpreter that a script of pip's making starts."""
    try:
        head = read_bytes(script, 4096)
    except OSError:
        return None
    match = _FIRST_LINE.match(head) or _LONG_PATH.match(head)
    return Path(os.fsdecode(match[1])) if match else None


def _is_of(python: Path, target: Target) -> bool:
    """Whether two interpreters install into one place: the same folder, or one installation under two names."""
    if target.executable is None or target.prefix is None:
        return False
    if os.path.realpath(python.parent) == os.path.realpath(target.executable.parent):
        return True
    return os.path.realpath(read_layout(python).prefix) == os.path.realpath(target.prefix)
