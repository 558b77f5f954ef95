"""Before the first step a run shows how far its rows are."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.render.run_text import progress_line
from runner.events import RunEvent
from runner.state import fold


def event(**data: Any) -> RunEvent:
    return RunEvent(seq=0, t=1.0, source="trainer-0", kind="preparing", data=data)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"rows": 500, "rows_total": 2000, "rows_per_s": 100.0, "eta_seconds": 15.0}, "500 of 2000, 100 rows/s, 15 s left"),
        ({"rows": 500, "rows_total": 2000, "rows_per_s": 100.0, "eta_seconds": None}, "500 of 2000, 100 rows/s"),
        ({"rows": 2000, "rows_total": 2000, "rows_per_s": 100.0}, "loading model and data"),
        ({"rows": "many", "rows_total": None}, "loading model and data"),
        ({}, "loading model and data"),
    ],
    ids=["under way", "no end known", "done", "nonsense", "empty"],
)  # fmt: skip
def test_the_line_before_the_first_step(data: dict[str, Any], shown: str) -> None:
    assert progress_line(fold([event(**data)]), "starting").endswith(shown)
