"""Where an export goes: a folder that is whole or not there, and that replaces nothing but an earlier export of the same model."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from runner.deploy.records import REPORT, Exported
from runner.durable import MANIFEST, Manifest, publish_folder, seal_folder, sync_path
from runner.inputs import InputError, file_sha256
from runner.text import t

CARD = "README.md"
"""The one file of a finished model that a person may change."""
UNFINISHED: set[Path] = set()
"""Files and folders that are being made."""
_MARK = ".making-"


def check_target(target: Path, source: str, run: str) -> None:
    """Refuse a folder that holds anything but an export of ``source``, or of the run that it is the end of.

    Raises:
        InputError: what it holds is not ours to replace.
    """
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir():
        raise InputError(t("{path} is not a folder; name another with --output", path=str(target)))
    try:
        earlier = msgspec.json.decode((target / REPORT).read_bytes(), type=Exported)
        own = {*msgspec.json.decode((target / MANIFEST).read_bytes(), type=Manifest).files, MANIFEST}
    except (OSError, msgspec.MsgspecError):
        raise InputError(t("{path} holds something that is no export; name another folder with --output", path=str(target))) from None  # fmt: skip
    if earlier.source_key != path_key(source) and not (run and (earlier.run_key == path_key(run) or target.parent == Path(run))):  # fmt: skip
        raise InputError(t("{path} is an export of another model ({source}); name another folder with --output",
                           path=str(target), source=earlier.source))  # fmt: skip
    foreign = sorted(
        {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()} - own
    )
    if foreign:
        raise InputError(t("{path} also holds {names}, which would be lost; move them, or name another folder with --output",
                           path=str(target), names=", ".join(foreign[:5])))  # fmt: skip


def path_key(path: str) -> str:
    """Return what tells a path from another and does not say where it lies; empty for none."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16] if path else ""


def short_name(path: Path) -> str:
    """Return the last two names of a path: ``run-7/final``."""
    return "/".join(path.parts[-2:]).lstrip("/")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside ``target`` that takes its name at the end; after an error, a signal or a kill nothing has it."""
    with _unfinished(target) as making:
        making.mkdir(parents=True)
        yield making
        seal_folder(making)
        publish_folder(making, target)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give the path of a file beside ``target`` that takes its name at the end; otherwise as :func:`new_folder`."""
    with _unfinished(target) as making:
        yield making
        sync_path(making)
        making.replace(target)
        sync_path(target.parent)


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Give the name that ``target`` has until it is whole; what has it is removed after any trouble."""
    _clear_left(target)
    making = target.with_name(f".{target.name}{_MARK}{socket.gethostname()}-{os.getpid()}")
    UNFINISHED.add(making)
    try:
        yield making
    except BaseException:
        discard(making)
        raise
    finally:
        UNFINISHED.discard(making)


def discard(path: Path) -> None:
    """Remove a file or a folder that may not be there."""
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _clear_left(target: Path) -> None:
    """Remove what a killed export of this machine left behind."""
    start = f".{target.name}{_MARK}{socket.gethostname()}-"
    for path in target.parent.glob(f".{target.name}{_MARK}*"):
        number = path.name.removeprefix(start)
        if number.isdigit() and not Path("/proc", number).exists():
            discard(path)
    shutil.rmtree(target.with_name(f".discarded-{target.name}"), ignore_errors=True)


def weights_sha256(folder: Path) -> str:
    """Return one hash over a model's weights: of the file, or of the hashes of several; empty: there are none."""
    found = sorted({*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")} - {folder / "optimizer.safetensors"})  # fmt: skip
    hashes = [file_sha256(path) for path in found]
    return (
        hashes[0]
        if len(hashes) == 1
        else hashlib.sha256("".join(hashes).encode()).hexdigest()
        if hashes
        else ""
    )
