"""A terminal attached to a run that it started: one progress line, Ctrl-C saves, and the exit status is the run's own."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from doctor.commands import Exit, complain
from doctor.commands.progress import Progress
from doctor.language import say
from doctor.render.metric_names import metric_name
from doctor.render.run_text import figure, progress_line, status_word, words_of
from runner.events import number
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.launch import StartedRun
    from doctor.watching import RunWatcher
    from runner.state import RunState

ASKS_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
EARLY_DEATH_S = 2.0
"""So long a detached start is looked at: an interpreter that cannot import its parts is gone by then."""


class Leave(Exception):  # noqa: N818 - a request, not an error
    """The second Ctrl-C."""


class Signals:
    """Ctrl-C once, SIGTERM or a batch system's warning: the trainer saves and leaves. Ctrl-C again: only this terminal leaves.

    Entered before the trainer is started. A signal while it starts is kept until the trainer has taken its own over: one
    that came before would end it without a word.
    """

    def __init__(self) -> None:
        self._started: StartedRun | None = None
        self._interrupts = 0
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for signal_number in ASKS_TO_STOP:
            self._before[signal_number] = signal.signal(signal_number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for signal_number, handler in self._before.items():
            signal.signal(signal_number, handler)

    def answer_for(self, started: StartedRun) -> None:
        """The trainer is started."""
        self._started = started
        self.hand_on()

    def hand_on(self, at_once: bool = False) -> None:
        """Ask the trainer to stop, if that is wanted and it can take it (``at_once``: also where it cannot yet)."""
        from doctor.probes.marked_processes import catches

        if self._started is None or not self._waiting:
            return
        if at_once or catches(self._started.process.pid, signal.SIGTERM) is not False:
            self._waiting = False
            self._stop(self._started)

    def _on_signal(self, signal_number: int, frame: FrameType | None) -> None:
        if signal_number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                self.hand_on(at_once=True)
                raise Leave
        self._waiting = True
        self.hand_on()

    def _stop(self, started: StartedRun) -> None:
        from doctor.trainer_pid import signal_trainer

        signal_trainer(started.run)
        if sys.stdout.isatty():
            print(flush=True)  # the progress line, and the ^C behind it, stay as they are
        complain(say("saving and stopping ... (Ctrl-C again leaves at once; the run still saves)"))


def begin(
    start: Callable[[], StartedRun], detach: bool = False, tell: Callable[[StartedRun], None] | None = None
) -> int:
    """Start a run with the signals already ours, and show it until it ends (``detach``: until it stands)."""
    with Signals() as signals:
        try:
            started = start()
        except Leave:
            return Exit.INTERRUPTED
        signals.answer_for(started)
        if tell is not None:
            tell(started)
        return detached(started, signals) if detach else attach(started, signals)


def attach(started: StartedRun, signals: Signals, stream: TextIO | None = None) -> int:
    """Show progress until the trainer ends; return the run's own exit status. Called within :class:`Signals`."""
    from doctor.watching import RunWatcher

    stream = stream or sys.stdout
    print(say(t("Run: {path}", path=printable(str(started.run.path)))), file=stream, flush=True)
    if started.sampler_why:
        complain(started.sampler_why)
    watcher = RunWatcher(started.run)
    try:
        _follow(started, watcher, Progress(stream), signals)
    except Leave:
        complain(say(t("left; the run goes on saving: doctor watch {name}", name=str(started.run.path))))
        return Exit.INTERRUPTED
    return finish(started, watcher, stream)


def _follow(started: StartedRun, watcher: RunWatcher, progress: Progress, signals: Signals) -> None:
    while True:
        signals.hand_on()
        ended = started.process.poll() is not None
        if ended:
            watcher.trainer_ended()
        state = watcher.poll()
        progress.show(progress_line(state, watcher.status(), progress.width, progress.unicode), ended)
        if ended:
            return
        time.sleep(0.2)


def finish(started: StartedRun, watcher: RunWatcher, stream: TextIO) -> int:
    """Say how the run ended and where its parts lie; return its exit status."""
    code = exit_status(started.process.returncode)
    lines = list(_ending(watcher, code))
    print("\n".join(lines), file=stream, flush=True)
    return code


def exit_status(returncode: int) -> int:
    """Return a child's status as a shell has it: 128 and the signal's number for one that a signal ended."""
    return returncode if returncode >= 0 else 128 - returncode


def _ending(watcher: RunWatcher, code: int) -> list[str]:
    state, run = watcher.state, watcher.run
    lines = [f"{status_word(watcher.status())} ({say('exit status')} {code})"]
    metrics = state.finished.get("metrics") or {}
    if metrics:
        lines.append(
            "  ".join(f"{metric_name(name)} {figure(number(value))}" for name, value in metrics.items())
        )
    if state.finished.get("error"):
        lines.append(words_of(state.finished["error"]))
    if code not in (0, Exit.STOPPED) and not state.finished:
        lines += [f"  {printable(line)}" for line in watcher.log_tail(12)]
    if state.finished.get("final_dir"):
        lines.append(
            say(t("Model: {path}", path=printable(str(run.path / str(state.finished["final_dir"])))))
        )
    if code == Exit.STOPPED and state.finished:
        lines.append(_what_is_kept(state))
        lines.append(say(t("Go on with: doctor run --resume {path}", path=printable(str(run.path)))))
    from doctor import service

    report, why = service.write_report(watcher)
    lines.append(say(t("Report: {path}", path=printable(str(report)))) if report else say(why) if why else "")
    return [line for line in lines if line]


def _what_is_kept(state: RunState) -> str:
    if not state.checkpoints:
        return say("It had not begun to train: nothing was to be saved.")
    return say(t("Saved: step {step}", step=state.checkpoints[-1].step or 0))


def detached(started: StartedRun, signals: Signals) -> int:
    """Return once the trainer has survived its first moments; else say what it said."""
    from doctor.watching import RunWatcher

    watcher = RunWatcher(started.run)
    end = time.monotonic() + EARLY_DEATH_S
    while started.process.poll() is None and time.monotonic() < end:
        signals.hand_on()
        time.sleep(0.05)
    signals.hand_on(at_once=True)
    if started.process.returncode not in (None, 0):
        watcher.trainer_ended()
        watcher.poll()
        return finish(started, watcher, sys.stdout)
    path = printable(str(started.run.path))
    print(say(t("Run: {path}", path=path)))
    print(say(t("It goes on without this terminal. Watch it: doctor watch {path}", path=path)))
    if started.sampler_why:
        complain(started.sampler_why)
    return Exit.OK
