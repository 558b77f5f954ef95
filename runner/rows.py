"""Labelled texts read row by row from CSV, TSV, JSONL, Parquet, plain text or a folder of files; flat in
memory.

Files may be compressed (gzip, zstd, xz, bzip2). Their encoding is found and said; nothing is replaced or dropped in
silence.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from runner.compressed import COMPRESSED, open_bytes
from runner.encodings import decode_bytes, detect_encoding
from runner.inputs import InputError
from runner.profile import DataSection
from runner.text import printable, t

Label = str | list[str] | None


class Row(msgspec.Struct, frozen=True):
    """One labelled text. A label is kept as written; None: the row has none."""

    text: str
    pair: str
    label: Label
    words: tuple[str, ...] = ()
    """Where the text was given as a list of words."""


class NoColumnError(InputError):
    """A file without the column that was named."""


class ReadingNotes:
    """What was met while reading: encodings by count, rows that did not fit their header."""

    def __init__(self) -> None:
        self.encodings: Counter[str] = Counter()
        self.misshapen_rows = 0


def rows_of(paths: Sequence[Path], data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    """Yield the rows of ``paths`` in order.

    Raises:
        InputError: a file of unknown form, without the named columns, or broken; with its path.
    """
    for path in paths:
        kind = data.format if data.format != "auto" else kind_of(path)
        yield from _READERS[kind](path, data, notes)


def kind_of(path: Path) -> str:
    """Return the form of a file by its name; a folder is ``folders``."""
    if path.is_dir():
        return "folders"
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    kinds = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
             ".parquet": "parquet", ".txt": "text"}  # fmt: skip
    if suffixes and suffixes[-1] in kinds:
        return kinds[suffixes[-1]]
    raise InputError(t("{path}: unknown kind of file; say data.format", path=printable(str(path))))


def _open_text(path: Path, data: DataSection, notes: ReadingNotes) -> IO[str]:
    encoding = data.encoding
    if encoding == "auto":
        with open_bytes(path) as file:
            encoding = detect_encoding(file)
    notes.encodings[encoding] += 1
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def _separated(path: Path, data: DataSection, notes: ReadingNotes, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    with _open_text(path, data, notes) as file:
        reader = csv.reader(file, delimiter=delimiter)
        header = next(reader, [])
        text = column_index(path, header, data.text)
        label = column_index(path, header, data.label) if data.label else None
        pair = column_index(path, header, data.text_pair) if data.text_pair else None
        for fields in reader:
            if len(fields) != len(header):
                notes.misshapen_rows += bool(fields)
                continue
            yield Row(
                fields[text],
                fields[pair] if pair is not None else "",
                fields[label] or None if label is not None else None,
            )


def column_index(path: Path, header: list[str], name: str) -> int:
    """Return where column ``name`` stands.

    Raises:
        NoColumnError: with the columns there are.
    """
    if name in header:
        return header.index(name)
    found = ", ".join(printable(column) for column in header) or "-"
    shown = printable(str(path))
    raise NoColumnError(
        t(
            "{path}: there is no column {name} (there are {found}); say data.text and data.label",
            path=shown,
            name=name,
            found=found,
        )
    )


def _csv(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    return _separated(path, data, notes, ",")


def _tsv(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    return _separated(path, data, notes, "\t")


def _jsonl(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    with _open_text(path, data, notes) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                shown = printable(str(path))
                raise InputError(
                    t(
                        "{path}, line {line}: not JSON ({why}); one object a line is wanted",
                        path=shown,
                        line=number,
                        why=str(error),
                    )
                ) from error
            if not isinstance(record, dict):
                notes.misshapen_rows += 1
                continue
            if number == 1:
                column_index(path, list(record), data.text)
            yield record_row(record, data)


def record_row(record: dict[str, Any], data: DataSection) -> Row:
    """Return the row of one JSON, Parquet or hub record."""
    label = record.get(data.label)
    text, pair = record.get(data.text), record.get(data.text_pair) if data.text_pair else ""
    words = tuple(str(word) for word in text) if isinstance(text, (list, tuple)) else ()
    text = " ".join(words) if words else text
    return Row(
        "" if text is None else str(text), "" if pair is None else str(pair), _label_text(label), words
    )


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


def _parquet(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    import pyarrow.parquet  # type: ignore[import-untyped]

    file = pyarrow.parquet.ParquetFile(path)
    wanted = [name for name in (data.text, data.text_pair, data.label) if name]
    for name in wanted:
        column_index(path, list(file.schema_arrow.names), name)
    for batch in file.iter_batches(batch_size=1024, columns=wanted):
        for record in batch.to_pylist():
            yield record_row(record, data)


def _text(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    with _open_text(path, data, notes) as file:
        for line in file:
            if not data.label:
                yield Row(line.rstrip("\r\n"), "", None)
                continue
            label, tab, text = line.rstrip("\r\n").partition("\t")
            if not tab:
                notes.misshapen_rows += bool(line.strip())
                continue
            yield Row(text, "", label or None)


def _folders(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    """``folder/label/any.txt``: sorted by name, so that the order is the same on every machine."""
    for file in sorted(path.glob("*/*.txt"), key=lambda found: found.relative_to(path).as_posix()):
        text, encoding = decode_bytes(file.read_bytes())
        notes.encodings[encoding] += 1
        yield Row(text, "", file.parent.name)


_READERS = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "text": _text,
    "folders": _folders,
}
