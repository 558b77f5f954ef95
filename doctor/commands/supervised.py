"""A terminal attached to a supervised command: its output as it comes, Ctrl-C handed on, the countdown of --on-finish."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

from doctor.commands import Exit, complain
from doctor.commands.attached import exit_status
from doctor.language import say
from doctor.render.run_text import status_word, words_of
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.launch import StartedRun
    from doctor.watching import RunWatcher

LOOK_EVERY_S = 0.1
EARLY_DEATH_S = 2.0


def begin(
    start: Callable[[], StartedRun],
    detach: bool,
    set_line: str,
    beside: Callable[[StartedRun], AbstractContextManager[None]],
) -> int:
    """Start a command with the signals already ours, and show it until it ends (``detach``: until it stands).

    ``beside`` goes on as long as the terminal is attached.
    """
    from doctor.watching import RunWatcher

    with _Signals() as signals:
        started = start()
        watcher = RunWatcher(started.run)
        signals.answer_for(started, watcher)
        if detach:
            return detached(started, watcher, signals)
        with beside(started):
            return attach(started, watcher, signals, set_line)


def attach(started: StartedRun, watcher: RunWatcher, signals: _Signals, set_line: str = "") -> int:
    """Show the command's output until it and what follows it have ended; return its own exit status.

    stdout carries the command's output alone; every word of ours goes to stderr.
    """
    _tell(say(t("Run: {path}", path=printable(str(started.run.path)))), *filter(None, [set_line]))
    _follow(started, watcher, signals)
    return _finish(started, watcher)


def _follow(started: StartedRun, watcher: RunWatcher, signals: _Signals) -> None:
    output = Output(started)
    countdown: Countdown | None = None
    with contextlib.ExitStack() as stack:
        while True:
            ended = started.process.poll() is not None
            signals.hand_on()
            output.show()
            state = watcher.poll()
            if state.on_finish.get("state") == "waiting" and countdown is None:
                _tell_end(watcher)
                countdown = stack.enter_context(Countdown(started, state.on_finish))
            if countdown is not None:
                countdown.look(state.on_finish)
            if ended:
                return
            time.sleep(LOOK_EVERY_S)


class Output:
    """Copies what is new in ``trainer.log`` to stdout, byte for byte: it is the user's own command that speaks."""

    def __init__(self, started: StartedRun) -> None:
        self._file: BinaryIO = open(started.run.trainer_log, "rb")  # noqa: SIM115 - as long as this terminal is attached
        self._stdout = sys.stdout.buffer

    def show(self) -> None:
        while content := self._file.read(1 << 16):
            self._stdout.write(content)
        self._stdout.flush()


class _Signals:
    """Ctrl-C and SIGTERM go to the command, by way of its supervisor; again: the next harder signal. During the countdown
    they cancel it.

    Entered before the supervisor is started: what comes before it stands is kept, and handed on as soon as it does.
    """

    def __init__(self) -> None:
        self._started: StartedRun | None = None
        self._watcher: RunWatcher | None = None
        self._before: dict[int, Any] = {}
        self._kept: list[int] = []
        self._handing_on = False

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def answer_for(self, started: StartedRun, watcher: RunWatcher) -> None:
        """The supervisor is started; it takes signals once it has written its mark."""
        self._started, self._watcher = started, watcher
        self.hand_on()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._kept.append(number)
        self.hand_on()  # at once: the terminal may be waiting for whoever reads its output

    def hand_on(self) -> None:
        """Hand on what is kept, as far as there is somebody to take it; a signal meanwhile is handed on here too."""
        if self._started is None or self._handing_on:
            return
        self._handing_on = True
        try:
            while self._kept and self._take(self._started, self._kept[0]):
                del self._kept[0]
        finally:
            self._handing_on = False

    def _take(self, started: StartedRun, number: int) -> bool:
        from doctor import service
        from doctor.trainer_pid import signal_trainer

        if self._watcher is not None and self._watcher.state.on_finish.get("state") == "waiting":
            service.cancel_on_finish(started.run)
            return True
        if not signal_trainer(started.run, number):
            return started.process.poll() is not None  # not yet there: kept; gone: nobody is left to take it
        complain(say("stopping the command ... (Ctrl-C again: SIGTERM, then SIGKILL)"))
        return True


class Countdown:
    """The seconds before ``--on-finish`` runs, counted on stderr; any key in this terminal cancels it."""

    def __init__(self, started: StartedRun, on_finish: dict[str, Any]) -> None:
        self._run = started.run
        self._at = float(on_finish["at"])
        self._command = printable(str(on_finish["command"]))
        self._terminal: list[Any] | None = None
        self._shown = -1
        self._over = False

    def __enter__(self) -> Countdown:
        if sys.stderr.isatty() and _in_foreground():
            self._terminal = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno())
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # keys from before are no answer
        else:
            path = printable(str(self._run.cancel_on_finish))
            _tell(say(t("In {seconds} s: {command}   (cancel: touch {path})",
                        seconds=self._left(), command=self._command, path=path)))  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._terminal)

    def _left(self) -> int:
        return max(0, round(self._at - time.time()))

    def look(self, on_finish: dict[str, Any]) -> None:
        """Count on, and cancel at a key."""
        state = on_finish.get("state")
        if state != "waiting":
            if not self._over:
                self._over = True
                self._end_line()
                _tell(_turn(str(state), self._command))
            return
        if self._terminal is None:
            return
        if self._left() != self._shown:
            self._shown = self._left()
            words = say(
                t("In {seconds} s: {command}   (any key cancels)", seconds=self._shown, command=self._command)
            )
            sys.stderr.write(f"\r{words}\x1b[K")
            sys.stderr.flush()
        if select.select([sys.stdin], [], [], 0)[0] and not self._run.cancel_on_finish.exists():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            from doctor import service

            service.cancel_on_finish(self._run)

    def _end_line(self) -> None:
        if self._terminal is not None:
            sys.stderr.write("\n")


def _in_foreground() -> bool:
    """Return whether keys of the terminal come to us; a job in the background that asked for them would be stopped."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # stdin is no terminal, or not ours
        return False


def _turn(state: str, command: str) -> str:
    if state == "cancelled":
        return say(t("Cancelled; not run: {command}", command=command))
    return say(t("Running: {command}", command=command))


def _finish(started: StartedRun, watcher: RunWatcher) -> int:
    code = exit_status(started.process.returncode)
    watcher.trainer_ended()
    state = watcher.poll()
    if not state.on_finish:
        _tell_end(watcher)
    if not state.finished:
        _tell(*(f"  {printable(line)}" for line in _last_lines(started)))
    from doctor import service

    report, why = service.write_report(watcher)
    if report:
        _tell(say(t("Report: {path}", path=printable(str(report)))))
    elif why:
        _tell(say(why))
    return code


def _tell_end(watcher: RunWatcher) -> None:
    """Say how the command ended and, for a failure, what that means here."""
    state = watcher.state
    code = state.finished.get("exit_code", "?")
    sys.stdout.flush()
    _tell(
        f"{status_word(str(state.finished.get('outcome') or watcher.status()))} ({say('exit status')} {code})"
    )
    _tell(*_explanation(watcher))


def _explanation(watcher: RunWatcher) -> Iterator[str]:
    """Yield the notes of the last start's end: what went wrong, what confirms it here, what to do."""
    from doctor.render.layout import columns, indent

    width = columns(sys.stderr)
    for event in watcher.state.notes:
        if event.source != "log" or (event.data.get("level") == "info" and not event.data.get("advice")):
            continue
        words = words_of(event.data.get("text"))
        if event.data.get("line"):
            place = say(t("line {number}: ", number=event.data.get("line_number", "?")))
            yield from indent(str(event.data["line"]), width, place, "  ")
        mark = "  → " if event.data.get("advice") else "  "
        yield from indent(words, width, mark, "    ")


def _last_lines(started: StartedRun) -> list[str]:
    """Return why there is no word of a supervisor: what it left in its own log."""
    try:
        text = (started.run.path / "supervisor.log").read_text("utf-8", "replace")
    except OSError as error:
        return [str(error)]
    return text.splitlines()[-12:]


def _tell(*lines: str) -> None:
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def detached(started: StartedRun, watcher: RunWatcher, signals: _Signals) -> int:
    """Return once the command has survived its first moments; else say how it ended."""
    end = time.monotonic() + EARLY_DEATH_S
    while started.process.poll() is None and time.monotonic() < end and not watcher.poll().finished:
        signals.hand_on()
        time.sleep(0.05)
    if watcher.state.finished.get("exit_code") or started.process.returncode:
        _tell_end(watcher)
        return int(watcher.state.finished.get("exit_code") or exit_status(started.process.returncode or 0))
    path = printable(str(started.run.path))
    print(say(t("Run: {path}", path=path)))
    print(say(t("It goes on without this terminal. Watch it: doctor watch {path}", path=path)))
    return Exit.OK
