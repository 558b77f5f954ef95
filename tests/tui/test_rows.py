"""Rows repaint only where they changed, and bars can be clicked where they show a word."""

from __future__ import annotations

from rich.text import Text as Styled
from textual.app import App, ComposeResult

from doctor.tui.widgets.rows import Rows


class Counting(Rows):
    """Remembers which rows were asked to repaint."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ["one", "two", "three"]
        self.repainted: list[int] = []

    def draw(self, width: int, height: int) -> list[Styled]:
        return [Styled(word) for word in self.words]

    def refresh_line(self, y: int) -> None:
        self.repainted.append(y)
        super().refresh_line(y)


class OneWidget(App[None]):
    def compose(self) -> ComposeResult:
        yield Counting()


async def test_drawing_the_same_again_repaints_nothing() -> None:
    async with OneWidget().run_test(size=(20, 5)) as pilot:
        await pilot.pause()
        rows = pilot.app.query_one(Counting)
        rows.repainted.clear()
        rows.redraw()
        assert rows.repainted == []


async def test_one_changed_row_repaints_alone() -> None:
    async with OneWidget().run_test(size=(20, 5)) as pilot:
        await pilot.pause()
        rows = pilot.app.query_one(Counting)
        rows.repainted.clear()
        rows.words[1] = "TWO"
        rows.redraw()
        assert rows.repainted == [1]


async def test_rows_that_went_away_are_cleared() -> None:
    async with OneWidget().run_test(size=(20, 5)) as pilot:
        await pilot.pause()
        rows = pilot.app.query_one(Counting)
        rows.repainted.clear()
        rows.words = ["one"]
        rows.redraw()
        assert rows.repainted == [1, 2]
        await pilot.pause()
        assert rows.render_line(1).text.strip() == ""


async def test_a_style_of_a_whole_row_is_kept() -> None:
    async with OneWidget().run_test(size=(20, 5)) as pilot:
        rows = pilot.app.query_one(Counting)
        assert any(segment.style and segment.style.bold for segment in rows._strip(Styled("x", "bold")))


async def test_a_wide_character_is_cut_whole_at_the_edge() -> None:
    async with OneWidget().run_test(size=(5, 3)) as pilot:
        rows = pilot.app.query_one(Counting)
        rows.words = ["中文中文"]
        rows.redraw()
        await pilot.pause()
        assert rows.render_line(0).cell_length == rows.size.width


class Log(App[None]):
    """Forty lines, the newest last."""

    def compose(self) -> ComposeResult:
        rows = Rows(lambda width, height: [Styled(f"line {number}") for number in range(40)])
        rows.follow_end = True
        yield rows


async def test_a_log_keeps_its_end_in_view_when_it_gets_less_room() -> None:
    async with Log().run_test(size=(40, 30)) as pilot:
        await pilot.pause()
        rows = pilot.app.query_one(Rows)
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        await pilot.pause()
        assert rows.scroll_offset.y == rows.max_scroll_y == 28
        rows.focus()
        await pilot.press("up", "up")  # the reader looks back: no following any more
        rows.redraw()
        await pilot.pause()
        assert rows.scroll_offset.y == 26
        await pilot.press("end")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        await pilot.pause()
        assert rows.scroll_offset.y == 30
