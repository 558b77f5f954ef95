"""A trained model on its way out: to ONNX, to answers, to where it is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doctor.model_export import OnnxOptions
    from doctor.model_source import Source
    from runner.deploy.records import Exported
    from runner.deploy.uploading import Standing
    from runner.text import Text


def find_model(name: str, checkpoint: str = "") -> Source:
    """Return the model that a run, a folder or an ONNX file means. Raises FileNotFoundError, LaunchError."""
    from doctor.model_source import find_source

    return find_source(name, checkpoint)


def export_onnx(
    source: Source, options: OnnxOptions, python: str | None, tell: Callable[[Text], None]
) -> Exported:
    """Write a model's ONNX files, compared with torch. Raises LaunchError, BadPython."""
    from doctor.model_export import export_onnx

    return export_onnx(source, options, python, tell)


def predict(source: Source, request: dict[str, Any], python: str | None) -> Iterator[dict[str, Any]]:
    """Yield what a model answers; see :func:`doctor.model_export.predict`. Raises LaunchError, BadPython."""
    from doctor.model_export import predict

    return predict(source, request, python)


def finished_model(
    source: Source, python: str | None, tell: Callable[[Text], None]
) -> AbstractContextManager[Source]:
    """Return the model as a folder to share, for as long as the context lasts. Raises LaunchError, BadPython."""
    from doctor.model_share import finished

    return finished(source, python, tell)


def files_to_share(source: Source) -> dict[str, Path]:
    """Return what of a finished model is copied or sent, by its name there."""
    from doctor.model_share import files_to_share

    return files_to_share(source)


def copy_model(source: Source, target: Path) -> Path:
    """Copy a finished model to a new folder. Raises LaunchError."""
    from doctor.model_share import copy_model

    return copy_model(source, target)


def paths_in(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the files that name a folder of this machine, each with the first that it names."""
    from doctor.model_upload import paths_in

    return paths_in(files)


def look_at_repository(source: Source, repository: str, files: Mapping[str, Path], python: str | None) -> Standing:  # fmt: skip
    """Return what a hub repository is before anything is sent. Raises LaunchError, BadPython."""
    from doctor.model_upload import look_at_repository

    return look_at_repository(source, repository, files, python)


def upload_model(
    source: Source, repository: str, files: Mapping[str, Path], public: bool, python: str | None
) -> str:
    """Send a finished model to a hub repository; return its address. Raises LaunchError, BadPython."""
    from doctor.model_upload import upload_model

    return upload_model(source, repository, files, public, python)
