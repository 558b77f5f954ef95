"""What the driver reported of the cards since the run began; that it could not be read is no silence."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import indent
from doctor.render.xid_text import xid_words
from doctor.tui.view import RunView
from doctor.tui.widgets.panel_rows import label_row, unknown
from doctor.tui.words import one_line
from runner.text import t

XIDS_SHOWN = 5


def xid_rows(view: RunView, width: int) -> Iterator[Styled]:
    """Yield what the driver reported of the cards since the run began; that it could not be read is no silence."""
    for xid in view.xids[-XIDS_SHOWN:]:
        style = (
            "dim"
            if xid.get("is_ours") is False
            else "bold red"
            if xid.get("fault") == "hardware"
            else "yellow"
        )
        yield from (Styled(line, style) for line in indent("! " + xid_words(xid), width, "", "  "))
    if view.xid_source.get("why"):
        yield from unknown(
            say(t("Xid could not be read: {why}", why=one_line(view.xid_source["why"]))), width
        )
    elif view.xid_source and not view.xids:
        yield label_row("Xid", say("none since the run began"))
