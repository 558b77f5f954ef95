"""What a run says of its memory: measured beside foretold, and why nothing was foretold."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.language import use_language
from doctor.render.memory_words import memory_words

GIB = 1 << 30
TOLD = {"device": "cuda", "samples": 8, "length": 120, "measured_bytes": 3 * GIB, "predicted_bytes": 2 * GIB, "worst_bytes": 6 * GIB}  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "why", "line"),
    [
        pytest.param(TOLD, "", "3.0 GB measured, 2.0 GB foretold (+50 %; 8 x 120 tokens), 6.0 GB for the longest", id="both"),
        pytest.param({**TOLD, "worst_bytes": 2 * GIB}, "", "3.0 GB measured, 2.0 GB foretold (+50 %; 8 x 120 tokens)", id="no longer ones"),
        pytest.param({"samples": 8, "length": 120, "measured_bytes": GIB}, "compiled code", "1.0 GB measured (8 x 120 tokens); compiled code", id="measured alone"),
        pytest.param({}, "", "", id="nothing told"),
        pytest.param({"measured_bytes": None, "predicted_bytes": GIB}, "", "", id="nothing measured"),
    ],
)  # fmt: skip
def test_memory_in_one_line(memory: dict[str, Any], why: str, line: str) -> None:
    use_language("en")
    assert memory_words(memory, why) == line
