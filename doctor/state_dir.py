"""Where the doctor keeps what it did, and files written so that a kill or a full disk leaves the old or the new one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``DOCTOR_STATE_DIR``, else XDG's state folder: ``~/.local/state/rundoctor``."""
    given = environ.get("DOCTOR_STATE_DIR")
    if given:
        return Path(given)
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return Path(home) / "rundoctor"


def config_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``DOCTOR_CONFIG_DIR``, else XDG's config folder: ``~/.config/rundoctor``."""
    given = environ.get("DOCTOR_CONFIG_DIR")
    if given:
        return Path(given)
    home = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return Path(home) / "rundoctor"


def sync_folder(folder: Path) -> None:
    """Have the kernel write the folder's names to disk; a file system that cannot is left alone."""
    with contextlib.suppress(OSError):  # some network file systems refuse it, and nothing can be done
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_whole(
    path: Path, content: bytes, mode: int, part: str = ".part", mtime_ns: int | None = None
) -> None:
    """Write ``content`` beside ``path`` and put it in place in one step, both on disk when this returns.

    Raises:
        OSError: the disk is full or may not be written; ``path`` is what it was.
    """
    beside = path.with_name(f".{path.name}{part}")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if mtime_ns is not None:
                os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105 - its atomicity is the point
    except OSError:
        with contextlib.suppress(OSError):  # it may never have been made
            beside.unlink()
        raise
    sync_folder(path.parent)
