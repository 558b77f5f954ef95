"""A trained model put to use in the environment that trained it: written as ONNX, or asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from doctor.launch import LaunchError
from doctor.model_source import Source
from doctor.model_work import Tell, interpreter_for, work
from runner.deploy.records import Exported
from runner.text import Text, t


@dataclass(frozen=True)
class OnnxOptions:
    """What is asked of an export."""

    output: Path
    variants: Sequence[str] = ()
    """``fp16``, ``int8``."""
    exporter: str = "auto"
    opset: int | None = None
    texts: Sequence[str] = ()
    max_length: int | None = None
    """Tokens of a text that are read; None: as many as in training."""
    with_latency: bool = True
    provider: str = "CPUExecutionProvider"


def export_onnx(source: Source, options: OnnxOptions, python: str | None, tell: Tell) -> Exported:
    """Write the ONNX files of a model and compare them with torch.

    Raises:
        LaunchError: no exporter wrote a file that answers as torch does, or what it takes is not installed.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    request: dict[str, Any] = {
        "folder": str(source.folder),
        "run": str(source.run.path.absolute()) if source.run else "",
        "checkpoint": source.checkpoint,
        "out": str(options.output),
        "texts": list(options.texts),
        "max_length": options.max_length,
        "exporter": options.exporter,
        "opset": options.opset,
        "variants": list(options.variants),
        "with_latency": options.with_latency,
        "provider": options.provider,
    }
    for line in work("export", request, interpreter_for(source, python)):
        if "exported" in line:
            return msgspec.convert(line["exported"], Exported)
        tell(msgspec.convert(line["doing"], Text))
    raise LaunchError(t("the export ended without a result"))


def predict(source: Source, request: dict[str, Any], python: str | None) -> Iterator[dict[str, Any]]:
    """Yield the lines of the child that answers: ``answer`` a row, or ``done`` now and then and ``written`` at the end.

    ``request``: the fields of :class:`runner.deploy.predicting.Request` but the model's.

    Raises:
        LaunchError: the model, the file or its column is not there, or the answers cannot be written.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    model = {"onnx": str(source.onnx)} if source.onnx else {"folder": str(source.folder)}
    if source.run is not None and source.checkpoint:
        model |= {"run": str(source.run.path), "checkpoint": source.checkpoint}
    yield from work("predict", {**request, **model}, interpreter_for(source, python))
