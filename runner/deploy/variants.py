"""The ONNX file in fewer bits, by onnxruntime's own converters: half precision, and dynamic int8."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

LARGE_BYTES = 1 << 30
"""From here on weights lie in a file of their own: a protobuf ends at 2 GiB."""


def write_fp16(source: Path, target: Path) -> None:
    """Write half-precision weights and arithmetic; inputs and outputs stay as they are."""
    import onnx  # type: ignore[import-untyped,unused-ignore]
    from onnxruntime.transformers.float16 import (  # type: ignore[import-untyped,unused-ignore]
        convert_float_to_float16,
    )

    large = bytes_of(source) >= LARGE_BYTES
    # Shape inference makes one protobuf of the whole model.
    half: Any = convert_float_to_float16(
        onnx.load(str(source)), keep_io_types=True, disable_shape_infer=large
    )
    beside: dict[str, Any] = {"save_as_external_data": True, "location": f"{target.name}.data"}
    onnx.save(half, str(target), **(beside if large else {}))


def write_int8(source: Path, target: Path) -> None:
    """Write int8 weights, one scale an output channel; activations are quantised as they come."""
    from onnxruntime.quantization import (  # type: ignore[import-untyped,unused-ignore]
        QuantType,
        quantize_dynamic,
    )

    logging.getLogger().setLevel(logging.ERROR)  # it recommends its own preprocessing at every call
    quantize_dynamic(
        str(source), str(target), weight_type=QuantType.QInt8, per_channel=True, reduce_range=False,
        use_external_data_format=bytes_of(source) >= LARGE_BYTES,
    )  # fmt: skip


def bytes_of(path: Path) -> int:
    """Return the size of an ONNX file with the weights beside it (``model.onnx.data``)."""
    return sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))


WRITERS = {"fp16": write_fp16, "int8": write_int8}
