"""What went wrong in a trace is one sentence, however much the child had to say."""

from __future__ import annotations

import pytest

from doctor.exact_memory import _trouble
from doctor.probes.deep_child import Ended

LISTED = "ValueError: Unrecognized configuration class ViTConfig.\nModel type should be one of " + "X, " * 500


@pytest.mark.parametrize(
    "told", [LISTED, "KeyError: " + "k" * 5000], ids=["behind it a list", "one long line"]
)
def test_an_error_is_its_first_line(told: str) -> None:
    said = _trouble(Ended(code=0, told=({"error": told},), stderr=""), 90.0)
    assert said and "\n" not in said and len(said) <= 300 and told.startswith(said)
