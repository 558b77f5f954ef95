"""Watches one trainer from beside it and writes what it sees as events: host, GPUs, stacks, and where it stands when silent."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from doctor.gpu_meter import GpuMeter
from doctor.lossy_writer import LossyWriter
from doctor.pace import Pace, starting_rate
from doctor.probes.host_meter import HostMeter, oom_kills
from doctor.probes.process_tree import is_alive, read_stat
from doctor.probes.xid_watch import XidWatch
from doctor.silence import Silence
from doctor.stack_watch import StackWatch
from doctor.standstill import Standstill
from runner.events import read_events
from runner.rank_paces import rank_of
from runner.rundir import RunDir
from runner.text import Text, t

LONG_RUN_S = 3600.0
"""From then on a sample every five seconds at most: a week of them must still open at once."""
LONG_RUN_TICK_S = 5.0
LONG_RUN_PAUSE_S = 25.0
BEGINS_WITHIN_S = 5.0
"""What a run imports before its first words is no news; one that does not get beyond that is looked at all the same."""
DEEPER = 2.0
"""Times the silence that is noted: then native frames are worth the moment that reading them takes."""
TELL_AGAIN_S = 600.0


class Sampler:
    """Watches one trainer. ``tick`` does what is due; it waits for the stacks of a run that stands, for nothing else."""

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
        self.writer = LossyWriter(run.events / "sampler.jsonl", "sampler")
        self.host = HostMeter(pid, run.path)
        self.gpus = GpuMeter()
        self.xids = XidWatch()
        self.silence = Silence(run.events, silence_s)
        self.standstill = Standstill(run, pid)
        self._is_deep = False
        self.supervised = supervised
        """Whoever started the process reaps it, and says itself how it ended."""
        self.begun = time.monotonic()
        self.pace = Pace(rate=starting_rate(stat.threads if stat else 0))
        # The process itself does not compute where it was started to start others.
        looks_below = supervised or ranks
        self.stacks = StackWatch(pid, self.pace, looks_below, self.begun) if with_stacks else None
        self._told: dict[str, float] = {}
        self._oom_kills = oom_kills()
        self.stopping = False

    def watch(self) -> None:
        """Sample until the trainer has ended or :attr:`stopping` is set."""
        try:
            while not self.stopping and is_alive(self.pid, self.start_ticks):
                begun, cpu_s = time.monotonic(), time.process_time()
                self.tick(begun)
                self.pace.learn_tick(time.process_time() - cpu_s)
                self._sleep(max(0.1, begun + self._tick_s(begun) - time.monotonic()))
            self._last_words()
        finally:
            self.gpus.close()
            self.xids.close()
            self.writer.close()

    def _tick_s(self, now: float) -> float:
        return LONG_RUN_TICK_S if now - self.begun >= LONG_RUN_S else self.pace.tick_s

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))

    def tick(self, now: float) -> None:
        """Do what is due at monotonic time ``now``."""
        host = self.host.sample(now)
        self.writer.write("sample-host", **host)
        self.pace.hear_run(host.get("cpu_pct"))
        with contextlib.suppress(OSError):  # a kernel that counts no waiting for a core
            self.pace.hear_queue(Path("/proc/self/schedstat").read_text())
        gpu = self.gpus.sample()
        if "gpus" in gpu or self._worth_telling("gpu", now):
            self.writer.write("sample-gpu", **gpu)
        if self.gpus.seen_cards:
            for kind, data in self.xids.look(now, self.gpus):
                self.writer.write(kind, **data)
        self._look_at_stacks(now)
        self._look_at_silence(now)

    def _look_at_stacks(self, now: float) -> None:
        if self.stacks is None or not (self.silence.is_talking or now - self.begun >= BEGINS_WITHIN_S):
            return
        if now - self.begun >= LONG_RUN_S:
            self.pace.least_pause_s = LONG_RUN_PAUSE_S
        told = self.stacks.look(now, without_pause=self.silence.silent)
        if told is not None and (
            "trouble" not in told or self._worth_telling(f"stacks {told['trouble']}", now)
        ):
            self.writer.write("sample-stacks", **told)

    def _worth_telling(self, what: str, now: float) -> bool:
        """Return whether a reason that repeats itself is due again."""
        if now - self._told.get(what, -1e9) < TELL_AGAIN_S:
            return False
        self._told[what] = now
        return True

    def _look_at_silence(self, now: float) -> None:
        for text, begins in self.silence.look(now):
            self._is_deep = False
            self.writer.note(text, "info", self._keep_standing() if begins else "")
        if not self.silence.silent:
            return
        if (own := self.standstill.own_dump()) is not None:
            self.writer.write("standing", **own)
        if not self._is_deep and self.silence.quiet_s(now) >= DEEPER * self.silence.limit_s:
            self._is_deep = True
            self._go_deeper()

    def _keep_standing(self) -> str:
        """Write where every thread stands into ``stacks/``; return the file's name, or "" where that failed."""
        try:
            told = self.standstill.begins()
        except OSError as error:
            self.writer.complain(f"{self.run.stacks}: {error}")
            return ""
        self.writer.write("standing", **told)
        return str(told["file"])

    def _go_deeper(self) -> None:
        try:
            self.standstill.goes_deeper(self.stacks.trainer if self.stacks else self.pid)
        except OSError as error:
            self.writer.complain(f"{self.run.stacks}: {error}")

    def _last_words(self) -> None:
        finished = _has_finished(self.run)
        last = self.stacks.stop() if self.stacks else None
        if last is not None and not finished:  # of an orderly end it would show the leaving alone
            self.writer.write("sample-stacks", **last)
        if not self.stopping and not finished and not self.supervised:
            killed = (oom_kills() or 0) - (self._oom_kills or 0)
            self.writer.note(_gone(killed), "fail")


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
