"""What one of several processes leaves behind of itself: ``RUN_DIR/ranks/R.json``, from its start to its end.

Whoever started the ranks reads there which of them left with what, and which is gone without a word. On the way out by a
signal, or when the others broke off, the stacks of all its threads are kept in ``RUN_DIR/stacks``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from runner.rank_env import RankPlace


class RankLeft(msgspec.Struct, kw_only=True):
    """``ranks/R.json``"""

    rank: int
    pid: int
    started_at: float
    left_at: float | None = None
    """None: it is at work, or gone without a word."""
    code: int | None = None
    """As of a run: 0 completed, 143 stopped and saved, 1 failed, 4 not finite."""
    exchange: str = ""
    """It left because the exchange with the others broke off: ``timed-out`` or ``closed``; empty: for its own reasons."""


def ranks_folder(run_path: str | Path) -> Path:
    return Path(run_path) / "ranks"


def stack_file(run_path: str | Path, rank: int) -> Path:
    """Return where a rank leaves its stacks."""
    return Path(run_path) / "stacks" / f"rank-{rank}.txt"


def read_ranks(run_path: str | Path) -> list[RankLeft]:
    """Return what every rank of this machine left, in order; what is torn is left out."""
    found = []
    for path in ranks_folder(run_path).glob("*.json"):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=RankLeft))
        except (OSError, msgspec.DecodeError):
            continue
    return sorted(found, key=lambda one: one.rank)


class RankRecord:
    """Keeps the record of this process. With one process alone it does nothing."""

    def __init__(self, run_path: str, place: RankPlace) -> None:
        self.place = place
        self.code = 1
        self.exchange = ""
        self._run = Path(run_path)
        self._left = RankLeft(rank=place.rank, pid=os.getpid(), started_at=time.time())
        self._stacks: IO[str] | None = None

    @property
    def status(self) -> int:
        """How the process ends: a rank with a parent that left in order ends with 0, for torchrun takes all else as a
        death and ends the others; the parent reads the code here."""
        orderly = self.place.has_parent and self.code in (0, 143)
        return 0 if orderly else self.code

    def __enter__(self) -> RankRecord:
        if self.place.size > 1:
            path = stack_file(self._run, self.place.rank)
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            self._stacks = open(path, "a")  # others append to it too
            # Written by the C handler itself: a thread that waits in a collective would never come to ours.
            faulthandler.register(signal.SIGTERM, self._stacks, all_threads=True, chain=True)
            faulthandler.enable(self._stacks)
            self._write()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.place.size > 1:
            self._left.left_at, self._left.code, self._left.exchange = time.time(), self.code, self.exchange
            self._write()

    def _write(self) -> None:
        folder = ranks_folder(self._run)
        folder.mkdir(exist_ok=True)
        path, record = folder / f"{self.place.rank}.json", msgspec.json.encode(self._left)
        temporary = path.with_suffix(".tmp")
        try:
            temporary.write_bytes(record)
            temporary.replace(path)
        except OSError:  # a full disk: the record that is there has its own block, and that is room enough
            with contextlib.suppress(OSError), open(path, "r+b") as file:
                file.write(record)
                file.truncate()
