"""Labelled texts, one a row, whatever file they came from; and what was met on the way to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from runner.inputs import InputError
from runner.profile import DataSection
from runner.text import printable, t

Label = str | list[str] | None
SHOWN_COLUMNS = 20


class Row(msgspec.Struct, frozen=True):
    """One labelled text. A label is kept as written; None: the row has none."""

    text: str
    pair: str
    label: Label
    words: tuple[str, ...] = ()
    """Where the text was given as a list of words."""


class NoColumnError(InputError):
    """A file without the column that was named."""


class NotTextError(InputError):
    """A column that holds something else than texts."""

    def __init__(self, column: str, value: Any) -> None:
        self.column, self.kind = printable(column), type(value).__name__
        super().__init__(t("the column {column} holds {kind}, not text", column=self.column, kind=self.kind))


class ReadingNotes:
    """What was met while reading, and where reading is."""

    def __init__(self) -> None:
        self.path, self.line = "", 0
        """Of the row that was handed out last: where it begins, counted from 1 (in a Parquet file: its row)."""
        self.encodings: Counter[str] = Counter()
        self.misshapen_rows = self.nul_characters = self.most_lines = 0
        self.misshapen_at = self.nul_at = self.most_lines_at = ""
        """The first row that did not fit its header, the first zero character, the row over the most lines."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path

    def at(self, path: Path) -> None:
        """Reading has come to a file."""
        self.path, self.line = printable(str(path)), 0

    def misshapen(self) -> None:
        """The row at this place does not fit its header."""
        self.misshapen_rows += 1
        self.misshapen_at = self.misshapen_at or self.place

    def lines_taken(self, count: int) -> None:
        """The row at this place goes over so many lines."""
        if count > self.most_lines:
            self.most_lines, self.most_lines_at = count, self.place


def column_index(path: Path, header: list[str], name: str) -> int:
    """Return where column ``name`` stands.

    Raises:
        NoColumnError: with the columns there are.
        InputError: it stands there twice.
    """
    shown = printable(str(path))
    if header.count(name) == 1:
        return header.index(name)
    if name in header:
        raise InputError(t("{path}: the column {name} stands in the header {count} times; which one is meant cannot be told",
                              path=shown, name=printable(name), count=header.count(name)))  # fmt: skip
    found = ", ".join(_shown_column(column) for column in header[:SHOWN_COLUMNS]) or "-"
    raise NoColumnError(
        t(
            "{path}: there is no column {name} (there are {found}); say data.text and data.label",
            path=shown,
            name=name,
            found=found,
        )
    )


def _shown_column(name: str) -> str:
    """Return a column's name as a person can tell it from another: blanks around it in quotes, not without end."""
    short = printable(name if len(name) <= 40 else name[:40] + "...")
    return short if name == name.strip() and name else f'"{short}"'


def record_row(record: dict[str, Any], data: DataSection) -> Row:
    """Return the row of one JSON, Parquet or hub record.

    Raises:
        NotTextError: a column holds objects, or bytes.
    """
    text = _plain(data.text, record.get(data.text))
    pair = _plain(data.text_pair, record.get(data.text_pair)) if data.text_pair else ""
    label = _plain(data.label, record.get(data.label))
    words = tuple(str(word) for word in text) if isinstance(text, (list, tuple)) else ()
    text = " ".join(words) if words else text
    return Row(
        "" if text is None or text == [] else str(text),
        "" if pair is None else str(pair),
        _label_text(label),
        words,
    )


def _plain(column: str, value: Any) -> Any:
    """Return a value that is a text, a number, or a list of them. Raises NotTextError."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    for part in parts:
        if isinstance(part, (dict, bytes, list)):
            raise NotTextError(column, part)
    return value


def as_tagged(row: Row) -> Row:
    """Return a row of words and one tag a word; what is no list is parted at blanks."""
    label = row.label.split() if isinstance(row.label, str) else row.label
    return Row(row.text, "", label, row.words or tuple(row.text.split()))


def _label_text(label: Any) -> Label:
    if label is None:
        return None
    if isinstance(label, (list, tuple)):
        return [_scalar(item) for item in label]
    return _scalar(label)


def _scalar(value: Any) -> str:
    """Return a label as text: ``1.0`` and ``1`` are the same class, ``True`` is ``1``."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
