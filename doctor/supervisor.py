"""The process that supervises a command of the user's own: starts it, reads its log, says how it ended, starts it again.

It has a session of its own, so it outlives the terminal, and so does what is to happen on finish. The command's output
goes straight into ``trainer.log``: should this process die, the command goes on.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from doctor.detached import start_detached
from doctor.ended import Ended, Note, notes_of
from doctor.launch import sampler_trouble, start_sampler
from doctor.log_progress import LogProgress
from doctor.machine import live_snapshot, load_snapshot
from doctor.model import Container, Snapshot
from doctor.on_finish import OnFinish
from doctor.probes import Context
from doctor.redact_secrets import without_secrets
from doctor.render.layout import human_bytes
from doctor.run_ends import first_and_last
from doctor.stopping import StopLadder, group_lives, send
from doctor.trainer_pid import mark_of, write_mark
from runner.command_plan import CommandPlan, decode_command
from runner.events import EventWriter
from runner.rundir import RunDir
from runner.strings import printable
from runner.text import Text, t

LOOK_EVERY_S = 0.2
OUTPUT_EVERY_S = 10.0
"""Between two words that the log has grown, where it tells no steps."""
A_LOOK_BYTES = 128 << 10
"""Of the log at one look: reading more than that five times a second would take a core from the training."""
BEHIND_BYTES = 1 << 20
"""A log that grows faster is not read whole: so much of its end is."""
RETRY_AFTER_S = 5.0
LEFTOVER_GRACE_S = 10.0
TAIL_BYTES = 64 << 10
COULD_NOT_START = 127


class Supervisor:
    """One command from its first start to its last word."""

    def __init__(
        self, run: RunDir, plan: CommandPlan, environ: Mapping[str, str], with_sampler: bool = True
    ) -> None:
        self.run, self.plan, self.with_sampler = run, plan, with_sampler
        self.environ = environ
        self.writer = EventWriter(run.events / "trainer-log.jsonl", "log")
        self.stop = StopLadder()
        self.begun = time.monotonic()
        self.steps = 0

    # -- the whole ------------------------------------------------------------------------------------------------
    def supervise(self) -> int:
        """Run the command to its end, again after a failure where asked to; return its exit status."""
        attempt = 0
        while True:
            log_begin = self._log_size()
            ended = self._attempt(attempt)
            failed = ended.code != 0 and not self.stop.asked
            if failed and ended.started:
                self._tell(ended, log_begin)
            if not failed or attempt >= self.plan.retries or not ended.started:
                break
            attempt += 1
            if not self._may_try_again(ended, attempt):
                break
        outcome = "interrupted" if self.stop.asked else "failed" if ended.code else "completed"
        self._write("run-finished", None, outcome=outcome, steps=max(self.steps, steps_told(self.run)), exit_code=ended.code,
                    seconds=time.monotonic() - self.begun)  # fmt: skip
        OnFinish(self.run, self.plan, self.stop, self._write).carry_out(outcome, ended.code)
        return ended.code

    def _may_try_again(self, ended: Ended, attempt: int) -> bool:
        """Say that it starts again and wait a moment; False: stopped by hand meanwhile."""
        text = t("Ended with status {code}; started again in {seconds} s ({attempt} of {retries}).",
                 code=ended.code, seconds=round(RETRY_AFTER_S), attempt=attempt, retries=self.plan.retries)  # fmt: skip
        self._note(Note("warn", text))
        end = time.monotonic() + RETRY_AFTER_S
        while time.monotonic() < end and not self.stop.asked:
            time.sleep(LOOK_EVERY_S)
        return not self.stop.asked

    # -- one start ------------------------------------------------------------------------------------------------
    def _attempt(self, attempt: int) -> Ended:
        before, reader = container(), LogReader(self)  # before the command can have written a word
        process = self._start(attempt)
        if process is None:
            return Ended(COULD_NOT_START, started=False)
        sampler = self._start_sampler(process.pid)
        self._follow(process, reader)
        self._clear_leftovers(process.pid)
        after = container()
        limit = human_bytes(after.memory_limit_bytes) if after and after.memory_limit_bytes else ""
        ended = Ended(process.returncode, _kills(before), _kills(after), memory_limit=limit)
        if sampler is not None:
            _end_sampler(sampler)
        return ended

    def _start(self, attempt: int) -> subprocess.Popen[bytes] | None:
        environ = {**self.environ, **self.plan.environment, "DOCTOR_RUN_DIR": str(self.run.path),
                   "DOCTOR_RETRY": str(attempt)}  # fmt: skip
        self.stop.new_attempt()
        try:
            process = start_detached(
                self.plan.words, self.run.trainer_log, environment=environ, folder=Path(self.plan.folder)
            )
        except OSError as error:
            why = error.strerror or str(error)
            self._note(
                Note(
                    "fail", t("the command could not be started: {error}", error=f"{why} ({error.filename})")
                )
            )
            return None
        mark = mark_of(process.pid)
        with suppress(OSError):  # a full disk: nobody else can signal it then; we still do
            if mark is not None:
                write_mark(self.run.trainer_pid, mark)
        self._write("run-started", None, pid=process.pid, hostname=socket.gethostname(),
                    command=printable(without_secrets(self.plan.command)), attempt=attempt)  # fmt: skip
        return process

    def _start_sampler(self, pid: int) -> subprocess.Popen[bytes] | None:
        if not self.with_sampler:
            return None
        try:
            return start_sampler(self.run, pid, "--supervised")
        except OSError as error:
            self._note(Note("warn", sampler_trouble(error)))
            return None

    def _follow(self, process: subprocess.Popen[bytes], reader: LogReader) -> None:
        """Read the log and hand on requests to stop until the command has ended."""
        while process.poll() is None:
            reader.read()
            number = self.stop.due(time.monotonic())
            if number is not None:
                self._note(Note("info", t("Stopping: {signal} sent to the command.", signal=number.name)))
                send(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
        reader.end()

    def _clear_leftovers(self, root: int) -> None:
        """After a stop or before another start nothing of the command may go on: it holds memory and ports."""
        if not group_lives(root):
            return
        if not self.stop.asked and self.plan.retries == 0:
            self._note(
                Note(
                    "warn",
                    t("The command ended and left processes behind (process group {group}).", group=root),
                )
            )
            return
        with suppress(ProcessLookupError):
            os.killpg(root, signal.SIGTERM)
        end = time.monotonic() + LEFTOVER_GRACE_S
        while group_lives(root) and time.monotonic() < end:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(root, signal.SIGKILL)

    # -- words ----------------------------------------------------------------------------------------------------
    def _tell(self, ended: Ended, log_begin: int) -> None:
        """Keep how a start failed, explained against the machine of its snapshot, as notes."""
        try:
            tail, lines_before = self._log_tail(log_begin)
            for note in notes_of(ended, tail, lines_before, self._snapshot()):
                self._note(note)
        except (
            Exception
        ) as error:  # whatever it is: the run's last word and what follows it must still happen
            self._note(
                Note(
                    "warn",
                    t("the end could not be explained: {error}", error=f"{type(error).__name__}: {error}"),
                )
            )

    def _snapshot(self) -> Snapshot | None:
        try:
            return load_snapshot(self.run.snapshot)
        except (OSError, ValueError) as error:
            _complain(f"{self.run.snapshot}: {error}")
            return None

    def _log_size(self) -> int:
        try:
            return self.run.trainer_log.stat().st_size
        except OSError:
            return 0

    def _log_tail(self, begin: int) -> tuple[str, int]:
        """Return the end of what this start wrote, and how many lines of the log stand before it."""
        lines = 0
        with open(self.run.trainer_log, "rb") as file:
            start = max(begin, self._log_size() - TAIL_BYTES)
            while file.tell() < start:
                lines += file.read(min(1 << 20, start - file.tell())).count(b"\n")
            return file.read().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"), lines

    def _note(self, note: Note) -> None:
        self._write("note", None, level=note.level, text=_plain(note.text), **note.data)

    def _write(self, kind: str, step: int | None, **data: Any) -> None:
        """Append one event; a full disk loses it and stops nothing."""
        try:
            self.writer.write(kind, step, **data)
        except OSError as error:
            _complain(f"{self.writer.path}: {error}")


class LogReader:
    """Follows ``trainer.log`` from its present end and writes what it tells as events, unless a callback does."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._path = supervisor.run.trainer_log
        self._callback_events = supervisor.run.events / "trainer-0.jsonl"
        self._callback_begin = _size(self._callback_events)
        self._offset = _size(self._path)
        self._progress = LogProgress(time.monotonic)
        self._told_at = time.monotonic()
        self._passed_over = False

    def read(self) -> bool:
        """Read what is new, at most some KB; return whether there was any. A log that was cut short by its writer is
        read from its new end on, one that grows too fast near its end."""
        size = _size(self._path)
        if size <= self._offset:
            self._offset = size
            return False
        with open(self._path, "rb") as file:
            if size - self._offset > BEHIND_BYTES:
                self._pass_over(size - BEHIND_BYTES, file)
            file.seek(self._offset)
            content = file.read(A_LOOK_BYTES)
        self._offset += len(content)
        self._write(self._progress.feed(content))
        if time.monotonic() - self._told_at >= OUTPUT_EVERY_S:
            self._told_at = time.monotonic()
            self._supervisor._write("output", None, bytes=self._offset)
        return True

    def _pass_over(self, offset: int, file: BinaryIO) -> None:
        """Go on with the first line that begins after ``offset``, and say so once."""
        file.seek(offset)
        line = file.readline(A_LOOK_BYTES)
        self._offset = offset + len(line)
        self._progress.passed_over()
        if not self._passed_over:
            self._passed_over = True
            self._supervisor._note(Note("info", t("The command writes faster than its output is read: steps told in parts of it are not counted. "
                                                  "All of it is in trainer.log.")))  # fmt: skip

    def end(self) -> None:
        while self.read():
            continue
        self._write(self._progress.end())

    def _write(self, told: Any) -> None:
        for progress in told:
            if self._callback_tells():
                continue
            self._told_at = time.monotonic()
            self._supervisor.steps = max(self._supervisor.steps, progress.step)
            self._supervisor._write(progress.kind, progress.step, **progress.data)

    def _callback_tells(self) -> bool:
        """Return whether the command writes events of its own: its numbers are exact, those in the log are rounded."""
        return _size(self._callback_events) > self._callback_begin


def container() -> Container | None:
    """Return the control group's limits and counters now; None: they cannot be read."""
    return live_snapshot(Context(), ("container",)).facts.container.value


def _kills(container: Container | None) -> int | None:
    return container.oom_kill_count if container else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _plain(text: Text) -> Any:
    return msgspec.to_builtins(text)


def _complain(line: str) -> None:
    with suppress(OSError):  # supervisor.log lies on the same full disk
        print("supervisor:", line, file=sys.stderr, flush=True)  # noqa: T201


def _end_sampler(sampler: subprocess.Popen[bytes]) -> None:
    sampler.terminate()
    try:
        sampler.wait(5)
    except subprocess.TimeoutExpired:
        sampler.kill()
        sampler.wait()


def steps_told(run: RunDir) -> int:
    """Return the last step that a callback inside the command told."""
    return max((event.step or 0 for event in first_and_last(run.events / "trainer-0.jsonl")), default=0)


def main(argv: list[str]) -> int:
    """Supervise the command of a prepared run directory; return its exit status."""
    run = RunDir(Path(argv[0]).absolute())
    plan = decode_command(run.plan.read_bytes())
    supervisor = Supervisor(run, plan, os.environ, "--no-sampler" not in argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, frame: supervisor.stop.ask(received))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mark = mark_of(os.getpid())
    if mark is not None:
        write_mark(run.supervisor_pid, mark)
    return supervisor.supervise()
