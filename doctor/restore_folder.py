"""The folder of a restore: ours from its first moment, held by one restore at a time, and how far it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from doctor.model import t
from doctor.restore_commands import NOTES
from doctor.snapshots.restore_plan import RestoreError, RestorePlan
from doctor.state_dir import write_whole


class State(msgspec.Struct):
    """What of a plan is done."""

    digest: str
    python: str
    done: list[str] = []
    complete: bool = False


def make_folder(folder: Path) -> None:
    """Make the folder and mark it ours, or see that it is. Raises RestoreError."""
    try:
        if not folder.exists():
            (folder / NOTES).mkdir(parents=True, exist_ok=False)
    except OSError as error:
        raise RestoreError(
            t("cannot make {folder}: {error}", folder=str(folder), error=error.strerror or "")
        ) from None
    if not (folder / NOTES).is_dir():
        raise RestoreError(t("{folder} is there already and is not a restore of ours: name another folder", folder=str(folder)))  # fmt: skip


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the folder alone. Raises RestoreError: another restore, or an installer that it left behind, still works there."""
    lock = os.open(folder / NOTES / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RestoreError(t("another restore into {folder} is still at work, or the installer of one that was cut off: wait for it to end", folder=str(folder))) from None  # fmt: skip
    except OSError:  # a file system without locks
        pass
    try:
        yield lock
    finally:
        os.close(lock)


def open_state(plan: RestorePlan, folder: Path) -> State:
    """Begin, or go on with what is of the same plan. Raises RestoreError."""
    state = read_state(folder)
    if state is None:
        state = State(digest=plan.digest, python=plan.python)
        write_state(folder, state)
    if state.digest != plan.digest:
        raise RestoreError(t("{folder} holds a restore of another snapshot: name another folder, or remove it", folder=str(folder)))  # fmt: skip
    if state.complete:
        raise RestoreError(t("{folder} was restored from this snapshot already: `doctor snapshot verify FILE --python {folder}`", folder=str(folder)))  # fmt: skip
    return state


def read_state(folder: Path) -> State | None:
    """Return what an earlier restore noted; None: nothing, or not readable."""
    try:
        return msgspec.json.decode((folder / NOTES / "state.json").read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


def write_state(folder: Path, state: State) -> None:
    try:
        write_whole(folder / NOTES / "state.json", msgspec.json.encode(state), 0o600)
    except OSError as error:
        raise RestoreError(
            t("cannot write {folder}: {error}", folder=str(folder), error=error.strerror or "")
        ) from None
