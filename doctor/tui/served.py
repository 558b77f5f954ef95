"""One visitor's view in a browser: the same app, its keys and pictures carried by whoever started this process."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from runner.parent_end import get_at_parents_end


def main(argv: Sequence[str]) -> int:
    """Show the view until the visitor leaves. Started by :mod:`doctor.web`, never by hand."""
    parser = argparse.ArgumentParser(prog="doctor --web")
    parser.add_argument("--run")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--readonly", action="store_true")
    options = parser.parse_args(argv)
    _end_with_parent()
    _read_language()
    from doctor.tui.app import serve_app

    return serve_app(options.run, options.pid, options.log, options.readonly)


def _end_with_parent() -> None:
    """A server that is killed cannot say goodbye, and a view without one would stay for ever."""
    parent = os.getppid()
    get_at_parents_end(signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(0)


def _read_language() -> None:
    from doctor.language import choose_language, use_language
    from doctor.settings import read_setting

    use_language(choose_language(None, os.environ, read_setting("lang")))
