"""Token ids kept between runs, by what decides them: a second run of the same data does not tokenise again.

A run's own files are the originals: an entry is linked or copied from them once they are complete, and linked or copied
into another run after its hashes were compared. So a damaged entry is noticed, and a full disk here stops no run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

import msgspec

from runner.data import PartFacts
from runner.inputs import file_sha256
from runner.text import Text, t

LAYOUT = 1
"""Of the flat files; another one makes another key."""
WORTH_KEEPING_BYTES = 4 << 20
"""Less is tokenised in a second or two; only a folder that was asked for by name keeps it."""
LEAST_FREE_SHARE = 0.1
LEAST_FREE_BYTES = 2 << 30
"""What an entry must leave free on its disk."""
LARGEST_SHARE = 0.1
"""Of the disk, for all entries together: those unused for longest go first."""
OFF = ("off", "0", "none")


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return ``DOCTOR_CACHE``, else XDG's: ``~/.cache/rundoctor``; None where it is switched off."""
    given = environ.get("DOCTOR_CACHE", "")
    if given.lower() in OFF:
        return None
    if given:
        return Path(given) / "tokens"
    home = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(home) / "rundoctor" / "tokens"


class TokenCache:
    """The entries under one folder; None: there is no cache. Two runs may use it at once."""

    def __init__(self, folder: Path | None, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = folder
        self._keeps_small = bool(environ.get("DOCTOR_CACHE"))
        self.said: list[tuple[str, Text]] = []
        """``(level, sentence)`` of what was taken, or was found damaged."""

    def take(self, key: str, target: Path) -> dict[str, PartFacts] | None:
        """Put the files of ``key`` into a new folder ``target``; None: there is no whole entry."""
        entry = self._folder / key if self._folder is not None else None
        if entry is None or not (entry / "parts.json").is_file():
            return None
        try:
            parts = msgspec.json.decode((entry / "parts.json").read_bytes(), type=dict[str, PartFacts])
            damaged = _damaged_file(entry, parts)
            if damaged is None:
                shutil.rmtree(target, ignore_errors=True)
                target.mkdir()
                for facts in parts.values():
                    for name in facts.sha256:
                        _link_or_copy(entry / name, target / name)
                os.utime(entry / "parts.json")
        except (OSError, msgspec.MsgspecError) as error:
            damaged = str(error)
        if damaged is not None:
            self._drop(entry)
            self.said.append(("warn", t("the cached token ids in {path} are damaged ({why}): made anew", path=str(entry), why=damaged)))  # fmt: skip
            return None
        self.said.append(("info", t("token ids taken from the cache {path}: the same rows, tokenizer and settings", path=str(entry))))  # fmt: skip
        return parts

    def keep(self, key: str, parts: dict[str, PartFacts], source: Path) -> Text | None:
        """Make an entry of a run's finished files; return why there is none, where that is worth saying."""
        names = [name for facts in parts.values() for name in facts.sha256]
        size = sum((source / name).stat().st_size for name in names)
        if self._folder is None or (size < WORTH_KEEPING_BYTES and not self._keeps_small):
            return None
        making = self._folder / f"{key}.{uuid.uuid4().hex[:8]}.making"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not self._has_room(size, source):
                return t("not kept for the next run: {path} is short of room ({size} MB wanted). DOCTOR_CACHE names "
                         "another folder", path=str(self._folder), size=size >> 20)  # fmt: skip
            making.mkdir()
            for name in names:
                _link_or_copy(source / name, making / name)
            (making / "parts.json").write_bytes(msgspec.json.encode(parts))
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                _rename_new(making, self._folder / key)
            self._forget_oldest()
        except OSError as error:
            return t("not kept for the next run: {path}: {why}", path=str(self._folder), why=error.strerror or str(error))  # fmt: skip
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return None

    def _has_room(self, size: int, source: Path) -> bool:
        assert self._folder is not None, "asked only where there is a cache"
        if self._folder.stat().st_dev == source.stat().st_dev:
            return True  # linked: it takes no room
        disk = shutil.disk_usage(self._folder)
        return disk.free - size > max(LEAST_FREE_BYTES, LEAST_FREE_SHARE * disk.total)

    def _forget_oldest(self) -> None:
        assert self._folder is not None, "asked only where there is a cache"
        limit = LARGEST_SHARE * shutil.disk_usage(self._folder).total
        entries = sorted(
            self._folder.glob("*/parts.json"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        held = 0
        for path in entries:
            held += sum(file.stat().st_size for file in path.parent.iterdir())
            if held > limit:
                self._drop(path.parent)

    def _drop(self, entry: Path) -> None:
        """Take an entry out of everybody's sight first: another run may be about to use it."""
        away = entry.with_name(f"{entry.name}.{uuid.uuid4().hex[:8]}.gone")
        with contextlib.suppress(OSError):  # another run did it
            entry.rename(away)
            shutil.rmtree(away, ignore_errors=True)


def _rename_new(making: Path, entry: Path) -> None:
    """Raises FileExistsError: another run was first."""
    try:
        making.rename(entry)
    except OSError as error:
        if entry.is_dir():
            raise FileExistsError(17, "an entry is there already", str(entry)) from error
        raise


def _damaged_file(entry: Path, parts: dict[str, PartFacts]) -> str | None:
    for facts in parts.values():
        for name, wanted in facts.sha256.items():
            if file_sha256(entry / name) != wanted:
                return name
    return None


def _link_or_copy(source: Path, target: Path) -> None:
    """A link where both lie on one file system: it takes no room."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
