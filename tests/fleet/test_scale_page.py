"""docs/scale.md shows what the arithmetic says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale import tables, wire_bytes

PAGE = Path(__file__).parent.parent.parent / "docs" / "scale.md"


def test_every_line_of_the_tables_stands_on_the_page() -> None:
    lines = set(PAGE.read_text("utf-8").splitlines())
    assert [line for line in tables() if line and line not in lines] == []


@pytest.mark.parametrize(
    ("strategy", "sent"),
    [
        pytest.param("ddp", 2 * 4e9 * 7 / 8, id="DDP: gradients there and back"),
        pytest.param("zero2", (4e9 + 4e9) * 7 / 8, id="ZeRO-2: gradients there, weights back"),
        pytest.param("zero3", (4e9 + 2 * 4e9) * 7 / 8, id="ZeRO-3: weights twice, gradients once"),
    ],
)
def test_what_a_card_sends_is_counted_by_the_collectives(strategy: str, sent: float) -> None:
    assert wire_bytes(10**9, strategy, 8) == pytest.approx(sent)  # type: ignore[arg-type]
