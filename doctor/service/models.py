"""A trained model on its way out: to ONNX, to answers, to where it is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doctor.model_export import OnnxOptions
    from doctor.model_source import Source
    from runner.deploy.records import Exported
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


def upload_model(source: Source, repository: str, public: bool, python: str | None) -> str:
    """Send a finished model to a hub repository; return its address. Raises LaunchError, BadPython."""
    from doctor.model_share import upload_model

    return upload_model(source, repository, public, python)
