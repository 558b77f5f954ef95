"""A trained model put to use in the environment that trained it: a child of ours there, its progress and its result.

Our runner's code is copied beside the request, alone: the environment's own packages stay what they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from doctor.launch import LaunchError, copy_runner_to
from doctor.probes import Context
from doctor.probes.deep_child import signal_name
from doctor.running import recorded_python
from runner.rundir import RunDir, find_run, is_run
from runner.strings import printable
from runner.text import Text, t

STDERR_TAIL_BYTES = 8192
Tell = Callable[[Text], None]

# sys.path[0] is the working directory's: nobody's runner.py or torch.py is to be found before what is meant.
_BOOT = """
import sys
home, verb, request = sys.argv[1:]
sys.path[:] = [home, *(entry for entry in sys.path if entry)]
from runner.deploy.work import main
sys.exit(main(verb, request))
"""


class Source(msgspec.Struct, frozen=True):
    """A model that a name means."""

    folder: Path
    """With weights, configuration and tokenizer."""
    run: RunDir | None = None
    """The run that it is the end of."""
    onnx: Path | None = None
    """The ONNX file, where one was named."""

    @property
    def max_length(self) -> int | None:
        """How long a text was in training; None: the model's own limit."""
        if self.run is None:
            return None
        from runner.plan import PlanError, decode_plan

        try:
            return decode_plan(self.run.plan.read_bytes()).profile.train.max_length
        except (OSError, PlanError):
            return None


def find_source(name: str) -> Source:
    """Return what ``name`` means: an ONNX file, a folder with a model, or a run (its name, its folder, ``last``).

    Raises:
        FileNotFoundError: none of these.
        LaunchError: a run that has no finished model, or no ONNX file of that name.
    """
    path = Path(name)
    if path.suffix == ".onnx":
        if not path.is_file():
            raise LaunchError(t("there is no file {path}", path=name))
        return Source(path.absolute().parent, onnx=path.absolute())
    if not is_run(path) and (path / "config.json").is_file():
        owner = RunDir(path.absolute().parent)
        return Source(path.absolute(), owner if is_run(owner.path) and path.name == "final" else None)
    run = find_run(name)
    if not (run.final / "config.json").is_file():
        raise LaunchError(
            t(
                "{run} has no finished model yet: go on with it (doctor run --resume {run}) until it ends",
                run=run.name,
            )
        )
    return Source(run.final.absolute(), run)


def interpreter_for(source: Source, given: str | None) -> str:
    """Return the interpreter that works with the model: the one given, else the run's, else the session's own.

    Raises:
        LaunchError: none is there.
        doctor.probes.target.BadPython: ``given`` is none.
    """
    return recorded_python(source.run) if given is None and source.run is not None else interpreter(given)


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
        asked.write_bytes(msgspec.json.encode(request))
        with open(folder / "stderr", "w+b") as errors:
            yield from _lines([python, "-B", "-c", _BOOT, str(folder), verb, str(asked)], errors, offline)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(argv: list[str], errors: Any, offline: bool) -> Iterator[dict[str, Any]]:
    quiet = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    if offline:
        quiet["HF_HUB_OFFLINE"] = "1"
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=quiet
        )
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(
            t("the interpreter {python} could not be started: {error}", python=argv[0], error=why)
        ) from None
    assert process.stdout is not None
    try:
        for raw in process.stdout:
            yield _checked(raw)
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if code:
        raise LaunchError(_died(code, errors))


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


def _died(code: int, errors: Any) -> Text:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    how = signal_name(-code) if code < 0 else f"exit status {code}"
    last = printable(lines[-1])[:400] if lines else "-"
    return t("the work with the model ended with {how}: {words}", how=how, words=last)
