"""An ONNX file opened by onnxruntime, and asked; on the device that was named, or not at all."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from runner.inputs import InputError
from runner.text import t

Batch = dict[str, torch.Tensor]
DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")


def require_onnx(*modules: str) -> None:
    """Raise InputError, with the command that installs them, where one of ``modules`` cannot be imported."""
    missing: dict[str, str] = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except (
            ImportError
        ) as error:  # not there, or its libraries are not: libcudart.so.13: cannot open shared object file
            missing[name] = " ".join(str(error).split())[:200]
    if missing:
        raise InputError(
            t("this needs {names} in the environment that trained ({why}): {command}",
              names=", ".join(missing), why="; ".join(missing.values()),
              command=f"{sys.executable} -m pip install onnx onnxscript onnxruntime")
        )  # fmt: skip


def runtime_version() -> str:
    """Return the version of the onnxruntime distribution that is installed; empty: it has no metadata."""
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def check_provider(provider: str) -> None:
    """Raise InputError where this onnxruntime was not built with ``provider``."""
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

    there = onnxruntime.get_available_providers()
    if provider not in there:
        raise InputError(
            t("onnxruntime {version} here has no {provider} (it has {there}): {command}",
              version=onnxruntime.__version__, provider=provider, there=", ".join(there),
              command=f"{sys.executable} -m pip uninstall -y onnxruntime && {sys.executable} -m pip install onnxruntime-gpu")
        )  # fmt: skip


def open_session(path: Path, provider: str = "CPUExecutionProvider", threads: int = 0) -> Any:
    """Return an onnxruntime session that really uses ``provider``.

    Raises:
        InputError: it took another one: onnxruntime falls back to the CPU without an error.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    used = session.get_providers()[0]
    if used != provider:
        raise InputError(
            t("onnxruntime fell back to {used}: {provider} could not be loaded. Its CUDA and cuDNN libraries are missing or of another version: compare `python -c 'import onnxruntime; onnxruntime.print_debug_info()'` with the driver",
              used=used, provider=provider)
        )  # fmt: skip
    return session


def ask(session: Any, batch: Batch) -> Any:
    """Return an ONNX model's output for a batch, fp32."""
    wanted = {one.name for one in session.get_inputs()}
    given = {name: tensor.numpy() for name, tensor in batch.items() if name in wanted}
    return session.run(None, given)[0].astype("float32")
