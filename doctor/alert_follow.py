"""Alerts of one run, followed beside whatever else is done: in a thread of ``doctor watch``, or in a process of its own.

``main(RUN_DIR)`` is that process: started with the run where its profile or command line asks for alerts, it lives as long as
the run does and costs the trainer nothing. A webhook that fails, hangs or is slow holds up this process alone.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from doctor.alert_desk import AlertDesk
from doctor.alert_out import Outlet, ring
from doctor.detached import start_detached
from doctor.language import choose_language, current_language, use_language
from doctor.own_code import own_argv
from doctor.settings import read_setting
from doctor.watching import RunWatcher
from runner.alert_settings import AlertsSection, Place, place_of, read_settings
from runner.events import EventWriter
from runner.rundir import RunDir
from runner.state import RunState
from runner.text import Text

LOOK_EVERY_S = 2.0
LEAVE_AFTER_S = 20.0
"""Who leaves waits so long for a message on its way."""
Look = Callable[[], tuple[RunState, str, bool]]
"""Return a run's state, its status, and whether nothing more will come."""


def places_in(settings: AlertsSection) -> list[Place]:
    """Return where alerts go; what was no place was refused when the settings were read."""
    return [place for word in settings.to if isinstance(place := place_of(word), Place)]


def hidden_words() -> tuple[str, ...]:
    """Return what this machine is called: no message carries it."""
    name = socket.gethostname()
    return tuple({name, name.partition(".")[0]} - {"localhost", ""})


class AlertThread:
    """Follows one run in the background of a command. ``troubles`` is what could not be delivered, for the end."""

    def __init__(self, look: Look, settings: AlertsSection, run: str, bell_only: bool = False) -> None:
        places = places_in(settings)
        self._look, self._rings = look, any(place.kind == "bell" for place in places)
        self._desk = AlertDesk(settings, run, hidden_words())
        self._outlet = Outlet([] if bell_only else places, settings.body)
        self._stop = threading.Event()
        self.troubles: dict[str, Text] = {}
        self._thread = threading.Thread(target=self._follow, name="doctor-alerts", daemon=True)

    def start(self) -> AlertThread:
        self._thread.start()
        return self

    def close(self) -> list[Text]:
        """Look once more, wait a little for what is on its way, and return what could not be delivered."""
        self._stop.set()
        self._thread.join(LEAVE_AFTER_S)
        return list(self.troubles.values())

    def _follow(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(LOOK_EVERY_S)
            with suppress(
                OSError
            ):  # a run directory on a network disk comes back, or the command itself says so
                state, status, is_over = self._look()
                self._tell(state, status, is_over)
                is_last = is_last or is_over

    def _tell(self, state: RunState, status: str, is_over: bool) -> None:
        for message in self._desk.look(state, status, is_over):
            if self._rings:
                ring()
            for trouble in self._outlet.deliver(message):
                self.troubles.setdefault(str(trouble), trouble)


class RunAlerts:
    """The process beside a run: what could not be delivered becomes a note in the run, once."""

    def __init__(self, run: RunDir, settings: AlertsSection) -> None:
        self._watcher = RunWatcher(run)
        self._desk = AlertDesk(settings, run.name, hidden_words(), from_start=True)
        self._outlet = Outlet(places_in(settings), settings.body)
        self._writer = EventWriter(run.events / "alerts.jsonl", "alerts")
        self._noted: set[str] = set()

    def follow(self) -> None:
        """Look every two seconds until nothing more will come of the run."""
        is_over = False
        while not is_over:
            is_over = self.look()
            time.sleep(0 if is_over else LOOK_EVERY_S)

    def look(self) -> bool:
        state = self._watcher.poll()
        is_over = self._watcher.is_over()
        for message in self._desk.look(state, self._watcher.status(), is_over):
            for trouble in self._outlet.deliver(message):
                self._note(trouble)
        return is_over

    def _note(self, trouble: Text) -> None:
        if str(trouble) in self._noted:
            return
        self._noted.add(str(trouble))
        with suppress(OSError):  # a full disk loses the note, and no more
            self._writer.write("note", level="warn", text=msgspec.to_builtins(trouble))


def start_alerts(run: RunDir) -> None:
    """Start the process that tells of ``run``, where its settings name somebody to tell. Raises OSError."""
    if not any(place.kind != "bell" for place in places_in(read_settings(run))):
        return
    run.stacks.mkdir(exist_ok=True)
    environment = {**os.environ, "DOCTOR_LANG": current_language()}
    argv = own_argv("doctor.alert_follow", str(run.path))
    start_detached(argv, run.path / "alerts.log", environment=environment, folder=run.stacks)


def main(argv: Sequence[str]) -> int:
    """Follow the run in ``argv[0]`` to its end."""
    use_language(choose_language(None, os.environ, read_setting("lang")))
    run = RunDir(Path(argv[0]))
    with suppress(OSError):
        os.nice(5)
    RunAlerts(run, read_settings(run)).follow()
    return 0
