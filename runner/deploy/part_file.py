"""What an interrupted call has answered already: kept beside the file that was asked for, and gone on from."""

from __future__ import annotations

import csv
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from runner.deploy.answers import Answer
from runner.deploy.answers_file import Writer
from runner.inputs import InputError
from runner.rows import Row
from runner.text import t

_COMPARED_ROWS = 4
_ALIKE_WITHIN = 1e-3
"""Another batch rounds otherwise; another model is further off than this somewhere."""


def part_of(path: Path) -> Path:
    """Return where the answers of an interrupted call lie: ``a.part.csv`` for ``a.csv``."""
    return path.with_name(f"{path.stem}.part{path.suffix}")


def go_on_from(
    part: Path, rows: Iterator[Row], writer: Writer, answer: Callable[[list[Row]], list[Answer]]
) -> None:
    """Copy the answers of ``part`` to ``writer`` and take the rows that they answer from ``rows``.

    ``answer``: asks the model; the last few rows are answered again, since the part may be another model's.

    Raises:
        InputError: there is no part, its rows are not the file's, or its answers not this model's.
    """
    if not part.is_file():
        raise InputError(t("there is no {path} to go on from", path=str(part)))
    last: deque[tuple[Row, dict[str, Any]]] = deque(maxlen=_COMPARED_ROWS)
    for number, values in zip(count(1), _values_of(part)):
        row = next(rows, None)
        if row is None or (values.get("text"), values.get("text_pair", "")) != (row.text, row.pair):
            raise InputError(t("{path}: answer {number} is of another text than row {number} of the file: begin anew, without --resume",
                               path=str(part), number=number))  # fmt: skip
        writer.write(values)
        last.append((row, values))
    now = answer([row for row, _ in last]) if last else []
    for (row, values), again in zip(last, now, strict=True):
        if not _alike(values, writer.values(row, again)):
            raise InputError(t("{path} has answers of another model, or of other options: begin anew, without --resume", path=str(part)))  # fmt: skip


def _values_of(part: Path) -> Iterator[dict[str, Any]]:
    suffix = part.suffix.lower()
    if suffix == ".csv":
        csv.field_size_limit(sys.maxsize)
        with open(part, encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)
    elif suffix == ".parquet":
        import pyarrow.parquet  # type: ignore[import-untyped]

        with pyarrow.parquet.ParquetFile(part) as table:
            for batch in table.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    else:
        with open(part, "rb") as file:
            yield from map(msgspec.json.decode, file)


def _alike(kept: Any, now: Any) -> bool:
    """Is a value that was read back the one that is given now? Tables hold lists and objects as JSON, CSV all as text."""
    if isinstance(now, str) and now[:1] in ("[", "{") and isinstance(kept, str):
        try:
            kept, now = msgspec.json.decode(kept), msgspec.json.decode(now)
        except msgspec.DecodeError:
            return bool(kept == now)
    if isinstance(now, dict):
        return (
            isinstance(kept, dict)
            and kept.keys() == now.keys()
            and all(_alike(kept[name], now[name]) for name in now)
        )
    if isinstance(now, list):
        return isinstance(kept, list) and len(kept) == len(now) and all(map(_alike, kept, now))
    if isinstance(now, float):
        return abs(float(kept) - now) <= _ALIKE_WITHIN
    return str(kept) == str(now)
