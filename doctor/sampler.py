"""The process beside a trainer: host, GPUs and Python stacks once a second into ``events/sampler.jsonl``.

``python -m doctor.sampler RUN_DIR --pid PID``. It only looks, never stops the trainer, lives in a session
of its own, and ends when the trainer does. Nothing it meets (no GPU, no py-spy, a full disk) ends it sooner.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doctor.call_tree import call_trees
from doctor.gil import gil_shares, is_due
from doctor.gpu_meter import GpuMeter
from doctor.probes.host_meter import HostMeter, oom_kills
from doctor.probes.process_tree import here, is_alive, read_stat
from doctor.probes.trainer_of import BusiestPython
from doctor.probes.xid_watch import XidWatch
from doctor.pyspy import Sample, Window, dump
from doctor.silence import Silence
from doctor.stacks import Pace, Trouble, hottest, starting_rate, where_time_goes
from runner.events import EventWriter, read_events
from runner.rank_paces import rank_of
from runner.rundir import RunDir
from runner.text import Text, t

DENSE_FOR_S = 3600.0
"""So long a sample every second and stacks without a pause; then every 5 s, and one window in 30 s."""
RETRY_S = 60.0
"""What failed for a lasting reason (no py-spy, not permitted) is tried again after so long."""


class Sampler:
    """Watches one trainer. ``tick`` does what is due and never blocks for longer than a GPU round."""

    def __init__(
        self,
        run: RunDir,
        pid: int,
        silence_s: float = 60.0,
        with_stacks: bool = True,
        supervised: bool = False,
        ranks: bool = False,
    ) -> None:
        stat = read_stat(pid)
        self.run = run
        self.pid = pid
        self.start_ticks = stat.start_ticks if stat else -1
        self.writer = EventWriter(run.events / "sampler.jsonl", "sampler")
        self.host = HostMeter(pid, run.path)
        self.gpus = GpuMeter()
        self.xids = XidWatch()
        self.silence = Silence(run.events, silence_s)
        self.pace = Pace(rate=starting_rate(stat.threads if stat else 0))
        self.with_stacks = with_stacks
        self._busiest = BusiestPython(pid)
        self._looks_below = supervised or ranks
        """The process itself does not compute: those below it do."""
        self.supervised = supervised
        """Whoever started the process reaps it, and says itself how it ended."""
        self.window: Window | None = None
        self._windows = 0
        self._gil: dict[str, Any] = {}
        """The newest shares, told with each sample of stacks."""
        self.begun = time.monotonic()
        self._next_window = self.begun + 1.0
        self._told: dict[str, float] = {}
        self._lost, self._lost_why = 0, ""
        self._oom_kills = oom_kills()
        self.stopping = False

    def watch(self) -> None:
        """Sample until the trainer has ended or :attr:`stopping` is set."""
        try:
            while not self.stopping and is_alive(self.pid, self.start_ticks):
                begun = time.monotonic()
                self.tick(begun)
                every = 1.0 if begun - self.begun < DENSE_FOR_S else 5.0
                self._sleep(max(0.1, begun + every - time.monotonic()))
            self._last_words()
        finally:
            self.gpus.close()
            self.xids.close()
            self.writer.close()

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))

    def tick(self, now: float) -> None:
        """Do what is due at monotonic time ``now``."""
        self._write("sample-host", **self.host.sample(now))
        gpu = self.gpus.sample()
        if "gpus" in gpu or self._worth_telling("gpu", now):
            self._write("sample-gpu", **gpu)
        if self.gpus.seen_cards:
            for kind, data in self.xids.look(now, self.gpus):
                self._write(kind, **data)
        if self.with_stacks:
            self._look_at_stacks(now)
        for text, needs_dump in self.silence.look(now):
            self._note(text, "info", self._dump() if needs_dump else "")

    # -- stacks
    def _look_at_stacks(self, now: float) -> None:
        if self.window is None and now >= self._next_window:
            self.window = Window(
                self._who_trains(), self.pace.window_s, self.pace.rate, gil_only=is_due(self._windows)
            )
            self._windows += 1
        sample = self.window.poll() if self.window else None
        if sample is None:
            return
        window, self.window = self.window, None
        if sample.trouble:
            self._tell_trouble(sample.trouble, now)
            return
        self.pace.learn(sample.cpu_s, sample.wall_s)
        self._next_window = now + max(self.pace.pause_s, 0.0 if now - self.begun < DENSE_FOR_S else 25.0)
        if window is not None and window.gil_only:
            self._gil = gil_shares(window.pid, sample.stacks, sample.errors, window.seconds, window.rate)
        else:
            self._write_stacks(sample)

    def _who_trains(self) -> int:
        """Return whose stacks are taken: our own trainer's, or what computes below a command of the user's."""
        return self._busiest.find() if self._looks_below else self.pid

    def _write_stacks(self, sample: Sample) -> None:
        frames = [
            {key: value for key, value in frame.items() if value != ""} for frame in hottest(sample.stacks)
        ]
        spent = where_time_goes(sample.stacks)
        self._write(
            "sample-stacks", samples=sample.samples, errors=sample.errors, frames=frames,
            trees=call_trees(sample.stacks), **spent, **self._gil,
        )  # fmt: skip

    def _tell_trouble(self, trouble: Trouble, now: float) -> None:
        self._next_window = now + (RETRY_S if trouble.lasting else self.pace.window_s)
        if self._worth_telling("stacks " + trouble.kind, now):
            self._write(
                "sample-stacks", samples=0, errors=0, frames=[], trouble=trouble.kind, why=trouble.why
            )

    def _worth_telling(self, what: str, now: float) -> bool:
        """Return whether a reason that repeats itself is due again: once in ten minutes is enough."""
        if now - self._told.get(what, -1e9) < 600:
            return False
        self._told[what] = now
        return True

    def _dump(self) -> str:
        """Write where every thread stands into ``stacks/``; return the file's name, or "" where that failed."""
        text, trouble = dump(self.pid)
        path = self.run.stacks / f"silent-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.txt"
        try:
            self.run.stacks.mkdir(exist_ok=True)
            path.write_text(text or str(trouble.why if trouble else ""), "utf-8")
        except OSError as error:
            self._complain(f"{path}: {error}")
            return ""
        return str(path.relative_to(self.run.path))

    # -- words
    def _note(self, text: Text, level: str, file: str = "") -> None:
        self._write("note", level=level, text=text, **({"file": file} if file else {}))

    def _write(self, kind: str, **data: Any) -> None:
        """Append one event. A full disk loses it, is said once, and noted when there is room again."""
        try:
            self.writer.write(kind, **_plain(data))
            if self._lost:
                lost, self._lost = self._lost, 0
                text = t(
                    "{count} {count:sample|samples} could not be written: {error}",
                    count=lost,
                    error=self._lost_why,
                )
                self.writer.write("note", level="warn", text=_plain(text))
        except OSError as error:
            self._lost += 1
            if self._lost == 1:
                self._lost_why = error.strerror or str(error)
                self._complain(f"{self.writer.path}: {error}")

    def _complain(self, line: str) -> None:
        with contextlib.suppress(OSError):  # sampler.log lies on the same full disk
            print("sampler:", line, file=sys.stderr, flush=True)  # noqa: T201

    def _last_words(self) -> None:
        finished = _has_finished(self.run)
        if self.window is not None:
            sample = self.window.stop()
            if (
                sample.stacks and not self.window.gil_only and not finished
            ):  # of an orderly end they would show the leaving alone
                self._write_stacks(sample)
        if not self.stopping and not finished and not self.supervised:
            killed = (oom_kills() or 0) - (self._oom_kills or 0)
            self._note(_gone(killed), "fail")


def _gone(oom_killed: int) -> Text:
    if oom_killed > 0:
        return t(
            "The trainer is gone without a word, and the kernel killed {count} {count:process|processes} of this container for "
            "memory while it ran: it most likely ran out of memory (RAM, not VRAM).", count=oom_killed,
        )  # fmt: skip
    return t("The trainer is gone without a word: it was killed, or crashed outside Python. See trainer.log.")


def _has_finished(run: RunDir) -> bool:
    """Return whether the newest words of a trainer are that it has finished."""
    finished = False
    for path in run.events.glob("trainer-*.jsonl"):
        if rank_of(path.stem):
            continue
        for event, _ in read_events(path):
            finished = event.kind == "run-finished" or (finished and event.kind != "run-started")
    return finished


def _plain(value: Any) -> Any:
    """Return ``value`` with every Text as ``{"msgid", "params"}``."""
    if isinstance(value, Text):
        return {"msgid": value.msgid, "params": value.params}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Sample until the trainer ends (it may have ended before we began); 1 when there is no such run."""
    parser = argparse.ArgumentParser(prog="python -m doctor.sampler", description="Samples beside a trainer.")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--silence-s", type=float, default=60.0)
    parser.add_argument("--no-stacks", action="store_true")
    parser.add_argument("--supervised", action="store_true")
    parser.add_argument(
        "--ranks", action="store_true", help="the process starts others, which train together"
    )
    options = parser.parse_args(argv)
    run = RunDir(options.run_dir.absolute())
    if not run.events.is_dir():
        print(f"sampler: no run at {run.path}", file=sys.stderr)  # noqa: T201
        return 1
    with contextlib.suppress(OSError):
        os.nice(5)
    sampler = Sampler(
        run, options.pid, options.silence_s, not options.no_stacks, options.supervised, options.ranks
    )
    _write_pid(run)

    def stop(number: int, frame: object) -> None:
        sampler.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sampler.watch()
    return 0


def _write_pid(run: RunDir) -> None:
    stat = read_stat(os.getpid())
    with contextlib.suppress(OSError):
        run.sampler_pid.write_text(f"{os.getpid()} {stat.start_ticks if stat else -1} {' '.join(here())}\n")


if __name__ == "__main__":
    sys.exit(main())
