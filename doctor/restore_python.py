"""Which interpreter a restored environment is made with, and which installer: found here, never guessed from the snapshot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from doctor.model import IndexLine, Text, t
from doctor.probes import Context
from doctor.probes.environments import find_environments
from doctor.probes.index_config import read_indexes
from doctor.probes.interpreter import read_layout
from doctor.probes.on_path import through_shim
from doctor.probes.target import BadPython, resolve_given
from doctor.restore_commands import our_uv
from doctor.snapshots.restore_plan import RestoreError

_UV_LIMIT_S = 10.0


def find_python(minor: str, given: str | None, context: Context) -> Path:
    """Return an interpreter of ``minor``: the one given, else an installation, else another environment's.

    Raises:
        RestoreError: there is none, or the given one is of another minor.
    """
    if given:
        return _given(minor, given, context)
    named = shutil.which(f"python{minor}", path=context.environ.get("PATH"))
    real = through_shim(Path(named), context) if named else None
    if real and read_layout(real).minor == minor:
        return real
    found, _ = find_environments(context)
    fitting = [
        one.target
        for one in found
        if one.target.minor == minor and not one.is_tool and one.target.problem is None
    ]
    fitting.sort(key=lambda target: target.kind == "venv")
    for target in fitting:
        if target.executable is not None:
            return target.executable
    if python := _uv_has(minor):
        return python
    raise RestoreError(
        t(
            "there is no Python {minor} here: `uv python install {minor}` or `conda create -p /path/py{minor} python={minor}` brings one, then name it with --python",
            minor=minor,
        )
    )


def _given(minor: str, given: str, context: Context) -> Path:
    try:
        path = resolve_given(given, context)
    except BadPython as error:
        raise RestoreError(error.text) from None
    there = read_layout(path).minor
    if there != minor:
        raise RestoreError(t("{python} is Python {there}, the snapshot is of Python {minor}", python=given, there=there or "?", minor=minor))  # fmt: skip
    return path


def _uv_has(minor: str) -> Path | None:
    """Return a Python that uv keeps; nothing is downloaded."""
    uv = our_uv()
    if uv is None:
        return None
    try:
        done = subprocess.run(
            [uv, "python", "find", "--no-python-downloads", "--no-project", minor], capture_output=True, text=True,
            timeout=_UV_LIMIT_S, stdin=subprocess.DEVNULL, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    path = Path(done.stdout.strip())
    return path if done.stdout.strip() and read_layout(path).minor == minor else None


def choose_uv(context: Context) -> str | None:
    """Return uv where it asks the same indexes as pip would: pip's own configuration means nothing to uv."""
    uv = our_uv()
    unread: dict[str, Text] = {}
    lines = read_indexes(context, None, unread)
    return uv if uv and not any(_is_pips(line) for line in lines) else None


def _is_pips(line: IndexLine) -> bool:
    return line.source.startswith("PIP_") or line.source.endswith("pip.conf")
