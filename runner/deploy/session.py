"""An ONNX file opened by onnxruntime, and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

Batch = dict[str, torch.Tensor]


def open_session(path: Path, provider: str = "CPUExecutionProvider", threads: int = 0) -> Any:
    """Return an onnxruntime session that really uses ``provider``.

    Raises:
        RuntimeError: it took another one: onnxruntime falls back to the CPU without an error.
    """
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    used = session.get_providers()[0]
    if used != provider:
        raise RuntimeError(f"onnxruntime used {used}, not {provider}")
    return session


def ask(session: Any, batch: Batch) -> Any:
    """Return an ONNX model's output for a batch, fp32."""
    wanted = {one.name for one in session.get_inputs()}
    given = {name: tensor.numpy() for name, tensor in batch.items() if name in wanted}
    return session.run(None, given)[0].astype("float32")
