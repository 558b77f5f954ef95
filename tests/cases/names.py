"""Names a case may use -> ours: levels, and finding ids that were merged or split."""

from __future__ import annotations

LEVEL_OF: dict[str, str] = {"error": "fail", "warning": "warn", "info": "note"}

ALIASES: dict[str, tuple[str, ...]] = {
    "tokenizers-out-of-range": ("transformers-requirement-out-of-range",),
    "removed-import-adamw": ("removed-import",),
    "removed-arg-evaluation-strategy": ("removed-argument",),
    "removed-arg-no-cuda": ("removed-argument",),
    "renamed-arg-tokenizer": ("removed-argument",),
    "unknown-training-argument": ("removed-argument",),
    "gpu-hardware-fault-xid": ("gpu-hardware-fault",),
    "deepspeed-cuda-toolkit-major-mismatch": ("nvcc-torch-cuda-mismatch",),
    "fused-optimizer-before-cuda": ("optimizer-before-cuda",),
}
"""Their id -> the ids of ours that answer it. An id that is not here is ours."""


def ours(finding_id: str) -> tuple[str, ...]:
    return ALIASES.get(finding_id, (finding_id,))
