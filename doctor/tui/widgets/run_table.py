"""Runs as a table: columns as wide as what stands in them, as many as fit, and the orders that the rows can have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text as Styled

from doctor.language import current_language, say
from doctor.render.layout import display_width, human_seconds, pad
from doctor.render.run_text import cut
from doctor.tui.source import RunRow
from doctor.tui.widgets.plot import short_number
from doctor.tui.words import STATUS_STYLES, status_label
from runner.strings import printable
from runner.text import t

GAP = "  "
NAME_WIDTHS = (16, 40)
"""A name has at least the first and at most the second."""
METRICS_SHOWN = 3
LOWER_IS_BETTER = ("loss", "perplexity", "error", "mae", "mse", "rmse", "wer", "cer")
ORDERS = ("newest", "status", "metric", "loss", "name")
_URGENT = (
    "running",
    "starting",
    "stalled",
    "failed",
    "non-finite",
    "lost",
    "damaged",
    "unreadable",
    "stopped",
    "interrupted",
)
"""By status: what goes on, then what needs somebody, then the rest."""


class Column(NamedTuple):
    """``cells`` stand in the order of the rows."""

    title: str
    cells: tuple[str, ...]
    width: int
    is_right: bool = False


class RunTable:
    """``now`` is wall time in seconds since the epoch, ``marked`` the key of a run."""

    def __init__(self, rows: Sequence[RunRow], now: float, marked: str = "") -> None:
        self.rows, self._now, self._marked = rows, now, marked
        self._places = {row.key: place for place, row in enumerate(rows)}
        self._fitted: dict[tuple[int, str], list[Column]] = {}

    def header(self, width: int) -> Styled:
        """Return the titles; the list's own margin stands before them."""
        line = Styled("  ", "dim")
        for column in self._columns(width):
            line.append(_filled(column, column.title) + GAP, "dim underline")
        return line

    def line(self, row: RunRow, width: int) -> Styled:
        """Return a run's row."""
        line = Styled()
        styles = (STATUS_STYLES.get(row.status, "bold"), "bold", "")
        for number, column in enumerate(self._columns(width)):
            style = styles[number] if number < len(styles) else "dim"
            line.append(_filled(column, column.cells[self._places[row.key]]), style).append(GAP)
        line.rstrip()
        return line

    def _columns(self, width: int) -> list[Column]:
        key = (width, current_language())
        if key not in self._fitted:
            self._fitted[key] = _fitting(list(self._all()), width)
        return self._fitted[key]

    def _all(self) -> Iterator[Column]:
        """Yield the columns, those that are needed most first."""
        yield self._column(say("status"), lambda row: status_label(row.status))
        yield self._column(say("run"), self._name)
        yield self._column(say("step"), _progress, is_right=True)
        for name in list(dict.fromkeys(name for row in self.rows for name in row.metrics))[:METRICS_SHOWN]:
            yield self._column(printable(name), _metric(name), is_right=True)
        yield self._column(say("loss"), lambda row: _number(row.loss), is_right=True)
        yield self._column(
            say("took"), lambda row: "" if row.seconds is None else human_seconds(row.seconds), is_right=True
        )
        yield self._column(say("started"), self._started, is_right=True)

    def _column(self, title: str, cell: Callable[[RunRow], str], is_right: bool = False) -> Column:
        cells = tuple(cell(row) for row in self.rows)
        return Column(title, cells, max(display_width(words) for words in (title, *cells)), is_right)

    def _name(self, row: RunRow) -> str:
        return ("* " if row.key == self._marked else "") + printable(row.name)

    def _started(self, row: RunRow) -> str:
        if row.started_at is None:
            return ""
        return say(t("{time} ago", time=_age(max(0.0, self._now - row.started_at))))


def _fitting(columns: list[Column], width: int) -> list[Column]:
    """Return as many columns as fit; the name takes what the others leave it."""
    status, name, *others = columns
    room = width - status.width - len(GAP)
    least, most = NAME_WIDTHS
    wanted = min(name.width, most)
    kept: list[Column] = []
    for column in (one for one in others if any(one.cells)):
        taken = sum(one.width + len(GAP) for one in (*kept, column))
        if room - taken < min(wanted, max(least, wanted - 8) if not kept else wanted):
            break
        kept.append(column)
    left = room - sum(one.width + len(GAP) for one in kept)
    return [status, name._replace(width=max(1, min(wanted, left))), *kept]


def _filled(column: Column, words: str) -> str:
    shown = cut(words, column.width)
    return (
        " " * (column.width - display_width(shown)) + shown if column.is_right else pad(shown, column.width)
    )


def _progress(row: RunRow) -> str:
    return f"{row.step}/{row.steps_total if row.steps_total is not None else '?'}"


def _metric(name: str) -> Callable[[RunRow], str]:
    return lambda row: _number(row.metrics.get(name))


def _number(value: float | None) -> str:
    return "" if value is None else short_number(value)


def _age(seconds: float) -> str:
    return say(t("{days} d", days=int(seconds // 86400))) if seconds >= 2 * 86400 else human_seconds(seconds)


def in_order(rows: Sequence[RunRow], order: str) -> list[RunRow]:
    """Return the rows in one of ORDERS; what has no value comes last."""
    if order == "status":
        return sorted(
            rows, key=lambda row: _URGENT.index(row.status) if row.status in _URGENT else len(_URGENT)
        )
    if order == "name":
        return sorted(rows, key=lambda row: row.name)
    if order == "loss":
        return sorted(rows, key=lambda row: _or_last(row.loss))
    if order == "metric":
        name = metric_of(rows)
        sign = 1.0 if name.lower().rpartition("_")[2] in LOWER_IS_BETTER else -1.0
        return sorted(rows, key=lambda row: _or_last(row.metrics.get(name), sign))
    return sorted(rows, key=lambda row: -(row.started_at or 0.0))


def metric_of(rows: Sequence[RunRow]) -> str:
    """Return the metric that runs are put in order by: the first of the newest run that has one."""
    return next((name for row in rows for name in row.metrics), "")


def _or_last(value: float | None, sign: float = 1.0) -> float:
    return math.inf if value is None or not math.isfinite(value) else sign * value
