"""A trained model put to use in the environment that trained it: a child of ours there, its progress and its result.

Our runner's code is copied beside the request, alone: the environment's own packages stay what they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from doctor.launch import LaunchError, copy_runner_to
from doctor.model_source import Source
from doctor.probes import Context
from doctor.probes.deep_child import signal_name
from doctor.running import recorded_python
from runner.rundir import RunDir, is_run
from runner.strings import printable
from runner.text import Text, t

STDERR_TAIL_BYTES = 8192
LEAVE_WITHIN_S = 25.0
"""A little longer than the child gives itself (runner.deploy.work.LEAVE_IN_S)."""
Tell = Callable[[Text], None]

# sys.path[0] is the working directory's: nobody's runner.py or torch.py is to be found before what is meant.
_BOOT = """
import sys
home, verb, request = sys.argv[1:]
sys.path[:] = [home, *(entry for entry in sys.path if entry)]
from runner.deploy.work import main
sys.exit(main(verb, request))
"""


def interpreter_for(source: Source, given: str | None) -> str:
    """Return the interpreter that works with the model: the one given, else the run's, else the session's own.

    Raises:
        LaunchError: none is there.
        doctor.probes.target.BadPython: ``given`` is none.
    """
    run = source.run
    if source.onnx is not None and is_run(source.onnx.parent.parent):
        run = RunDir(source.onnx.parent.parent)
    return recorded_python(run) if given is None and run is not None else interpreter(given)


def interpreter(given: str | None) -> str:
    """Return the interpreter given, else the session's own. Raises LaunchError, BadPython."""
    target = Context(python=given).target
    if target.executable is None:
        raise LaunchError(t("no Python was found to work with; name one with --python PATH"))
    return str(target.executable)


def work(verb: str, request: dict[str, Any], python: str, offline: bool = True) -> Iterator[dict[str, Any]]:
    """Start the child and yield its lines but the failing one; ``offline`` keeps its libraries from the hub.

    Raises:
        LaunchError: the child says why it cannot, or died; with its last words.
    """
    folder = Path(tempfile.mkdtemp(prefix="doctor-model-"))
    try:
        copy_runner_to(folder)
        asked = folder / "request.json"
        asked.write_bytes(_encoded(request))
        with open(folder / "stderr", "w+b") as errors:
            yield from _lines([python, "-B", "-c", _BOOT, str(folder), verb, str(asked)], errors, offline)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _encoded(request: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError as error:  # a name from a disk that was written by another system
        raise LaunchError(t("{name} is not UTF-8 and cannot be handed on: rename it, or name a link to it (ln -s)",
                            name=printable(str(error.object)))) from None  # fmt: skip


def _lines(argv: list[str], errors: Any, offline: bool) -> Iterator[dict[str, Any]]:
    quiet = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    if offline:
        quiet["HF_HUB_OFFLINE"] = "1"
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=quiet
        )
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(
            t("the interpreter {python} could not be started: {error}", python=argv[0], error=why)
        ) from None
    try:
        yield from _told(process)
        code = process.wait()
    except KeyboardInterrupt:
        yield from _last_words(process)
        raise
    finally:
        _leave(process)
    if code:
        raise LaunchError(_died(code, argv[0], errors))


def _told(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for raw in process.stdout:
        yield _checked(raw)


def _last_words(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """After a Ctrl-C: let the child put away what it has, and yield what it says of it; a second Ctrl-C ends that."""
    assert process.stdin is not None
    process.stdin.close()
    yield {"doing": msgspec.to_builtins(t("stopping (Ctrl-C again: at once)"))}
    too_long = threading.Timer(LEAVE_WITHIN_S, process.kill)
    too_long.start()
    try:
        yield from _told(process)
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        raise
    finally:
        too_long.cancel()


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Close the child's stdin, by which it knows that nobody waits for it any more; it removes what it was making."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    try:
        process.wait(LEAVE_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _checked(raw: bytes) -> dict[str, Any]:
    line: dict[str, Any] = msgspec.json.decode(raw)
    if "failed" in line:
        raise LaunchError(msgspec.convert(line["failed"], Text))
    if "os_error" in line:
        raise LaunchError(t("a file could not be read or written: {why}", why=printable(line["os_error"])))
    if "out_of_memory" in line:
        raise LaunchError(
            t("there is not enough memory for this: {why}", why=printable(line["out_of_memory"]))
        )
    return line


# ModuleNotFoundError: No module named 'msgspec'
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'")


def _died(code: int, python: str, errors: Any) -> Text:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    if lines and (missing := _MISSING.match(lines[-1])):
        return t("{python} has no {module}, which this needs: install it there ({python} -m pip install {module}), or name the environment "
                 "that trained with --python", python=python, module=missing[1].partition(".")[0])  # fmt: skip
    how = signal_name(-code) if code < 0 else f"exit status {code}"
    last = printable(lines[-1])[:400] if lines else "-"
    return t("the work with the model ended with {how}: {words}", how=how, words=last)
