"""The script that a command runs, kept with the run: between two runs it is what people change."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from doctor.redact_secrets import without_secrets
from runner.rundir import RunDir

LARGEST_BYTES = 1 << 20
DIFF_LINES = 80


def script_of(argv: Sequence[str], folder: Path) -> Path | None:
    """Return the file that a command's first word with such a name means; None: it runs none that shows (``-m``, ``-c``)."""
    # torchrun --nproc_per_node 2 train.py --lr 1e-4 -> train.py
    names = [word for word in argv if word.endswith((".py", ".sh")) and not word.startswith("-")]
    paths = [folder / name for name in names if os.path.isfile(folder / name)]  # noqa: PTH113 - False for a word of any length
    return paths[0] if paths else None


def keep_script(run: RunDir, argv: Sequence[str], folder: Path) -> None:
    """Copy the command's script into the run directory, readable by its owner alone. Raises OSError."""
    script = script_of(argv, folder)
    if script is None or script.stat().st_size > LARGEST_BYTES:
        return
    run.script.mkdir(exist_ok=True)
    shutil.copyfile(script, run.script / script.name)
    (run.script / script.name).chmod(0o600)


def kept_script(run: RunDir) -> tuple[str, ...] | None:
    """Return the lines of the script that was kept; None: none was, or it cannot be read."""
    try:
        paths = sorted(path for path in run.script.iterdir() if path.is_file())
        return tuple(paths[0].read_text("utf-8", "replace").splitlines()) if paths else None
    except OSError:
        return None


def changed_lines(one: Sequence[str] | None, other: Sequence[str] | None) -> tuple[str, ...]:
    """Return what differs between two scripts as lines that begin with ``-``, ``+`` or ``@@``; keys in them are hidden."""
    if one is None or other is None:
        return ()
    lines = list(difflib.unified_diff(one, other, n=0, lineterm=""))[2:]
    shown = [without_secrets(line) for line in lines[:DIFF_LINES]]
    return (*shown, *(["..."] if len(lines) > DIFF_LINES else []))
