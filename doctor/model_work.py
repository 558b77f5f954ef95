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
LEAVE_WITHIN_S = 5.0
_ADAPTER = "adapter_config.json"
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
    checkpoint: str = ""
    """``best``, ``last`` or a step of the run, in place of its finished model."""

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


def find_source(name: str, checkpoint: str = "") -> Source:
    """Return what ``name`` means: an ONNX file, a folder with a model, a checkpoint, or a run (its name, folder, ``last``).

    ``checkpoint``: ``best``, ``last`` or a step of a run. Empty: its finished model, or where there is none yet its best
    checkpoint.

    Raises:
        FileNotFoundError: none of these.
        LaunchError: no ONNX file of that name, a run that has nothing trained, a checkpoint of what is no run.
    """
    path = Path(name)
    if path.suffix == ".onnx" or (_is_model(path) and not is_run(path)):
        source = _of_file(path) if path.suffix == ".onnx" else _of_folder(path)
        if checkpoint and source.run is None:
            raise LaunchError(t("{path} is no run: it has no checkpoints", path=name))
        if not checkpoint or source.run is None:
            return source
        return _of_run(source.run, checkpoint)
    if path.name.startswith("step-") and is_run(path.absolute().parent.parent):
        return _of_run(
            RunDir(path.absolute().parent.parent), path.name.removeprefix("step-").lstrip("0") or "0"
        )
    return _of_run(find_run(name), checkpoint)


def _is_model(path: Path) -> bool:
    return (path / "config.json").is_file() or (path / _ADAPTER).is_file()


def _of_file(path: Path) -> Source:
    if not path.is_file():
        raise LaunchError(t("there is no file {path}", path=str(path)))
    return Source(path.absolute().parent, onnx=path.absolute())


def _of_folder(path: Path) -> Source:
    """An adapter alone at the end of a run is opened by the run's plan, which knows its base and its classes."""
    owner = RunDir(path.absolute().parent)
    if path.name != "final" or not is_run(owner.path):
        return Source(path.absolute())
    return _of_run(owner, "")


def _of_run(run: RunDir, checkpoint: str) -> Source:
    run = RunDir(run.path.absolute())
    if not checkpoint and (run.final / _ADAPTER).is_file():
        return Source(run.final, run, checkpoint="final")
    if not checkpoint and _is_model(run.final):
        return Source(run.final, run)
    if not any(run.checkpoints.glob("step-*")):
        raise LaunchError(
            t("{run} has no finished model and no checkpoint yet: go on with it (doctor run --resume {run})", run=run.name)
        )  # fmt: skip
    return Source(run.checkpoints, run, checkpoint=checkpoint or "best")


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
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=quiet
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
        _leave(process)
    if code:
        raise LaunchError(_died(code, errors))


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


def _died(code: int, errors: Any) -> Text:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    how = signal_name(-code) if code < 0 else f"exit status {code}"
    last = printable(lines[-1])[:400] if lines else "-"
    return t("the work with the model ended with {how}: {words}", how=how, words=last)
