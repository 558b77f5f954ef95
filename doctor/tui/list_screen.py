"""What the screens with a list have in common: words above, items below, read in the background; a page beside them where it is wide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from doctor.render.layout import display_width, indent, pad
from doctor.render.run_text import cut
from doctor.tui.background import in_background
from doctor.tui.filtering import FilteredScreen
from doctor.tui.messages import Listed, Trouble
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.rows import Head, Rows
from runner.text import t

Row = TypeVar("Row")
NAME_COLUMNS = 36
"""Of a list whose items have names: at most so many for them."""


class ListScreen(FilteredScreen, Generic[Row]):
    """Items to walk. On a wide screen the one under the cursor is shown beside the list, else it unfolds in place."""

    DEFAULT_CSS = """
    ListScreen #panes { height: 1fr; layout: horizontal; }
    ListScreen #list { height: 1fr; width: 2fr; }
    ListScreen #beside { height: 1fr; width: 3fr; border-left: solid ansi_bright_black; padding-left: 1; display: none; }
    ListScreen.-wide.-beside #beside { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "change_side", t("Page").msgid, key_display="Tab"),
    ]
    HAS_PAGE: ClassVar[bool] = True
    """There is more to say of an item than its rows in the list."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[Row] | None = None
        self.trouble = ""
        self.answer: Styled | None = None
        """What came of the last act."""
        self._is_listing = False

    # -- what a list is made of
    @abstractmethod
    def read_rows(self) -> Sequence[Row]:
        """In the background: return what there is to list."""

    @abstractmethod
    def item_of(self, row: Row) -> Item:
        """Return a row's item, as it is folded: its key and how it is drawn."""

    @abstractmethod
    def about(self, width: int) -> Sequence[Styled]:
        """Return the words above the list."""

    def page(self, key: str, width: int, height: int = 0) -> Sequence[Styled]:
        """Return what is shown of the item ``key`` when it is unfolded, or beside the list, where it is ``height`` rows high."""
        return ()

    def open_item(self, key: str) -> None:
        """Enter, or a click."""
        self.listed.toggle(key)

    def look_at(self, key: str) -> None:
        """The page of ``key`` is about to be seen: have it read."""

    # -- the screen
    def body(self) -> ComposeResult:
        yield Head(self._head, id="head")
        with Container(id="panes"):
            yield ItemList(id="list")
            yield Rows(self._beside, id="beside")

    @property
    def listed(self) -> ItemList:
        return self.query_one("#list", ItemList)

    @property
    def items_shown(self) -> ItemList:
        return self.listed

    @property
    def has_page_beside(self) -> bool:
        return self.HAS_PAGE and self.has_class("-wide")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change_side":
            return self.has_page_beside and bool(self.rows)
        return super().check_action(action, parameters)

    def action_change_side(self) -> None:
        """To the page beside the list, to scroll it, and back."""
        beside = self.query_one("#beside", Rows)
        (self.listed if beside.has_focus else beside).focus()

    def on_mount(self) -> None:
        self.set_class(self.HAS_PAGE, "-beside")
        self.listed.focus()
        self.action_list()

    def action_list(self) -> None:
        """Read the list again, unless that is on its way."""
        if not self._is_listing:
            self._is_listing = True
            self._list()

    @work(group="list")
    async def _list(self) -> None:
        try:
            self.post_message(Listed(await in_background(self.read_rows, "list")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(Listed)
    def _show_list(self, message: Listed) -> None:
        self._is_listing, self.trouble, self.rows = False, "", message.rows
        self.show_rows()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_listing, self.trouble = False, message.words
        self.redraw_head()

    def show_rows(self) -> None:
        """Draw the list anew: after reading it, or when something of it has changed."""
        self.listed.show_items([self._with_page(self.item_of(row)) for row in self.rows or ()])
        self.redraw_head()
        self.refresh_bindings()

    def redraw_head(self) -> None:
        self.query_one("#head", Head).redraw()

    def show_page(self) -> None:
        """Draw the open pages again."""
        self.listed.redraw()
        self.query_one("#beside", Rows).redraw()

    def redraw(self) -> None:
        super().redraw()
        self.refresh_bindings()

    @on(ItemList.Chosen)
    def _open(self, message: ItemList.Chosen) -> None:
        self.look_at(message.key)
        self.open_item(message.key)

    @on(ItemList.Moved)
    def _follow(self, message: ItemList.Moved) -> None:
        self.refresh_bindings()
        if self.has_page_beside and message.key:
            self.look_at(message.key)
            beside = self.query_one("#beside", Rows)
            beside.scroll_home(animate=False)
            beside.redraw()

    def _with_page(self, item: Item) -> Item:
        def rows(width: int, unfolded: bool) -> Sequence[Styled]:
            folded = list(item.rows(width, False))
            if not unfolded or self.has_page_beside:
                return folded
            return [
                *folded,
                *(Styled.assemble("  ", row) for row in self.page(item.key, width - 2)),
                Styled(),
            ]

        return Item(item.key, rows)

    def _beside(self, width: int, height: int) -> Sequence[Styled]:
        key = self.listed.current_key
        return self.page(key, width, height) if key and self.has_page_beside else ()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        said = [] if self.answer is None else indented(self.answer, width)
        if self.trouble:
            return [*said, *indented(Styled(f"✗ {self.trouble}", "bold red"), width)]
        return [*said, *self.about(width)]


def indented(words: Styled, width: int) -> list[Styled]:
    """Return a sentence in as many rows as it takes."""
    return [Styled(line, words.style) for line in indent(words.plain, width, "", "  ")]


def named_rows(name: str, about: str, width: int, names: Sequence[str]) -> list[Styled]:
    """Return an item's name and what it is in two columns, the first as wide as the longest of all ``names``."""
    columns = min(NAME_COLUMNS, max((display_width(one) for one in names), default=0) + len("* "))
    first, *rest = indent(about, max(20, width - columns - 2), "", "")
    out = [Styled.assemble((pad(cut(name, columns), columns) + "  ", "bold"), first)]
    return out + [Styled(" " * (columns + 2) + line) for line in rest]
