"""The child that has torch: reads one request, tells its progress and its result as JSON lines on what was stdout.

Whatever a library prints goes to stderr, so the lines are ours alone.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import msgspec

from runner.inputs import InputError
from runner.text import Text


class Teller:
    """Writes JSON lines to the stdout that the process was given; everything else that prints there goes to stderr."""

    def __init__(self) -> None:
        self._file: IO[bytes] = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def line(self, **fields: Any) -> None:
        self._file.write(msgspec.json.encode(fields) + b"\n")
        self._file.flush()

    def doing(self, text: Text) -> None:
        self.line(doing=text)


def main(verb: str, request_path: str) -> int:
    """Do what the request asks; a failure is one line with its sentence. Returns the exit status."""
    teller = Teller()
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


def _upload(request: bytes, teller: Teller) -> None:
    from runner.deploy.uploading import Request, upload

    teller.line(uploaded=upload(msgspec.json.decode(request, type=Request)))


_VERBS = {"export": _export, "predict": _predict, "upload": _upload}
