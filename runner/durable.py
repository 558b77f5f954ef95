"""Files that are whole or not there: written beside, flushed to the disk, renamed. No torch."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from runner.inputs import file_sha256

MANIFEST = "manifest.json"


class FileFacts(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a folder held when it was finished."""

    files: dict[str, FileFacts]
    approximate: list[str] = []
    """What was different when the run that wrote it was continued: it is not exact. Empty: it is, or says nothing."""


def is_full(error: BaseException) -> bool:
    """Does an error say that the disk is full, or a quota used up? What is written in Rust says it in words alone.

    SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)
    """
    numbers = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in numbers
    return any(f"(os error {number})" in str(error) for number in numbers)


def sync_path(path: Path) -> None:
    """fsync a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: a reader sees the old content or the new, never a part."""
    making = path.with_name(f".{path.name}.making")
    with open(making, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    making.replace(path)
    sync_path(path.parent)


def seal_folder(folder: Path, approximate: Sequence[str] = ()) -> int:
    """Flush every file of ``folder``, write its manifest, flush that too; return the bytes."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST):
        sync_path(path)
        files[path.relative_to(folder).as_posix()] = FileFacts(path.stat().st_size, file_sha256(path))
    manifest = Manifest(files, list(approximate))
    write_durably(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    for inner in {path.parent for path in folder.rglob("*")}:
        sync_path(inner)
    return sum(file.size for file in files.values())


def publish_folder(making: Path, target: Path) -> None:
    """Give a sealed folder its name; what had the name before is put aside and then removed."""
    if target.exists():
        discard_folder(target)
    making.rename(target)
    sync_path(target.parent)


def publish_files(making: Path, target: Path) -> None:
    """Give a folder of files that nobody else has a manifest for its name, once they are on the disk."""
    for path in making.iterdir():
        sync_path(path)
    sync_path(making)
    making.rename(target)
    sync_path(target.parent)


def discard_folder(folder: Path) -> None:
    """Remove a folder; killed half-way, what is left does not carry its name."""
    aside = folder.with_name(f".discarded-{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def what_is_wrong(folder: Path, may_differ: Collection[str] = ()) -> str:
    """Return why a sealed folder cannot be believed, or an empty string when it is as it was written.

    Files named in ``may_differ`` are a person's to change.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return f"{MANIFEST} is missing"
    except (OSError, msgspec.MsgspecError) as error:
        return f"{MANIFEST}: {error}"
    for name, facts in manifest.files.items():
        if name in may_differ:
            continue
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != facts.size:
            return f"{name} has {path.stat().st_size} bytes, not {facts.size}"
        if file_sha256(path) != facts.sha256:
            return f"{name} was changed (its SHA-256 differs)"
    return "" if manifest.files else f"{MANIFEST} names no file"
