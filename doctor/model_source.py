"""Which trained model a name means: a run's end or checkpoint, a folder of anybody's, or an ONNX file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from doctor.launch import LaunchError
from runner.deploy.foreign import onnx_in, refusal
from runner.rundir import RunDir, find_run, is_run
from runner.text import t

_ADAPTER = "adapter_config.json"


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


def find_source(name: str, checkpoint: str = "") -> Source:
    """Return what ``name`` means: an ONNX file, a folder with a model, a checkpoint, or a run (its name, folder, ``last``).

    ``checkpoint``: ``best``, ``last`` or a step of a run. Empty: its finished model, or where there is none yet its best
    checkpoint.

    Raises:
        FileNotFoundError: none of these.
        LaunchError: no ONNX file of that name, weights in a form that is not opened, a run that has nothing trained, a
            checkpoint of what is no run.
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
    if not is_run(path) and (refused := refusal(path)):
        raise LaunchError(refused)
    return _of_run(find_run(name), checkpoint)


def _is_model(path: Path) -> bool:
    return (path / "config.json").is_file() or (path / _ADAPTER).is_file()


def _of_file(path: Path) -> Source:
    if not path.is_file():
        raise LaunchError(t("there is no file {path}", path=str(path)))
    return Source(path.absolute().parent, onnx=path.absolute())


def _of_folder(path: Path) -> Source:
    """An adapter alone at the end of a run is opened by the run's plan, which knows its base and its classes; a folder of
    an export is its ONNX file."""
    if (onnx := onnx_in(path)) is not None:
        return _of_file(onnx)
    owner = RunDir(path.absolute().parent)
    if path.name != "final" or not is_run(owner.path):
        if refused := refusal(path):
            raise LaunchError(refused)
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
