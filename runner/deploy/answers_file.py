"""Answers as a table on disk: CSV, JSON lines or Parquet, flat in memory."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec

from runner.deploy.answers import Answer
from runner.deploy.records import TABLES
from runner.rows import Row

ROW_GROUP = 1000


class Writer:
    """Takes one answer after another; what is written is whole once it is left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, row: Row, answer: Answer) -> None:
        self.add(flat(row, answer))
        self.rows += 1

    def add(self, values: dict[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def flat(row: Row, answer: Answer) -> dict[str, Any]:
    """Return one row of a table: the text, then the answer; what is no single value is JSON."""
    plain = {
        name: value if isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
        for name, value in answer.items()
    }
    return {"text": row.text, **({"text_pair": row.pair} if row.pair else {}), **plain}


class CsvWriter(Writer):
    """UTF-8 with a byte-order mark, so that a spreadsheet shows Chinese."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
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

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close

    def write(self, row: Row, answer: Answer) -> None:
        self.add({"text": row.text, **({"text_pair": row.pair} if row.pair else {}), **answer})
        self.rows += 1

    def add(self, values: dict[str, Any]) -> None:
        self._file.write(msgspec.json.encode(values) + b"\n")

    def close(self) -> None:
        self._file.close()


class ParquetWriter(Writer):
    """Row groups of :data:`ROW_GROUP`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
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


_WRITERS = dict(zip(TABLES, (CsvWriter, JsonWriter, JsonWriter, ParquetWriter), strict=True))


def open_writer(path: Path, making: Path) -> Writer:
    """Return the writer that the name of ``path`` (one of :data:`TABLES`) asks for; it writes to ``making``.

    Raises:
        OSError: it cannot be written there.
    """
    return _WRITERS[path.suffix.lower()](making)
