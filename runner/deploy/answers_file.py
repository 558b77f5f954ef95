"""Answers as a table on disk: CSV, JSON lines or Parquet, flat in memory."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from runner.deploy.answers import Answer
from runner.deploy.records import TABLES
from runner.inputs import InputError
from runner.rows import Row
from runner.text import t

ROW_GROUP = 1000


class Writer:
    """Takes one answer after another; what is written is whole once it is left, by an interrupt too."""

    is_flat = True
    """Can a field hold a single value alone?"""

    def __init__(self, path: Path, paired: bool) -> None:
        self.path, self.paired = path, paired
        self.rows = self.cut_rows = 0
        """How many there are, and of how many the end was not read."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.close()
            return
        with contextlib.suppress(
            OSError, ValueError
        ):  # what went wrong is under way; the file is thrown away
            self.abandon()

    def values(self, row: Row, answer: Answer) -> dict[str, Any]:
        """Return an answer as this form holds it."""
        whole = with_text(row, answer, self.paired)
        return flat(whole) if self.is_flat else whole

    def write(self, values: dict[str, Any]) -> None:
        """Write one answer, as :meth:`values` gives it or as it was read back."""
        self.add(values)
        self.rows += 1
        self.cut_rows += int(values["cut_tokens"]) > 0

    def add(self, values: dict[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def abandon(self) -> None:
        """Let go of a file that is not to be whole."""
        self.close()


def with_text(row: Row, answer: Answer, paired: bool) -> dict[str, Any]:
    """Return an answer behind what it answers: the same fields in the same order for every row."""
    return {"text": row.text, **({"text_pair": row.pair} if paired else {}), **answer}


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Return one row of a table: what is no single value is JSON."""
    return {
        name: value if isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }


class CsvWriter(Writer):
    """UTF-8 with a byte-order mark, so that a spreadsheet shows Chinese."""

    def __init__(self, path: Path, paired: bool) -> None:
        super().__init__(path, paired)
        self._file = open(path, "w", encoding="utf-8-sig", newline="")  # noqa: SIM115 - closed by close
        self._table: csv.DictWriter[str] | None = None

    def add(self, values: dict[str, Any]) -> None:
        if self._table is None:
            self._table = csv.DictWriter(self._file, list(values), restval="", extrasaction="ignore")
            self._table.writeheader()
        self._table.writerow(values)

    def close(self) -> None:
        self._file.close()


class JsonWriter(Writer):
    """One JSON object a line."""

    is_flat = False

    def __init__(self, path: Path, paired: bool) -> None:
        super().__init__(path, paired)
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close

    def add(self, values: dict[str, Any]) -> None:
        self._file.write(msgspec.json.encode(values) + b"\n")

    def close(self) -> None:
        self._file.close()


class ParquetWriter(Writer):
    """Row groups of :data:`ROW_GROUP`."""

    def __init__(self, path: Path, paired: bool) -> None:
        super().__init__(path, paired)
        if importlib.util.find_spec("pyarrow") is None:
            raise InputError(
                t("Parquet needs pyarrow, which is not installed in this interpreter; write .csv or .jsonl")
            )
        self._held: list[dict[str, Any]] = []
        self._file: Any = None

    def add(self, values: dict[str, Any]) -> None:
        self._held.append(values)
        if len(self._held) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]

        table = pyarrow.Table.from_pylist(self._held)
        if self._file is None:
            self._file = pyarrow.parquet.ParquetWriter(self.path, table.schema)
        self._file.write_table(table)
        self._held = []

    def close(self) -> None:
        if self._held or self._file is None:
            self._flush()
        self._file.close()

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()


_WRITERS = dict(zip(TABLES, (CsvWriter, JsonWriter, JsonWriter, ParquetWriter), strict=True))


def open_writer(path: Path, making: Path, paired: bool) -> Writer:
    """Return the writer that the name of ``path`` (one of :data:`TABLES`) asks for; it writes to ``making``.

    ``paired``: the rows have two texts.

    Raises:
        OSError: it cannot be written there.
        InputError: what writes this form is not installed.
    """
    return _WRITERS[path.suffix.lower()](making, paired)
