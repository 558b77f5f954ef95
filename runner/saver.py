"""Checkpoints written beside the training, one after another, by a thread: space asked first, sealed, read back, renamed.

A checkpoint that cannot be written costs a warning, not the run.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from runner import checkpoint
from runner.checkpoint import MODEL, OPTIMIZER, STATE, Copy, checkpoint_folders
from runner.durable import (
    discard_folder,
    publish_folder,
    seal_folder,
    sync_path,
    what_is_wrong,
    write_durably,
)
from runner.rundir import RunDir


class SaveResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one save ended."""

    window: int
    reason: str
    seconds: float
    path: str = ""
    bytes: int = 0
    error: str = ""
    """Empty: the checkpoint is there, whole and verified."""
    needed_bytes: int = 0
    free_bytes: int = 0


class Saver:
    """Writes copies one after another in a thread; asks for the free space first; keeps the last N and the
    best."""

    def __init__(self, run: RunDir, keep_last: int) -> None:
        self.run = run
        self.keep_last = keep_last
        self._thread: threading.Thread | None = None
        self._results: list[SaveResult] = []
        self.damaged: set[int] = set()
        """Windows whose checkpoint was found damaged: it counts for none."""
        for leftover in (*run.checkpoints.glob(".making-*"), *run.checkpoints.glob(".discarded-*")):
            shutil.rmtree(leftover, ignore_errors=True)

    def start(self, copy: Copy, reason: str) -> None:
        """Begin to write ``copy``; waits for the save before it."""
        self.wait()
        self._thread = threading.Thread(target=self._save, args=(copy, reason), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def results(self) -> list[SaveResult]:
        """Return what ended since the last call."""
        done, self._results = self._results, []
        return done

    def _save(self, copy: Copy, reason: str) -> None:
        started = time.monotonic()
        window = copy.state.windows_done
        needed = sum(tensor.nbytes for part in (copy.model, copy.optimizer) for tensor in part.values())
        free, path, size, error = 0, "", 0, ""
        try:
            self.run.checkpoints.mkdir(exist_ok=True)  # someone short of space may have removed it whole
            free = shutil.disk_usage(self.run.checkpoints).free
            if free < needed * 1.05 + 2**20:
                raise OSError(28, "not enough free space for a checkpoint")
            path, size = self._write(copy)
            self.damaged.discard(window)
            retire(self.run, window, self.keep_last, copy.state.best_window, self.damaged)
        except (
            Exception
        ) as trouble:  # in a thread nobody would see it; training goes on without this checkpoint
            error = f"{type(trouble).__name__}: {trouble}"
            shutil.rmtree(self._making(window), ignore_errors=True)
        self._results.append(
            SaveResult(
                window=window,
                reason=reason,
                seconds=time.monotonic() - started,
                path=path,
                bytes=size,
                error=error,
                needed_bytes=needed,
                free_bytes=free,
            )
        )

    def _making(self, window: int) -> Path:
        return self.run.checkpoints / f".making-{window:08d}"

    def _write(self, copy: Copy) -> tuple[str, int]:
        making, target = self._making(copy.state.windows_done), self.run.checkpoint(copy.state.windows_done)
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        checkpoint.write_tensors(making / MODEL, copy.model)
        checkpoint.write_tensors(making / OPTIMIZER, copy.optimizer)
        (making / STATE).write_bytes(msgspec.json.format(msgspec.json.encode(copy.state), indent=1))
        size = seal_folder(making, copy.state.approximate)
        if wrong := what_is_wrong(making):
            raise OSError(5, f"what was written cannot be read back: {wrong}")
        publish_folder(making, target)
        pointer = {"path": target.name, "window": copy.state.windows_done}
        write_durably(self.run.checkpoints / "latest.json", msgspec.json.encode(pointer))
        return str(target), size


def retire(
    run: RunDir, window: int, keep_last: int, best_window: int | None, damaged: Collection[int] = ()
) -> None:
    """Remove all up to ``window`` but the newest ``keep_last`` and the best; called only after ``window`` was verified.

    Damaged ones are not counted, and those beyond ``window``, which a run that went back will write anew, are left.
    """
    older = [(number, folder) for number, folder in checkpoint_folders(run) if number <= window]
    kept = [number for number, _ in older if number not in damaged][:keep_last]
    for number, folder in older:
        if number not in kept and (number != best_window or number in damaged):
            discard_folder(folder)
    sync_path(run.checkpoints)
