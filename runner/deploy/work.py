"""The child that has torch: reads one request, tells its progress and its result as JSON lines on what was stdout.

Whatever a library prints goes to stderr, so the lines are ours alone.
"""

from __future__ import annotations

import _thread
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from runner.deploy.place import UNFINISHED, discard
from runner.inputs import InputError
from runner.text import Text

LEAVE_IN_S = 20.0
"""How long the main thread has, after its caller went, to come out of what it is in and put its work away."""


class Teller:
    """Writes JSON lines to the stdout that the process was given; everything else that prints there goes to stderr."""

    def __init__(self) -> None:
        self._file: IO[bytes] = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def line(self, **fields: Any) -> None:
        """Write a line; where nobody reads any more that is an interrupt, as the end of stdin is."""
        try:
            self._file.write(msgspec.json.encode(fields) + b"\n")
            self._file.flush()
        except BrokenPipeError:
            raise KeyboardInterrupt from None

    def doing(self, text: Text) -> None:
        self.line(doing=text)


def stop_once() -> None:
    """Make the first signal to stop a KeyboardInterrupt and any other after it nothing: what puts work away is not cut off.

    A terminal that hangs up is not such a signal: its end reaches the caller, and the caller's end this process.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in _STOPS:
        signal.signal(number, _stop)


_STOPS = (signal.SIGINT, signal.SIGTERM)


def _stop(*_: object) -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def watch_caller(home: Path) -> None:
    """End with whoever started this: stdin is a pipe of theirs, and its end is theirs, however they ended.

    The main thread gets :data:`LEAVE_IN_S` to put away what it was making; then it is removed for it.
    """
    threading.Thread(target=_wait_for_the_end, args=(home,), daemon=True).start()


def _wait_for_the_end(home: Path) -> None:
    try:
        while os.read(0, 1024):
            pass
    except OSError:
        return  # no stdin was given: nobody to watch
    shutil.rmtree(home, ignore_errors=True)  # whoever was killed cannot
    _thread.interrupt_main()
    time.sleep(LEAVE_IN_S)
    for path in set(UNFINISHED):
        discard(path)
    os._exit(130)


def main(verb: str, request_path: str) -> int:
    """Do what the request asks; a failure is one line with its sentence. Returns the exit status."""
    teller = Teller()
    stop_once()
    watch_caller(Path(request_path).parent)
    with open(request_path, "rb") as file:
        request = file.read()
    try:
        _VERBS[verb](request, teller)
    except InputError as error:
        teller.line(failed=error.problem)
        return 1
    except MemoryError as error:
        teller.line(out_of_memory=str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        teller.line(
            os_error=f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
        )
        return 1
    return 0


def _export(request: bytes, teller: Teller) -> None:
    from runner.deploy.exporting import Request, export
    from runner.deploy.onnx_file import ExportFailed

    try:
        teller.line(exported=export(msgspec.json.decode(request, type=Request), teller.doing))
    except ExportFailed as error:
        teller.line(failed=error.text)
        sys.exit(1)


def _predict(request: bytes, teller: Teller) -> None:
    from runner.deploy.predicting import Request, predict

    predict(msgspec.json.decode(request, type=Request), teller)


def _assemble(request: bytes, teller: Teller) -> None:
    from runner.deploy.from_run import Assembly, assemble

    assemble(msgspec.json.decode(request, type=Assembly), teller.doing)


def _upload(request: bytes, teller: Teller) -> None:
    from runner.deploy.uploading import Request, upload

    teller.line(uploaded=upload(msgspec.json.decode(request, type=Request)))


def _look(request: bytes, teller: Teller) -> None:
    from runner.deploy.uploading import Request, look

    teller.line(standing=look(msgspec.json.decode(request, type=Request)))


_VERBS = {"look": _look, "export": _export, "predict": _predict, "assemble": _assemble, "upload": _upload}
