"""A process that we did not start, watched like a run: its stacks, CPU, memory and the GPUs, folded by the same state."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path
from typing import Any

from doctor.gpu_meter import GpuMeter
from doctor.log_follow import LogFollower, last_lines, log_of
from doctor.pace import MOST_CORES, Pace, starting_rate
from doctor.probes.event_files import tensorboard_of
from doctor.probes.host_meter import HostMeter
from doctor.probes.process_tree import is_alive, read_stat, tree_of
from doctor.probes.xid_watch import XidWatch
from doctor.stack_watch import StackWatch
from doctor.standstill import waits_of
from doctor.tensorboard_follow import TensorboardFollower, is_tensorboard
from runner.events import RunEvent
from runner.state import RunState, state_as_dict
from runner.strings import printable
from runner.text import Text, t

IDLE_PCT, IDLE_S = 5.0, 15.0
"""A process that has used less than a twentieth of a core for so long stands, or waits."""
WAITS_EVERY_S = 30.0
LONGEST_NAME = 50
"""Characters of a command: what the process does stands beside it in one row."""


class ProcessWatcher:
    """Answers as a :class:`doctor.watching.RunWatcher` does, for any process of this machine."""

    is_ours = False

    def __init__(self, pid: int, log: Path | None = None) -> None:
        """Follow also ``log``, by default the file that its output goes to, where there is one.

        Raises:
            ProcessLookupError: there is no such process.
            OSError: ``log`` cannot be read.
        """
        stat = read_stat(pid)
        if stat is None or stat.state in "ZX":
            raise ProcessLookupError(3, "no such process", str(pid))
        self.pid = pid
        self.name = f"{pid} {_command_of(pid)}"
        self.state = RunState()
        self.alive: bool | None = True
        self._start_ticks = stat.start_ticks
        self._is_kernels = _is_kernel_thread(pid)
        self._host, self._gpus, self._xids = HostMeter(pid), GpuMeter(), XidWatch()
        # A launcher or a shell may have been named: what trains is below it. Somebody looks on: windows are short.
        pace = Pace(starting_rate(stat.threads), shortest_s=2, least_cores=MOST_CORES, least_looks=25)
        self._stacks = StackWatch(pid, pace, below=True, begin=0.0, retry_s=30.0)
        self._waits_at = float("inf")
        self._seq = 0
        path = log or tensorboard_of(list(tree_of(pid))) or log_of(pid)
        self._log = _follower(path) if path else None
        if self._log is not None:
            self._note("info", t("reading the log {path}", path=str(self._log.path)))
        if (owner := _other_owner(pid)) is not None:
            self._note(
                "info",
                t(
                    "the process belongs to {owner}, not to you: its stacks and its log may be out of reach",
                    owner=owner,
                ),
            )

    def poll(self) -> RunState:
        """Look once: host and GPUs now, stacks when a window has ended."""
        was_alive, self.alive = self.alive, is_alive(self.pid, self._start_ticks)
        self._read_log()
        if was_alive and not self.alive:
            self._read_log()  # its last words, and what of them waited for more
            self._note("info", t("the process has ended; how is known to whoever started it alone"))
        if self.alive:
            self._add("sample-host", self._host.sample())
            self._add("sample-gpu", self._gpus.sample())
            if self._gpus.seen_cards:
                for kind, data in self._xids.look(time.monotonic(), self._gpus):
                    self._add(kind, data)
            self._look_at_stacks()
            self._look_at_waits(time.monotonic())
        return self.state

    def _read_log(self) -> None:
        if self._log is None:
            return
        try:
            for event in self._log.read():
                if not self.state.started:  # from the first word that it is a training
                    self._add("run-started", {"pid": self.pid}, "log")
                self.state.add(event)
        except OSError as error:
            self._note(
                "warn", t("the log cannot be read any more: {error}", error=error.strerror or str(error))
            )
            self._log = None

    def settle(self) -> None:
        """Wait until there is something to show: one window of stacks and two looks at the CPU."""
        self.poll()
        while self._stacks.is_looking and self.alive:
            time.sleep(0.1)
            self._look_at_stacks()
            self.alive = is_alive(self.pid, self._start_ticks)
        self.poll()

    def _look_at_stacks(self) -> None:
        if self._is_kernels:
            why = t("it is a thread of the kernel")
            self._add("sample-stacks", {"samples": 0, "errors": 0, "frames": [], "why": why})
        elif (told := self._stacks.look(time.monotonic())) is not None:
            self._add("sample-stacks", told)

    def _look_at_waits(self, now: float) -> None:
        """Say what its processes wait for in the kernel once they have used no CPU for a while."""
        cpu_pct = self.state.host.get("cpu_pct")
        if cpu_pct is None or cpu_pct > IDLE_PCT:
            self._waits_at = now + IDLE_S
        elif now >= self._waits_at:
            self._waits_at = now + WAITS_EVERY_S
            self._add("standing", {"waits": waits_of(self.pid)})

    def _note(self, level: str, text: Text) -> None:
        self._add("note", {"level": level, "text": text})

    def _add(self, kind: str, data: dict[str, Any], source: str = "sampler") -> None:
        self.state.add(RunEvent(seq=self._seq, t=time.time(), source=source, kind=kind, data=data))
        self._seq += 1

    def status(self) -> str:
        """Return ``running``, ``stalled`` (its log told steps and tells none any more) or ``ended``: how is known to its parent alone."""
        if not self.alive:
            return "ended"
        return (
            self.state.status_at(time.time(), True)
            if self.state.last and not self.state.finished
            else "running"
        )

    def now(self) -> float:
        """Return the time by the clock of whoever is watched, in seconds since the epoch."""
        return time.time()

    def log_tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of the log that is read; none where it is no text."""
        return last_lines(self._log.path, lines) if isinstance(self._log, LogFollower) else []

    def is_over(self) -> bool:
        return self.alive is False

    def as_dict(self) -> dict[str, Any]:
        return {
            "pid": self.pid,
            **state_as_dict(self.state, time.time(), self.alive),
            "status": self.status(),
        }

    def close(self) -> None:
        self._stacks.stop()
        self._gpus.close()
        self._xids.close()


def _command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:  # the kernel may hide other users' processes (hidepid)
        return ""
    command = printable(words.decode("utf-8", "surrogateescape").strip())
    return command if len(command) <= LONGEST_NAME else command[: LONGEST_NAME - 3] + "..."


def _is_kernel_thread(pid: int) -> bool:
    """Return whether a live process has no program: py-spy would look at all of the kernel's threads in vain."""
    try:
        os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - one look, no path to build on
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _follower(path: Path) -> LogFollower | TensorboardFollower:
    return TensorboardFollower(path) if is_tensorboard(path) else LogFollower(path)


def _other_owner(pid: int) -> str | None:
    """Return whose a process is, where it is another user's than ours; None: ours, or it cannot be told."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - one look, no path to build on
    except OSError:
        return None
    if uid == os.geteuid():
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
