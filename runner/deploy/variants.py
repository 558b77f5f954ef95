"""The ONNX file in fewer bits, by onnxruntime's own converters: half precision, and dynamic int8."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any


def write_fp16(source: Path, target: Path) -> None:
    """Write half-precision weights and arithmetic; inputs and outputs stay as they are."""
    import onnx  # type: ignore[import-untyped,unused-ignore]
    from onnxruntime.transformers.float16 import (  # type: ignore[import-untyped,unused-ignore]
        convert_float_to_float16,
    )

    half: Any = convert_float_to_float16(onnx.load(str(source)), keep_io_types=True)
    onnx.save(half, str(target))


def write_int8(source: Path, target: Path) -> None:
    """Write int8 weights, one scale an output channel; activations are quantised as they come."""
    from onnxruntime.quantization import (  # type: ignore[import-untyped,unused-ignore]
        QuantType,
        quantize_dynamic,
    )

    logging.getLogger().setLevel(logging.ERROR)  # it recommends its own preprocessing at every call
    quantize_dynamic(
        str(source), str(target), weight_type=QuantType.QInt8, per_channel=True, reduce_range=False
    )


WRITERS = {"fp16": write_fp16, "int8": write_int8}
