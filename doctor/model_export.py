"""A trained model on its way out: to ONNX in the environment that trained it, to a folder, to the hub."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from doctor.launch import LaunchError
from doctor.model_work import Source, Tell, interpreter_for, work
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
        "out": str(options.output),
        "texts": list(options.texts),
        "max_length": source.max_length,
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


def files_to_share(source: Source) -> dict[str, Path]:
    """Return the files of the finished folder by their names there, and the ONNX files of its run beside them."""
    found = {path.relative_to(source.folder).as_posix(): path for path in sorted(source.folder.rglob("*")) if path.is_file()}  # fmt: skip
    onnx = source.run.path / "onnx" if source.run else None
    if onnx is not None and onnx.is_dir():
        found |= {f"onnx/{path.name}": path for path in sorted(onnx.iterdir()) if path.is_file()}
    return found


def copy_model(source: Source, target: Path) -> Path:
    """Copy the finished files to a new folder, whole or not at all.

    Raises:
        LaunchError: the folder holds something already, or cannot be written.
    """
    target = target.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LaunchError(t("{path} holds something already; name a new folder", path=str(target)))
    making = target.with_name(f".{target.name}.making")
    try:
        shutil.rmtree(making, ignore_errors=True)
        for name, path in files_to_share(source).items():
            place = making / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        if target.is_dir():
            target.rmdir()
        making.rename(target)
    except OSError as error:
        shutil.rmtree(making, ignore_errors=True)
        why = error.strerror or str(error)
        raise LaunchError(t("{path} cannot be written: {error}", path=str(target), error=why)) from None
    return target


def upload_model(source: Source, repository: str, public: bool, python: str | None) -> str:
    """Send the finished files to a hub repository, made private where it is new; return its address.

    The login is huggingface_hub's own: HF_TOKEN, or what ``hf auth login`` stored.

    Raises:
        LaunchError: the hub refuses, or cannot be reached.
    """
    files = {name: str(path) for name, path in files_to_share(source).items()}
    request = {"repository": repository, "files": files, "public": public}
    for line in work("upload", request, interpreter_for(source, python), offline=False):
        if "uploaded" in line:
            return str(line["uploaded"])
    raise LaunchError(t("the upload ended without a result"))


def predict(source: Source, request: dict[str, Any], python: str | None) -> Iterator[dict[str, Any]]:
    """Yield the lines of the child that answers: ``answer`` a row, or ``done`` now and then and ``written`` at the end.

    ``request``: the fields of :class:`runner.deploy.predicting.Request` but the model's.

    Raises:
        LaunchError: the model, the file or its column is not there, or the answers cannot be written.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    model = {"onnx": str(source.onnx)} if source.onnx else {"folder": str(source.folder)}
    asked = {**request, **model, "max_length": source.max_length}
    yield from work("predict", asked, interpreter_for(source, python))
