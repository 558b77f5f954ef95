"""Charts as pictures made of text."""

from __future__ import annotations

import math

import pytest
from rich.text import Text as Styled

from doctor.tui.widgets.plot import Line, beside, chart, short_number


def picture(lines: list[Line], width: int = 20, height: int = 6, is_log: bool = False) -> list[str]:
    return [row.plain.rstrip() for row in chart(lines, width, height, Styled("t"), is_log, "nothing")]


def test_a_straight_line_goes_from_corner_to_corner() -> None:
    assert picture([Line([0, 1], [0.0, 1.0])]) == [
        "t",
        "       1┤        ⡠⠔⠉",
        "        │     ⣀⠔⠊",
        "        │  ⢀⠤⠊",
        "       0┤⡠⠊⠁",
        "         0         1",
    ]


def test_loose_dots_are_not_joined() -> None:
    assert picture([Line([0, 1], [0.0, 1.0], "dots")]) == [
        "t",
        "       1┤          ⠈",
        "        │",
        "        │",
        "       0┤⡀",
        "         0         1",
    ]


def test_evaluations_are_marks_and_what_is_not_finite_is_a_cross_on_the_upper_edge() -> None:
    rows = picture([Line([0, 5, 10], [1.0, math.nan, 3.0], "dots"), Line([0, 10], [2.0, 2.0], "marks")])
    assert rows[1].startswith("       3┤     ×")
    assert "◆" in rows[2] or "◆" in rows[3]


def test_a_gap_of_nan_breaks_the_line() -> None:
    rows = picture([Line([0, 1, 2, 3, 4], [1.0, 1.0, math.nan, 1.0, 1.0])])
    body = "".join(row.partition("│")[2] or row.partition("┤")[2] for row in rows[1:-1])
    assert "×" in body
    assert "   " in body.replace("×", " ")


def test_one_point_and_a_flat_curve_are_drawn_in_the_middle_with_one_label() -> None:
    rows = picture([Line([7], [0.25])])
    assert sum("0.25" in row for row in rows) == 1
    assert any(set(row) & {chr(code) for code in range(0x2801, 0x2900)} for row in rows)


@pytest.mark.parametrize(
    "lines",
    [[], [Line([], [])], [Line([1, 2], [math.nan, math.inf])]],
    ids=["no-curve", "no-point", "nothing-finite"],
)
def test_without_a_finite_value_the_chart_says_so_in_its_full_height(lines: list[Line]) -> None:
    rows = picture(lines)
    assert rows[0] == "t"
    assert rows[1].strip() == "nothing"
    assert len(rows) == 6


def test_a_logarithmic_scale_puts_the_geometric_mean_in_the_middle() -> None:
    linear = picture([Line([0, 1, 2], [1.0, 100.0, 10000.0], "dots")], height=10)
    logarithmic = picture([Line([0, 1, 2], [1.0, 100.0, 10000.0], "dots")], height=10, is_log=True)

    def row_of_middle(rows: list[str]) -> int:
        return next(index for index, row in enumerate(rows[1:-1]) if row[9:].strip() and 9 < len(row) < 18)

    assert row_of_middle(logarithmic) in (3, 4)
    assert linear != logarithmic
    assert "╢" in logarithmic[1]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_on_a_logarithmic_scale_too_what_is_not_finite_is_a_cross(bad: float) -> None:
    rows = picture([Line([0, 1, 2, 3], [1.0, bad, 0.0, 100.0], "dots")], is_log=True)
    assert "×" in rows[1]


def test_many_points_in_one_column_are_one_stroke_from_lowest_to_highest() -> None:
    values = [0.0 if n % 2 else 1.0 for n in range(4000)]
    rows = picture([Line(range(4000), values)])
    assert all(set(row[9:]) == {"⣿"} for row in rows[1:-1])


@pytest.mark.parametrize(("width", "height"), [(1, 1), (9, 3), (13, 3), (200, 60), (80, 2)])
def test_a_chart_never_exceeds_the_room_it_was_given(width: int, height: int) -> None:
    line = Line(range(100), [math.sin(x / 9) for x in range(100)])
    rows = chart([line], width, height, Styled("a title that is rather long"), empty="no")
    assert len(rows) == height
    if width >= 13:
        assert all(row.cell_len <= width for row in rows)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.41234, "0.4123"), (2e-05, "2e-5"), (12345.0, "12.35k"), (1.5e6, "1.5M"), (-3.0, "-3"),
     (1e12, "1e12"), (math.nan, "nan"), (math.inf, "inf"), (-0.000123456, "-1.23e-4")],
)  # fmt: skip
def test_numbers_fit_eight_columns(value: float, shown: str) -> None:
    assert short_number(value) == shown
    assert len(shown) <= 8


def test_blocks_side_by_side_keep_their_columns_behind_wide_characters() -> None:
    rows = beside([Styled("学习率"), Styled("a")], [Styled("|"), Styled("|"), Styled("|")], 10)
    assert [row.plain for row in rows] == ["学习率     |", "a          |", "           |"]
