"""Steps on small text files: write one, set a variable in the managed file, add a line. Restored byte for byte."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import stat
from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from doctor.acts import Act, Keeper, Kept, Refused, path_of
from doctor.acts.managed_block import HEADER, taken_back, with_line, with_variable, without_line
from doctor.acts.tree import missing_folders, remove_empty
from doctor.model import AddLine, SetVariable, WriteFile, t
from doctor.state_dir import write_whole
from runner.strings import printable

F = TypeVar("F", WriteFile, SetVariable, AddLine)

LIMIT_BYTES = 8 << 20
"""A larger file is not one of those that these steps are for."""
_BLOB = "before"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def real(path: str) -> Path:
    """Return the file that is meant: a link (dotfiles kept elsewhere) is written through, never replaced."""
    return Path(os.path.realpath(os.path.expanduser(path_of(path))))  # noqa: PTH111 - a home that is not known stays


def _read(path: Path) -> bytes | None:
    """Return the bytes; None where there is no file. Raises Refused for what is no file, or too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > LIMIT_BYTES:
            raise Refused(t("{file} is no text file that can be edited; nothing was changed", file=str(path)))
        return file.read()


class _FileAct(Act[F], Generic[F]):
    OURS = False
    """The file is the doctor's own: it goes when nothing is left in it."""

    @abstractmethod
    def path(self, step: F) -> str: ...

    @abstractmethod
    def wanted(self, step: F, content: bytes | None) -> bytes:
        """Return what the file is to hold, given what it holds (None: there is none)."""

    def mode(self, step: F) -> int:
        return 0o644

    def without(self, step: F, now: bytes, before: bytes | None) -> bytes | None:
        """Return a file that was edited since, without what this step put in; None where that cannot be told."""
        return None

    def look(self, step: F, keeper: Keeper) -> Kept:
        path = real(self.path(step))
        content = _read(path)
        wanted = self.wanted(step, content)
        before: Kept = {"path": printable(str(path)), "wanted_sha256": _sha256(wanted), "kind": "absent"}
        if content is None:
            before["made_folders"] = missing_folders(path)
            return before
        info = path.stat()
        before |= {"kind": "file", "mode": stat.S_IMODE(info.st_mode), "mtime_ns": info.st_mtime_ns}
        before |= {"sha256": keeper.keep(_BLOB, content), "blob": _BLOB}
        return before

    def do(self, step: F, before: Kept, keeper: Keeper) -> Kept:
        path = path_of(str(before["path"]))
        content = _read(path)
        if (None if content is None else _sha256(content)) != before.get("sha256"):
            raise Refused(t("{file} was changed meanwhile; nothing was done to it", file=str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = before.get("mode")
        write_whole(
            path,
            self.wanted(step, content),
            mode if isinstance(mode, int) else self.mode(step),
            _part(keeper),
        )
        return {"sha256": before["wanted_sha256"]}

    def undo(self, step: F, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        path = path_of(str(before["path"]))
        with contextlib.suppress(FileNotFoundError):  # what a kill left beside the file
            path.with_name(f".{path.name}{_part(keeper)}").unlink()
        content = _read(path)
        now = None if content is None else _sha256(content)
        if now != before.get("sha256"):
            old = self._old(before, keeper)
            if now != before["wanted_sha256"]:
                edited = None if content is None else self.without(step, content, old)
                if edited is None:
                    raise Refused(
                        t("{file} was changed since, and is left as it is. What stood there before: {kept}", file=str(path), kept=str(keeper.folder / _BLOB) if old is not None else "-")
                    )  # fmt: skip
                if edited or (before["kind"] == "file" and not self.OURS):
                    write_whole(path, edited, stat.S_IMODE(path.stat().st_mode), _part(keeper))
                    return
                old = None
            self._put_back(path, old, before, keeper)
            if old is None and self.OURS:
                remove_empty(str(path.parent))
        if before["kind"] == "absent":
            remove_empty(str(before.get("made_folders") or ""))

    def _old(self, before: Kept, keeper: Keeper) -> bytes | None:
        if before["kind"] == "absent":
            return None
        old = (keeper.folder / _BLOB).read_bytes()
        if _sha256(old) != before["sha256"]:
            raise Refused(t("what was kept of {file} is damaged ({kept}); nothing was changed", file=str(before["path"]), kept=str(keeper.folder / _BLOB)))  # fmt: skip
        return old

    def _put_back(self, path: Path, old: bytes | None, before: Kept, keeper: Keeper) -> None:
        if old is None:
            path.unlink(missing_ok=True)
            return
        mode, mtime = before["mode"], before["mtime_ns"]
        assert isinstance(mode, int) and isinstance(mtime, int)
        write_whole(path, old, mode, _part(keeper), mtime)

    def sketch(self, step: F) -> list[str]:
        lines: list[str] = self.wanted(step, None).decode("utf-8", "replace").splitlines()
        return [f"{self.path(step)}:", *(f"+{line}" for line in lines if not line.startswith("# "))]

    def preview(self, step: F) -> list[str]:
        path = real(self.path(step))
        try:
            content = _read(path)
            wanted = self.wanted(step, content)
        except (OSError, Refused) as error:
            return [f"{path}: {error}"]
        old = (content or b"").decode("utf-8", "replace").splitlines()
        new = wanted.decode("utf-8", "replace").splitlines()
        name = str(path) if content is not None else f"{path} (new)"
        return list(difflib.unified_diff(old, new, str(path), name, lineterm="", n=1))


def _part(keeper: Keeper) -> str:
    return f".doctor-{keeper.entry_id}.part"


def _text(content: bytes | None) -> str:
    """Bytes that are not UTF-8 come through unharmed."""
    return (content or b"").decode("utf-8", "surrogateescape")


class WriteFileAct(_FileAct[WriteFile]):
    def path(self, step: WriteFile) -> str:
        return step.path

    def mode(self, step: WriteFile) -> int:
        return step.mode

    def wanted(self, step: WriteFile, content: bytes | None) -> bytes:
        return step.content.encode("utf-8", "surrogateescape")


class SetVariableAct(_FileAct[SetVariable]):
    OURS = True

    def path(self, step: SetVariable) -> str:
        return step.file

    def wanted(self, step: SetVariable, content: bytes | None) -> bytes:
        return with_variable(_text(content), step.name, step.value).encode("utf-8", "surrogateescape")

    def without(self, step: SetVariable, now: bytes, before: bytes | None) -> bytes | None:
        edited = taken_back(_text(now), step.name, step.value, _text(before))
        if edited == HEADER:  # the last variable went: so does the file, where the doctor made it
            edited = ""
        return None if edited is None else edited.encode("utf-8", "surrogateescape")


class AddLineAct(_FileAct[AddLine]):
    def path(self, step: AddLine) -> str:
        return step.path

    def wanted(self, step: AddLine, content: bytes | None) -> bytes:
        return with_line(_text(content), step.line).encode("utf-8", "surrogateescape")

    def undo(self, step: AddLine, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        """The line goes with the last change that needs it, whichever of them added it."""
        same = [one for one in keeper.journal.entries() if one.step == step and one.id != keeper.entry_id]
        if any(one.outcome in ("done", "begun") for one in same):
            return
        was_there = before.get("sha256") == before["wanted_sha256"]
        if was_there and any(one.before.get("sha256") != one.before.get("wanted_sha256") for one in same):
            path = path_of(str(before["path"]))
            edited = self.without(step, _read(path) or b"", None)
            if edited is not None:
                write_whole(path, edited, stat.S_IMODE(path.stat().st_mode), _part(keeper))
            return
        super().undo(step, before, after, keeper)

    def without(self, step: AddLine, now: bytes, before: bytes | None) -> bytes | None:
        edited = without_line(_text(now), step.line)
        return None if edited is None else edited.encode("utf-8", "surrogateescape")
