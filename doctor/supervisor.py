"""The process that supervises a command of the user's own: starts it, reads its log, says how it ended, starts it again.

It has a session of its own, so it outlives the terminal, and so does what is to happen on finish. The command's output
goes straight into ``trainer.log``: should this process die, the command goes on.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from doctor.callback_events import size_of
from doctor.detached import start_detached
from doctor.ended import Ended, Note, last_exception
from doctor.going_on import GoingOn
from doctor.launch import sampler_trouble, start_sampler
from doctor.leftovers import VARIABLE, Leftovers
from doctor.log_reader import LogReader
from doctor.machine import live_snapshot
from doctor.model import Container
from doctor.on_finish import OnFinish
from doctor.own_metrics import OwnMetrics
from doctor.probes import Context
from doctor.redact_secrets import without_secrets
from doctor.render.layout import human_bytes
from doctor.stopping import HELD_SIGNALS, StopLadder, send
from doctor.supervised_words import SupervisedWords
from doctor.trainer_pid import mark_of, write_mark
from doctor.tries import Place, Tries
from runner.command_plan import CommandPlan, decode_command
from runner.rundir import RunDir
from runner.strings import printable
from runner.text import t

LOOK_EVERY_S = 0.2
COULD_NOT_START = 127


class Supervisor:
    """One command from its first start to its last word."""

    def __init__(
        self,
        run: RunDir,
        plan: CommandPlan,
        environ: Mapping[str, str],
        with_sampler: bool = True,
        context: Context | None = None,
    ) -> None:
        self.run, self.plan, self.with_sampler = run, plan, with_sampler
        self.environ = environ
        self.context = context or Context()
        """Where the control group's counters are read."""
        self.words = SupervisedWords(run)
        self.stop = StopLadder()
        self.begun = time.monotonic()
        self.steps = 0
        self.root: int | None = None
        """The command's process, and its group, in the newest start."""

    # -- the whole ------------------------------------------------------------------------------------------------
    def supervise(self) -> int:
        """Run the command to its end, again after a failure where asked to; return its exit status."""
        tries, going_on = Tries(self.plan.retries), GoingOn(self.run, self.plan)
        while True:
            log_begin = size_of(self.run.trainer_log)
            ended = self._attempt(tries.attempt, going_on)
            failed = ended.code != 0 and not self.stop.asked
            tail, lines_before = self.words.log_tail(log_begin) if failed and ended.started else ("", 0)
            if failed and ended.started:
                self.words.explain(ended, tail, lines_before)
            place = Place(self.steps, going_on.newest_step, last_exception(tail) or str(ended.code))
            if not failed or not ended.started or not self._may_try_again(ended, tries, place):
                break
        if ended.started and (failed or self.stop.asked):
            going_on.tell_newest(self.words.note)
        outcome = "interrupted" if self.stop.asked else "failed" if ended.code else "completed"
        self.words.write("run-finished", None, outcome=outcome, steps=self.steps, exit_code=ended.code,
                    seconds=time.monotonic() - self.begun)  # fmt: skip
        OnFinish(self.run, self.plan, self.stop, self.words.write, self.words.note).carry_out(
            outcome, ended.code
        )
        return ended.code

    def _may_try_again(self, ended: Ended, tries: Tries, place: Place) -> bool:
        """Say that it starts again, or why it does not, and wait a moment; False: it does not, or was stopped meanwhile."""
        why_not = tries.take(place)
        if why_not is not None:
            self.words.note(Note("fail", why_not))
        if why_not is not None or tries.is_over:
            return False
        text = t("Ended with status {code}; started again in {seconds} s ({attempt} of {retries}).",
                 code=ended.code, seconds=round(tries.wait_s), attempt=tries.attempt, retries=self.plan.retries)  # fmt: skip
        self.words.note(Note("warn", text, {"again": tries.attempt}))
        for leftovers in (Leftovers(self.run, group=self.root), Leftovers(self.run)):
            leftovers.end()  # they hold memory and ports
        end = time.monotonic() + tries.wait_s
        while time.monotonic() < end and not self.stop.asked:
            time.sleep(LOOK_EVERY_S)
        return not self.stop.asked

    # -- one start ------------------------------------------------------------------------------------------------
    def _attempt(self, attempt: int, going_on: GoingOn) -> Ended:
        if self.stop.asked:  # before it was started: then it is not
            return Ended(-self.stop.requests[0], started=False)
        before, reader = (
            self._container(),
            LogReader(self.run, self.words.write, self.words.note),
        )  # before it can have written a word
        process = self._start(attempt, going_on)
        if process is None:
            return Ended(COULD_NOT_START, started=False)
        sampler = self._start_sampler(process.pid)
        metrics = OwnMetrics(self.run, self.plan, self.words.write)
        self._follow(process, reader, metrics)
        self.steps = max(self.steps, reader.steps, metrics.steps, reader.callback.last_step())
        self._look_at_leftovers(process.pid)
        after = self._container()
        limit = human_bytes(after.memory_limit_bytes) if after and after.memory_limit_bytes else ""
        ended = Ended(process.returncode, _kills(before), _kills(after), memory_limit=limit)
        if sampler is not None:
            _end_sampler(sampler)
        return ended

    def _start(self, attempt: int, going_on: GoingOn) -> subprocess.Popen[bytes] | None:
        words, variables = going_on.words_and_variables(attempt, self.words.note)
        environ = {**self.environ, **self.plan.environment, VARIABLE: str(self.run.path), **variables}
        self.stop.new_attempt()
        try:
            process = start_detached(
                words, self.run.trainer_log, environment=environ, folder=Path(self.plan.folder)
            )
        except OSError as error:
            why = error.strerror or str(error)
            self.words.note(
                Note(
                    "fail", t("the command could not be started: {error}", error=f"{why} ({error.filename})")
                )
            )
            return None
        self.root = process.pid
        mark = mark_of(process.pid)
        with suppress(OSError):  # a full disk: nobody else can signal it then; we still do
            if mark is not None:
                write_mark(self.run.trainer_pid, mark)
        self.words.write("run-started", None, pid=process.pid, hostname=socket.gethostname(),
                    command=printable(without_secrets(self.plan.command)), attempt=attempt)  # fmt: skip
        return process

    def _start_sampler(self, pid: int) -> subprocess.Popen[bytes] | None:
        if not self.with_sampler:
            return None
        try:
            return start_sampler(self.run, pid, "--supervised")
        except OSError as error:
            self.words.note(Note("warn", sampler_trouble(error)))
            return None

    def _follow(self, process: subprocess.Popen[bytes], reader: LogReader, metrics: OwnMetrics) -> None:
        """Read the log and hand on requests to stop until the command has ended."""
        while process.poll() is None:
            reader.read()
            if not reader.told_elsewhere():
                metrics.look()
            number = self.stop.due(time.monotonic())
            if number is not None:
                self.words.note(
                    Note("info", t("Stopping: {signal} sent to the command.", signal=number.name))
                )
                send(process.pid, number)
                if number == signal.SIGKILL:
                    Leftovers(self.run).send(number)  # ranks with a session of their own
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
        reader.end()
        if not reader.told_elsewhere():
            metrics.look(is_last=True)

    def _look_at_leftovers(self, root: int) -> None:
        """After a stop nothing of the command's group may go on; after another end, what does is said."""
        leftovers = Leftovers(self.run, group=root)
        count = len(leftovers.pids())
        if count and self.stop.asked:
            leftovers.end()
        elif count and self.plan.retries == 0:
            self.words.note(
                Note(
                    "warn",
                    t("The command ended and left processes behind (process group {group}).", group=root),
                )
            )

    def _container(self) -> Container | None:
        """Return the control group's limits and counters now; None: they cannot be read."""
        return live_snapshot(self.context, ("container",)).facts.container.value


def _kills(container: Container | None) -> int | None:
    return container.oom_kill_count if container else None


def _end_sampler(sampler: subprocess.Popen[bytes]) -> None:
    sampler.terminate()
    try:
        sampler.wait(5)
    except subprocess.TimeoutExpired:
        sampler.kill()
        sampler.wait()


def main(argv: list[str]) -> int:
    """Supervise the command of a prepared run directory; return its exit status."""
    run = RunDir(Path(argv[0]).absolute())
    plan = decode_command(run.plan.read_bytes())
    supervisor = Supervisor(run, plan, os.environ, "--no-sampler" not in argv)
    for number in HELD_SIGNALS:
        signal.signal(number, lambda received, frame: supervisor.stop.ask(received))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mark = mark_of(os.getpid())
    if mark is not None:
        write_mark(run.supervisor_pid, mark)
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, HELD_SIGNALS
    )  # one that came since we were started is answered now
    return supervisor.supervise()
