"""What differs between two environments: a row each in columns where it is wide, the reason under it where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, indent, pad
from doctor.render.snapshot_compare import difference_lines
from doctor.snapshots.differences import Difference
from doctor.tui.widgets.rows import wrapped
from runner.strings import shown

_SUBJECT, _CHANGE = 34, 40
"""Columns that a name and a change may take; a longer one has its reason under it."""
_REASON = 40
"""Fewer columns are too few for a reason beside them."""
_GAP = "  "


def difference_rows(differences: Sequence[Difference], width: int) -> Iterator[Styled]:
    """Yield the rows of differences that mean the same for the result."""
    subject = min(_SUBJECT, max((display_width(shown(one.subject)) for one in differences), default=0))
    change = min(_CHANGE, max((display_width(_change(one)) for one in differences), default=0))
    reason_at = 2 + subject + len(_GAP) + change + len(_GAP)
    for one in differences:
        is_short = display_width(shown(one.subject)) <= subject and display_width(_change(one)) <= change
        if width - reason_at >= _REASON and is_short:
            yield from _in_columns(one, subject, change, width)
        else:
            for line in difference_lines([one], width):
                yield from wrapped(line, width, "dim" if line.startswith("      ") else "")


def _in_columns(one: Difference, subject: int, change: int, width: int) -> Iterator[Styled]:
    head = f"  {pad(shown(one.subject), subject)}{_GAP}{pad(_change(one), change)}{_GAP}"
    source = f" [{one.source}]" if one.source else ""
    first, *rest = indent(shown(say(one.why)) + source, width, head, " " * display_width(head))
    yield Styled.assemble(head, (first[len(head) :], "dim"))
    yield from (Styled(line, "dim") for line in rest)


def _change(one: Difference) -> str:
    return f"{shown(one.a) or '-'} -> {shown(one.b) or '-'}"
