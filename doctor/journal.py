"""The journal: every change written down, on disk, before it is made; completed after. One JSON file an entry.

``STATE/journal/3.json`` is a change (one fix that was begun), ``3.2.json`` its second step, ``3.2.kept/`` the bytes that
stood there before. One doctor at a time holds ``STATE/lock``; an entry that says *begun* or *undoing*, or a change that is
not closed, while nobody holds the lock, is half done.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

import msgspec

from doctor.model import Change, Fix, JournalEntry, Step, Text, t
from doctor.state_dir import state_dir, sync_folder, write_whole

R = TypeVar("R", Change, JournalEntry)

WAIT_S = 10.0
"""How long a second doctor waits for the first one."""


class JournalError(Exception):
    """The journal cannot be used. ``text`` says what, where and the way out."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class Journal:
    """The journal below one state folder. Reading needs no lock; writing is for who came by :func:`locked`."""

    def __init__(self, folder: Path | None = None, lock_fd: int | None = None) -> None:
        self.folder = (state_dir() if folder is None else folder) / "journal"
        self.lock_fd = lock_fd
        """Handed to installers that we start: while one lives, no other doctor acts."""

    # ------------------------------------------------------------------------------------------ reading
    def changes(self) -> list[Change]:
        """Return every change, oldest first."""
        return sorted(self._read(Change, "[0-9]*.json", dots=1), key=lambda one: int(one.id))

    def entries(self, change: str | None = None) -> list[JournalEntry]:
        """Return the steps of one change or of all, in the order they were made."""
        pattern = f"{change}.*.json" if change else "[0-9]*.[0-9]*.json"
        found = self._read(JournalEntry, pattern, dots=2)
        return sorted(found, key=lambda one: tuple(int(part) for part in one.id.split(".")))

    def half_done(self) -> list[Change]:
        """Return the changes that were cut off: a step begun or being undone, or steps that never came."""
        return [change for change in self.changes() if not change.closed or self._cut_off(change.id)]

    def _cut_off(self, change: str) -> bool:
        return any(entry.outcome in ("begun", "undoing") for entry in self.entries(change))

    def _read(self, kind: type[R], pattern: str, dots: int) -> Iterator[R]:
        for path in self.folder.glob(pattern):
            if path.name.count(".") != dots:
                continue
            try:
                yield msgspec.json.decode(path.read_bytes(), type=kind)
            except (msgspec.MsgspecError, OSError) as error:
                raise JournalError(
                    t("{file} cannot be read: {error}. Move it away to go on without it.", file=str(path), error=str(error))
                ) from None  # fmt: skip

    # ------------------------------------------------------------------------------------------ writing
    def begin(self, fix: Fix) -> Change:
        """Write down that ``fix`` is begun. Raises JournalError: nothing may be done then."""
        last = max((int(change.id) for change in self.changes()), default=0)
        change = Change(id=str(last + 1), at=_now(), fix=fix)
        self.write(change)
        return change

    def entry(self, change: Change, number: int, step: Step) -> JournalEntry:
        """Return a new entry; it is written by :meth:`write` once it holds what was there before."""
        return JournalEntry(id=f"{change.id}.{number}", at=_now(), fix=change.fix.id, step=step)

    def write(self, record: Change | JournalEntry) -> None:
        """Have ``record`` on disk when this returns. Raises JournalError."""
        content = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
        self._writing(lambda: write_whole(self.folder / f"{record.id}.json", content, 0o600))

    def kept(self, entry_id: str) -> Path:
        """Return the folder of what was there before."""
        return self.folder / f"{entry_id}.kept"

    def keep(self, entry_id: str, name: str, content: bytes) -> str:
        """Keep bytes for the way back, on disk when this returns; return their sha256. Raises JournalError."""
        folder = self.kept(entry_id)

        def write() -> None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(folder / name, content, 0o600)

        self._writing(write)
        return hashlib.sha256(content).hexdigest()

    def _writing(self, write: Callable[[], None]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write()
            sync_folder(self.folder)
        except OSError as error:
            raise _cannot_write(self.folder, error) from None

    def drop(self, change: str) -> None:
        """Forget a change and free what was kept for its way back. Raises OSError."""
        for entry in self.entries(change):
            shutil.rmtree(self.kept(entry.id), ignore_errors=True)
            (self.folder / f"{entry.id}.json").unlink()
        (self.folder / f"{change}.json").unlink()


def _cannot_write(folder: Path, error: OSError) -> JournalError:
    return JournalError(
        t(
            "nothing was changed: the journal in {folder} cannot be written ({error}). Free some space, or name another folder in DOCTOR_STATE_DIR.",
            folder=str(folder),
            error=error.strerror or str(error),
        )
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@contextmanager
def locked(
    folder: Path | None = None, wait_s: float = WAIT_S, waiting: Callable[[str], None] | None = None
) -> Iterator[Journal]:
    """Hold the journal alone. ``waiting`` is told the pid of the doctor that holds it now, once.

    Raises:
        JournalError: another doctor still acts after ``wait_s``, or the folder cannot be written.
    """
    base = state_dir() if folder is None else folder
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_write(base, error) from None
    try:
        _take(fd, base, wait_s, waiting)
        yield Journal(base, fd)
    finally:
        os.close(fd)


def is_held(folder: Path | None = None) -> bool:
    """Return whether a doctor, or an installer that one started, is changing this machine now."""
    base = state_dir() if folder is None else folder
    try:
        fd = os.open(base / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # never locked
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def _take(fd: int, base: Path, wait_s: float, waiting: Callable[[str], None] | None) -> None:
    end, told = time.monotonic() + wait_s, False
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "?"
            if waiting and not told:
                waiting(holder)
                told = True
            if time.monotonic() > end:
                raise JournalError(
                    t("another doctor (pid {pid}) is changing this machine: nothing was done. Try again when it is through.", pid=holder)
                ) from None  # fmt: skip
            time.sleep(0.05)
        except OSError as error:
            raise _cannot_write(base, error) from None
    with contextlib.suppress(OSError):  # a full disk: the lock holds without the number in it
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
