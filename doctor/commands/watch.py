"""``doctor watch``: a run on the screen, live or over, from any session that can read its directory."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, alerting, browser, view
from doctor.commands.run_resume import no_such_run
from doctor.language import say
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.alert_follow import AlertThread
    from doctor.process_watch import ProcessWatcher
    from doctor.watching import RunWatcher
    from runner.alert_settings import AlertsSection
    from runner.state import RunState

    Watcher = RunWatcher | ProcessWatcher


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        default="last",
        metavar="RUN",
        help=say("a run's directory, its name, or last (default)"),
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--once", action="store_true", help=say("print one screen and leave"))
    form.add_argument(
        "--json", action="store_true", help=say("one JSON object a second until the run is over")
    )
    form.add_argument(
        "--text", action="store_true", help=say("the plain screen, though the full-screen view is there")
    )
    parser.add_argument(
        "--pid", type=int, metavar="PID", help=say("any process instead of a run: its stacks, CPU and memory")
    )
    parser.add_argument(
        "--log", metavar="FILE", type=Path,
        help=say("with --pid: the log to read curves from, or TensorBoard's folder (default: the file its output goes to)"),
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="N", help=say("between two screens (default: 1)")
    )
    parser.add_argument(
        "--alert-test",
        action="store_true",
        help=say("send a test to every --alert, say what came of it, and leave"),
    )
    alerting.configure(parser)
    browser.configure(parser)


def run(namespace: argparse.Namespace) -> int:
    if namespace.log is not None and namespace.pid is None:
        raise CommandError(t("--log goes with --pid: the log of a run is known"), Exit.USAGE)
    in_browser, alerts = browser.is_wanted(namespace), alerting.settings_of(namespace)
    if namespace.alert_test:
        return alerting.send_trial(alerts)
    try:
        watcher = _watcher_of(namespace)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(namespace.name, error), Exit.USAGE) from None
    except PermissionError as error:
        raise CommandError(unreadable(namespace.name, error)) from None
    telling = _tell(watcher, alerts, in_browser)
    try:
        if in_browser:
            return browser.serve(namespace, _view_options(namespace, watcher))
        code = _open_view(namespace, watcher) if _wants_full_screen(namespace) else None
        return _show(watcher, namespace) if code is None else code
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(unreadable(namespace.name, error)) from None
    finally:
        alerting.finish(telling)
        watcher.close()


def _tell(watcher: Watcher, alerts: AlertsSection, looks_itself: bool) -> AlertThread | None:
    from doctor.watching import RunWatcher

    if isinstance(watcher, RunWatcher):
        return alerting.follow_run(watcher.run, alerts)

    def look() -> tuple[RunState, str, bool]:
        # A process is looked at once for all: the screen's looks are the alerts' too, where the screen is here.
        state = watcher.poll() if looks_itself else watcher.state
        return state, watcher.status(), watcher.is_over()

    return alerting.follow(look, alerts, watcher.name)


def _watcher_of(namespace: argparse.Namespace) -> Watcher:
    from doctor import service

    if namespace.pid is not None:
        return _watch_pid(namespace.pid, namespace.log)
    return service.watch_run(namespace.name)


def _open_view(namespace: argparse.Namespace, watcher: Watcher) -> int | None:
    if namespace.pid is None:
        return view.open_view(run=_path_of(watcher))
    from doctor.process_watch import ProcessWatcher

    assert isinstance(watcher, ProcessWatcher)
    return view.open_view(foreign=watcher)


def _path_of(watcher: Watcher) -> str:
    from doctor.watching import RunWatcher

    assert isinstance(watcher, RunWatcher)
    return str(watcher.run.path)


def _view_options(namespace: argparse.Namespace, watcher: Watcher) -> list[str]:
    """Return the options that open the same in a browser's view."""
    if namespace.pid is None:
        return ["--run", _path_of(watcher)]
    log = [] if namespace.log is None else ["--log", str(namespace.log.absolute())]
    return ["--pid", str(namespace.pid), *log]


def _watch_pid(pid: int, log: Path | None) -> ProcessWatcher:
    from doctor import service

    try:
        return service.watch_pid(pid, log)
    except ProcessLookupError:
        raise CommandError(t("there is no process {pid} here", pid=pid), Exit.USAGE) from None
    except OSError as error:
        raise CommandError(unreadable(str(log or pid), error), Exit.USAGE) from None


def unreadable(name: str, error: OSError) -> Text:
    """Return the sentence for a run whose directory is there and cannot be read."""
    why = f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    return t("{run} cannot be read: {error}", run=name, error=why)


def _show(watcher: Watcher, namespace: argparse.Namespace) -> int:
    every_s = max(0.2, namespace.seconds)
    if namespace.json:
        return _stream(watcher, every_s)
    if namespace.once:
        watcher.settle()
        print("\n".join(_screen(watcher)))
        return Exit.OK
    return _refresh(watcher, every_s)


def _wants_full_screen(namespace: argparse.Namespace) -> bool:
    plain = namespace.once or namespace.json or namespace.text
    return not plain and sys.stdout.isatty() and sys.stdin.isatty()


def _screen(watcher: Watcher) -> list[str]:
    from doctor.render.layout import wants_colour
    from doctor.render.run_text import screen

    size = shutil.get_terminal_size((80, 24))
    return screen(
        watcher.name, watcher.state, watcher.status(), watcher.now(),
        width=max(40, min(size.columns, 120)), height=max(12, size.lines - 1),
        colour=wants_colour(sys.stdout),
        unicode=(sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
    )  # fmt: skip


def _refresh(watcher: Watcher, every_s: float) -> int:
    """Redraw until the run is over. Only lines that changed are sent: the line may be slow."""
    live = sys.stdout.isatty()
    shown: list[str] = []
    while True:
        watcher.poll()
        lines = _screen(watcher)
        if live:
            sys.stdout.write(_difference(shown, lines))
            sys.stdout.flush()
        else:
            print("\n".join([*lines, ""]), flush=True)
        shown = lines
        if watcher.is_over():
            return Exit.OK
        time.sleep(every_s if live else max(10.0, every_s))


def _difference(shown: list[str], lines: list[str]) -> str:
    """Return what turns the lines on the screen into the new ones (the whole screen at first)."""
    if not shown:
        return "\x1b[H\x1b[2J" + "\n".join(lines) + "\n"
    changes = [
        f"\x1b[{row + 1};1H{line}\x1b[K"
        for row, line in enumerate(lines)
        if row >= len(shown) or line != shown[row]
    ]
    return "".join([*changes, f"\x1b[{len(lines) + 1};1H\x1b[J"])


def _stream(watcher: Watcher, every_s: float) -> int:
    from runner.events import finite_or_name

    while True:
        watcher.poll()
        over = watcher.is_over()
        print(json.dumps(finite_or_name(watcher.as_dict()), ensure_ascii=True), flush=True)
        if over:
            return Exit.OK
        time.sleep(every_s)
