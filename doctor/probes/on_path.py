"""What ``python`` runs in this session: executables on PATH, pyenv's shims and wrapper scripts looked
through."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.probes.bounded import is_file, is_there, names_in, read_bytes, text_or_empty
from doctor.probes.interpreter import ask_child

if TYPE_CHECKING:
    from doctor.probes import Context


def on_path(context: Context) -> Iterator[Path]:
    """Yield what ``python``, then ``python3``, runs: each executable of that name on PATH, shims looked
    through."""
    for name in ("python", "python3"):
        for folder in context.environ.get("PATH", "").split(":"):
            path = Path(context.cwd, folder, name)  # an empty entry is the working directory
            if (
                is_file(path)
                and os.access(path, os.X_OK)
                and (real := through_shim(path, context)) is not None
            ):
                yield real


# exec "/root/.pyenv/libexec/pyenv" exec "$program" "$@"; not a wrapper that calls /root/.pyenv/versions/3.10.13/bin/python
_IS_SHIM = re.compile(rb"pyenv[\"']? exec ")


def through_shim(path: Path, context: Context) -> Path | None:
    """Return the interpreter behind pyenv's shim or another wrapper script; None where it leads nowhere."""
    try:
        head = read_bytes(path, 4096)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return path
    if _IS_SHIM.search(head):
        return _pyenv_command(path, context)
    answer = ask_child(path)
    return answer[1] / "bin" / "python3" if answer else None


def pyenv_command(path: Path, context: Context) -> Path | None:
    """Return what a shim of pyenv's (``pip``) runs; None where ``path`` is no shim, or leads nowhere."""
    try:
        is_shim = b"pyenv" in read_bytes(path, 4096).partition(b"\n")[2] and path.parent.name == "shims"
    except OSError:
        return None
    return _pyenv_command(path, context) if is_shim else None


def _pyenv_command(shim: Path, context: Context) -> Path | None:
    root = Path(context.environ.get("PYENV_ROOT") or shim.parent.parent)
    for version in pyenv_versions(context.environ, context.cwd, root):
        matching = [
            name for name in names_in(root / "versions") if name == version or name.startswith(version + ".")
        ]
        for name in sorted(
            matching, key=lambda text: [int(part) for part in re.findall(r"\d+", text)], reverse=True
        ):
            if is_there(path := root / "versions" / name / "bin" / shim.name):
                return path
    return None


def pyenv_versions(environ: Mapping[str, str], cwd: Path, root: Path) -> list[str]:
    """Return the versions that pyenv would try: PYENV_VERSION, ``.python-version`` from here upwards, its
    global file."""
    if environ.get("PYENV_VERSION"):
        return environ["PYENV_VERSION"].split(":")
    files = [*(folder / ".python-version" for folder in (cwd, *cwd.parents)), root / "version"]
    texts = (text_or_empty(file, 4096) for file in files)
    return next((text.split() for text in texts if text.strip()), [])
