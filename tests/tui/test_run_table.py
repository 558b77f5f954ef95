"""The list of runs: columns that stand under their titles, and the orders it can be in."""

from __future__ import annotations

import math

import pytest

from doctor import language
from doctor.render.layout import display_width
from doctor.tui.source import RunRow
from doctor.tui.widgets.run_table import RunTable, in_order

NOW = 1_790_000_000.0
ROWS = (
    RunRow("a", "quickstart-1", "completed", 100, 100, 45.0, {"accuracy": 0.91}, 0.2, NOW - 3600),
    RunRow("b", "a-very-long-name-" + "x" * 40, "running", 7, None, 9.0, {}, math.nan, NOW - 60),
    RunRow("c", "外卖评论", "failed", 50, 200, None, {"accuracy": 0.95}, 0.5, NOW - 5 * 86400),
    RunRow("d", "new", "starting"),
)


@pytest.mark.parametrize("width", [40, 62, 78, 118, 300])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_row_stands_under_the_titles(width: int, lang: str, chinese: None) -> None:
    language.use_language(lang)
    table = RunTable(ROWS, NOW, marked="a")
    lines = [table.line(row, width) for row in ROWS]
    assert all(line.cell_len <= width for line in lines)
    assert table.header(width).cell_len <= width + 4
    name_at = {display_width(line.plain[: line.plain.index(name)])
               for line, name in zip(lines, ("* quick", "a-very", "外卖", "new"), strict=True)}  # fmt: skip
    assert len(name_at) == 1


def test_what_fits_is_shown_and_numbers_stand_to_the_right() -> None:
    table = RunTable(ROWS, NOW)
    assert table.header(118).plain.split() == ["status", "run", "step", "accuracy", "loss", "took", "started"]
    first, third = table.line(ROWS[0], 118).plain, table.line(ROWS[2], 118).plain
    for words in ("100/100", "0.91", "0.2", "45 s", "1 h 00 m ago"):
        assert words in first
    assert "5 d ago" in third
    assert first.index("0.91") == display_width(third[: third.index("0.95")])
    assert "100/100" in table.line(ROWS[0], 62).plain


@pytest.mark.parametrize(
    ("order", "expected"),
    [("newest", "bacd"), ("status", "bdca"), ("metric", "cabd"), ("loss", "acbd"), ("name", "bdac")],
)
def test_each_order_puts_what_has_no_value_last(order: str, expected: str) -> None:
    assert "".join(row.key for row in in_order(ROWS, order)) == expected


def test_the_best_of_a_loss_is_the_lowest() -> None:
    rows = [
        RunRow(key, key, "completed", metrics={"eval_loss": value}) for key, value in (("a", 0.5), ("b", 0.2))
    ]
    assert [row.key for row in in_order(rows, "metric")] == ["b", "a"]
