"""A prediction with what was measured here laid over it: the tensors' bytes times one ratio, the rest as it was. Pure."""

from __future__ import annotations

import msgspec

from doctor.corrections import Measurement
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.estimate_outside import Part, outside_parts, with_outside
from runner.text import t

CPU_PARTS = ("held",)
"""On a CPU the process was measured, with what the C library holds: that part is in the ratio."""


def corrected(found: MemoryEstimate, request: MemoryRequest, measurement: Measurement) -> MemoryEstimate:
    """Return ``found`` with its tensors times the measured ratio, its range as wide as the points lie apart."""
    tensors = round(found.allocated_bytes * measurement.ratio)
    outside = [part for part in outside_parts(request, tensors) if part.name not in CPU_PARTS]
    names = {part.name for part in outside_parts(request, 0)}
    own = [part for part in found.parts if part.name not in names]
    difference = Part(
        name="correction", size_bytes=tensors - found.allocated_bytes,
        why=t("{percent} % of what was foretold: measured here on {date} with {card}, torch {torch}",
              percent=round(100 * measurement.ratio), date=measurement.at[:10], card=measurement.key.card,
              torch=measurement.key.torch),
    )  # fmt: skip
    error = measurement.error
    low, high = with_outside(request, tensors * (1 - error), tensors * (1 + error), held=False)
    parts = (*own, difference, *outside)
    return msgspec.structs.replace(
        found, parts=parts, allocated_bytes=tensors, low_bytes=low, high_bytes=high,
        peak_bytes=sum(part.size_bytes for part in parts),
    )  # fmt: skip


def scaled_peak(request: MemoryRequest, factor: float) -> int:
    """Return the arithmetic's peak with its tensors times ``factor``: how a traced or measured run's neighbours are foretold."""
    found = estimate(request)
    return found.peak_bytes + round((factor - 1) * found.allocated_bytes)
