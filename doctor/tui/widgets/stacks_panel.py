"""The hottest Python functions of the training processes, self and total, one block a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, indent
from doctor.tui.view import RunView
from doctor.tui.widgets.icicle import icicle
from doctor.tui.widgets.panel_rows import unknown
from doctor.tui.words import one_line
from runner.events import number
from runner.strings import printable
from runner.text import t


def stack_rows(view: RunView, width: int) -> list[Styled]:
    """Return the panel's rows: a table of functions."""
    frames = [frame for frame in view.stacks.get("frames") or () if isinstance(frame, dict)]
    if not frames:
        return list(_why(view.stacks, width)) or [Styled(say("no stack sample yet"), "dim")]
    return [*_why(view.stacks, width), *_counts(view.stacks), *_table(frames, width)]


def icicle_rows(view: RunView, width: int) -> list[Styled]:
    """Return the same time as a picture of who called whom, a block a process."""
    trees = [tree for tree in view.stacks.get("trees") or () if isinstance(tree, dict)]
    if not trees:
        words = say("this run's sampler kept no call trees; i shows the table of functions")
        empty = [Styled(line, "dim") for line in indent(words, width, "", "")]
        return [*_why(view.stacks, width), *empty]
    rows = [*_why(view.stacks, width), *_counts(view.stacks)]
    for tree in trees:
        rows.append(Styled(printable(str(tree.get("process") or "?")), "bold"))
        rows += icicle(tree.get("nodes") or (), width)
    return rows


def _why(stacks: dict[str, Any], width: int) -> Iterator[Styled]:
    why = one_line(stacks.get("why"))
    if why:
        yield from unknown(say(t("stacks could not be read: {why}", why=why)), width)


def _counts(stacks: dict[str, Any]) -> Iterator[Styled]:
    samples, errors = number(stacks.get("samples")), number(stacks.get("errors"))
    if samples is not None:
        words = say(
            t(
                "{samples} {samples:sample|samples}, {errors} of them torn",
                samples=int(samples),
                errors=int(errors or 0),
            )
        )
        held = _gil(stacks)
        yield Styled(f"{words} · {held}", "dim")


def _gil(stacks: dict[str, Any]) -> str:
    """Return how much of the time the GIL was held, and by whom: a main thread that waits for it is slow for that."""
    gil, main = number(stacks.get("gil_share")), number(stacks.get("gil_main_share"))
    if gil is None:
        return say("GIL: not told by these samples")
    if main is None:
        return say(t("GIL held {share}", share=f"{gil:.0%}"))
    return say(t("GIL held {share}, by the main thread {main}", share=f"{gil:.0%}", main=f"{main:.0%}"))


def _table(frames: list[dict[str, Any]], width: int) -> Iterator[Styled]:
    heads = [" " * (6 - display_width(word)) + word for word in (say("self"), say("total"))]
    yield Styled(f"{heads[0]} {heads[1]}  " + say("function"), "dim")
    for process, members in _by_process(frames).items():
        if process:
            yield Styled(printable(process), "bold")
        for frame in sorted(members, key=_hotness, reverse=True):
            yield _frame_row(frame, width)


def _by_process(frames: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for frame in frames:
        groups.setdefault(str(frame.get("process") or ""), []).append(frame)
    return groups


def _hotness(frame: dict[str, Any]) -> tuple[float, float]:
    return number(frame.get("self_share")) or 0.0, number(frame.get("total_share")) or 0.0


def _frame_row(frame: dict[str, Any], width: int) -> Styled:
    shares = [number(frame.get(key)) for key in ("self_share", "total_share")]
    numbers = " ".join(f"{'?' if share is None else format(share, '.0%'):>6}" for share in shares)
    function = printable(str(frame.get("function") or "?"))
    row = Styled.assemble((numbers, "bold" if (shares[0] or 0) >= 0.1 else ""), "  ", function, "  ")
    place = printable(str(frame.get("file") or ""))
    if place and frame.get("line"):
        place += f":{frame['line']}"
    room = width - row.cell_len
    return row.append(_end_of(place, room), "dim") if room > 8 else row


def _end_of(place: str, room: int) -> str:
    """Return ``place`` cut on the left to ``room`` columns: the end of a path tells more than its start."""
    if display_width(place) <= room:
        return place
    place = place[-4 * room :]
    while place and display_width(place) >= room:
        place = place[1:]
    return "…" + place
