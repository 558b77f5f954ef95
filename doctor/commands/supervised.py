"""A terminal attached to a supervised command: its output as it comes, Ctrl-C handed on, the countdown of --on-finish."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

from doctor.commands import Exit
from doctor.commands.attached import exit_status
from doctor.commands.countdown import Countdown
from doctor.commands.handed_signals import HandedSignals
from doctor.commands.talk import tell
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

    with HandedSignals() as signals:
        started = start()
        watcher = RunWatcher(started.run)
        signals.answer_for(started, watcher)
        if detach:
            return detached(started, watcher, signals)
        with beside(started):
            return attach(started, watcher, set_line)


def attach(started: StartedRun, watcher: RunWatcher, set_line: str = "") -> int:
    """Show the command's output until it and what follows it have ended; return its own exit status.

    stdout carries the command's output alone; every word of ours goes to stderr.
    """
    tell(say(t("Run: {path}", path=printable(str(started.run.path)))), *filter(None, [set_line]))
    words = Words(watcher)
    _follow(started, watcher, words)
    return _finish(started, watcher, words)


def _follow(started: StartedRun, watcher: RunWatcher, words: Words) -> None:
    output = Output(started)
    countdown: Countdown | None = None
    with contextlib.ExitStack() as stack:
        while True:
            ended = started.process.poll() is not None
            output.show()
            state = watcher.poll()
            words.show()
            if state.on_finish and countdown is None:
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


class Words:
    """What the supervisor says, on stderr: a failed start and the next one as they come, the end after its status."""

    def __init__(self, watcher: RunWatcher) -> None:
        self._watcher = watcher
        self._shown = 0
        self._end_told = False

    def show(self) -> None:
        """Say what is new, as soon as it is known whether it belongs to the end."""
        state = self._watcher.state
        if state.finished:
            self.tell_end()
            self._tell_notes(len(state.notes))
            return
        again = [index for index, event in enumerate(state.notes) if event.data.get("again")]
        started_again = bool(again) and state.started.get("attempt") == state.notes[again[-1]].data["again"]
        if started_again:
            self._tell_notes(len(state.notes))
        elif again:
            self._tell_notes(again[-1] + 1)

    def tell_end(self) -> None:
        """Say how the command ended, once."""
        if self._end_told:
            return
        self._end_told = True
        state = self._watcher.state
        outcome = str(state.finished.get("outcome") or self._watcher.status())
        tell(f"{status_word(outcome)} ({say('exit status')} {state.finished.get('exit_code', '?')})")

    def _tell_notes(self, end: int) -> None:
        for event in self._watcher.state.notes[self._shown : end]:
            tell(*_note_lines(event.source, event.data))
        self._shown = max(self._shown, end)


def _note_lines(source: str, data: dict[str, Any]) -> Iterator[str]:
    """Yield a note of the supervisor: what went wrong, what confirms it here, what to do."""
    from doctor.render.layout import columns, indent

    if source != "log" or (data.get("level") == "info" and not (data.get("advice") or data.get("again"))):
        return
    width = columns(sys.stderr)
    words = words_of(data.get("text"))
    if data.get("line"):
        place = say(t("line {number}: ", number=data.get("line_number", "?")))
        yield from indent(str(data["line"]), width, place, "  ")
    if data.get("file"):
        words = f"{words} ({printable(str(data['file']))})"
    yield from indent(words, width, "  → " if data.get("advice") else "  ", "    ")


def _finish(started: StartedRun, watcher: RunWatcher, words: Words) -> int:
    code = exit_status(started.process.returncode)
    watcher.trainer_ended()
    state = watcher.poll()
    words.show()
    if not state.finished:
        words.tell_end()
        tell(*_gone_words(started), *(f"  {printable(line)}" for line in _last_lines(started)))
    from doctor import service

    report, why = service.write_report(watcher)
    if report:
        tell(say(t("Report: {path}", path=printable(str(report)))))
    elif why:
        tell(say(why))
    return code


def _gone_words(started: StartedRun) -> Iterator[str]:
    """Yield what it means that the supervisor is gone without a word."""
    from doctor.trainer_pid import trainer_alive

    if trainer_alive(started.run):
        yield say(
            "Its supervisor is gone. The command itself goes on; nobody will tell how it ends or run --on-finish."
        )


def _last_lines(started: StartedRun) -> list[str]:
    """Return why there is no word of a supervisor: what it left in its own log."""
    try:
        text = (started.run.path / "supervisor.log").read_text("utf-8", "replace")
    except OSError as error:
        return [str(error)]
    return text.splitlines()[-12:]


def detached(started: StartedRun, watcher: RunWatcher, signals: HandedSignals) -> int:
    """Return once the command has survived its first moments; else, and where it was asked to stop, say how it ended."""
    end = time.monotonic() + EARLY_DEATH_S
    while (
        started.process.poll() is None
        and (signals.came or time.monotonic() < end)
        and not watcher.poll().finished
    ):
        time.sleep(0.05)
    watcher.poll()
    code = int(watcher.state.finished.get("exit_code") or exit_status(started.process.returncode or 0))
    if code:
        if watcher.state.finished:
            Words(watcher).show()
        else:
            tell(*_last_lines(started))
        return code
    path = printable(str(started.run.path))
    print(say(t("Run: {path}", path=path)))
    print(say(t("It goes on without this terminal. Watch it: doctor watch {path}", path=path)))
    return Exit.OK
