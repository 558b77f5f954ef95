"""How many parameters a model's weight files hold, by their headers alone: a floor where its architecture is not known."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from runner.text import Text, t

HEADER_LIMIT_BYTES = 100 << 20
"""safetensors allows no longer header."""
TRAINED_WHOLE = 16
"""Bytes a parameter: weight, gradient and AdamW's two moments in fp32, as under autocast too."""
FROZEN_LOW = 2
"""Bytes a parameter that stands still in 16 bits."""
PACKED = frozenset({"I8", "U8", "I32", "F8_E4M3", "F8_E5M2"})
"""Types that training does not have weights in: several quantised values may lie in one."""
_MB = 1 << 20


class OnDisk(NamedTuple):
    parameters: int
    """Numbers in the files."""
    file_bytes: int
    is_packed: bool
    """Quantised: a number in the files may be several parameters."""


def weights_in(folder: Path) -> OnDisk | None:
    """Return what the safetensors files of a model's folder hold; None: there are none, or one cannot be read."""
    parameters, file_bytes, packed = 0, 0, False
    files = sorted(folder.glob("*.safetensors"))
    try:
        for path in files:
            file_bytes += path.stat().st_size
            for entry in _header(path):
                parameters += prod(entry["shape"])
                packed = packed or (entry["dtype"] in PACKED and len(entry["shape"]) > 1)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return OnDisk(parameters, file_bytes, packed) if files else None


def _header(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        tree = json.loads(file.read(min(length, HEADER_LIMIT_BYTES)))
    return [entry for name, entry in tree.items() if name != "__metadata__"]


def floor_text(folder: Path) -> Text | None:
    """Return what training takes at least, by the weights that lie in ``folder``; None: that cannot be told."""
    found = weights_in(folder)
    if found is None or not found.parameters:
        return None
    if found.is_packed:
        return t("A floor, from its weight files: they are quantised, and {size} MB of them stand still on the card; adapters and activations come on top.",
                 size=found.file_bytes // _MB)  # fmt: skip
    return t("A floor, from its weight files: {millions} M parameters take {whole} MB trained whole with AdamW, or {frozen} MB standing still in 16 bits under LoRA; activations come on top.",
             millions=round(found.parameters / 1e6, 1), whole=found.parameters * TRAINED_WHOLE // _MB, frozen=found.parameters * FROZEN_LOW // _MB)  # fmt: skip
