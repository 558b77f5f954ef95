"""Files made into rows: CSV, TSV, JSONL, Parquet, plain text or a folder of files; flat in memory.

Files may be compressed (gzip, zstd, xz, bzip2). Their encoding is found and said; what does not fit is counted with the
place of the first, and a file that cannot be read is refused by name and line. Nothing is replaced or dropped in silence.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from runner.compressed import COMPRESSED, open_bytes
from runner.encodings import decode_bytes, detect_encoding
from runner.inputs import InputError
from runner.profile import DataSection
from runner.rows import ReadingNotes, Row, column_index, record_row
from runner.text import printable, t
from runner.unreadable import in_words, refuse_foreign

Reader = Callable[[Path, DataSection, ReadingNotes], Iterator[Row]]


def rows_of(paths: Sequence[Path], data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    """Yield the rows of ``paths`` in order.

    Raises:
        InputError: a file of unknown form, without the named columns, or broken; with its path and line.
    """
    for path in paths:
        notes.at(path)
        kind = data.format if data.format != "auto" else kind_of(path)
        with in_words(path, data, notes):
            refuse_foreign(path, kind)
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
    try:
        codecs.lookup(encoding)
    except LookupError as error:  # unknown encoding: utf-9
        raise InputError(t("data.encoding: {why}", why=str(error))) from error
    notes.encodings[encoding] += 1
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def _without_zeros(file: Iterable[str], notes: ReadingNotes) -> Iterator[str]:
    """Yield the lines without zero characters, which a disk leaves where it lost what was written."""
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            notes.nul_at = notes.nul_at or f"{notes.path}:{number}"
            notes.nul_characters += line.count("\0")
            line = line.replace("\0", "")
        yield line


_END = "\x1aend of the file\x1a"
"""A line after the last: within a quote that nobody closed it is a part of that quote."""


def _with_end(lines: Iterable[str]) -> Iterator[str]:
    yield from lines
    yield _END


def _separated(path: Path, data: DataSection, notes: ReadingNotes, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    with _open_text(path, data, notes) as file:
        reader = csv.reader(_with_end(_without_zeros(file, notes)), delimiter=delimiter)
        header = next(reader)
        if header == [_END]:
            raise InputError(t("{path} is empty", path=notes.path))
        _refuse_open_quote(header, notes, 1)
        text = column_index(path, header, data.text)
        label = column_index(path, header, data.label) if data.label else None
        pair = column_index(path, header, data.text_pair) if data.text_pair else None
        before = reader.line_num
        for fields in reader:
            notes.line, lines, before = before + 1, reader.line_num - before, reader.line_num
            if fields == [_END]:
                return
            _refuse_open_quote(fields, notes, notes.line)
            if lines > 1:
                notes.lines_taken(lines)
            if len(fields) != len(header):
                if fields:
                    notes.misshapen()
                continue
            yield Row(
                fields[text],
                fields[pair] if pair is not None else "",
                fields[label] or None if label is not None else None,
            )


def _refuse_open_quote(fields: list[str], notes: ReadingNotes, line: int) -> None:
    if fields and fields[-1].endswith(_END):
        raise InputError(t("{path}, line {line}: a quote is opened here and never closed: all after it would be one text",
                           path=notes.path, line=line))  # fmt: skip


def _csv(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    return _separated(path, data, notes, ",")


def _tsv(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    return _separated(path, data, notes, "\t")


def _jsonl(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    is_first = True
    with _open_text(path, data, notes) as file:
        for number, line in enumerate(file, start=1):
            notes.line = number
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise _not_json(notes, line, str(error)) from error
            if not isinstance(record, dict):
                if is_first and isinstance(record, list):
                    raise _not_json(notes, line, "a list")
                notes.misshapen()
                continue
            if is_first:
                column_index(path, list(record), data.text)
                is_first = False
            yield record_row(record, data)


def _not_json(notes: ReadingNotes, line: str, why: str) -> InputError:
    if notes.line == 1 and line.lstrip().startswith("["):
        return InputError(t("{path} is one JSON list; one object a line is wanted: jq -c '.[]' FILE > FILE.jsonl", path=notes.path))  # fmt: skip
    return InputError(
        t(
            "{path}, line {line}: not JSON ({why}); one object a line is wanted",
            path=notes.path,
            line=notes.line,
            why=why,
        )
    )


def _parquet(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    import pyarrow.parquet  # type: ignore[import-untyped]

    file = pyarrow.parquet.ParquetFile(path)
    wanted = [name for name in (data.text, data.text_pair, data.label) if name]
    for name in wanted:
        column_index(path, list(file.schema_arrow.names), name)
    for batch in file.iter_batches(batch_size=1024, columns=wanted):
        for record in batch.to_pylist():
            notes.line += 1
            yield record_row(record, data)


def _text(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    with _open_text(path, data, notes) as file:
        for number, line in enumerate(_without_zeros(file, notes), start=1):
            notes.line = number
            if not data.label:
                yield Row(line.rstrip("\r\n"), "", None)
                continue
            label, tab, text = line.rstrip("\r\n").partition("\t")
            if not tab:
                if line.strip():
                    notes.misshapen()
                continue
            yield Row(text, "", label or None)


def _folders(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[Row]:
    """``folder/label/any.txt``: sorted by name, so that the order is the same on every machine."""
    for file in sorted(path.glob("*/*.txt"), key=lambda found: found.relative_to(path).as_posix()):
        notes.at(file)
        with in_words(file, data, notes):
            text, encoding = decode_bytes(file.read_bytes())
        notes.encodings[encoding] += 1
        yield Row(text, "", file.parent.name)


_READERS: dict[str, Reader] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "text": _text,
    "folders": _folders,
}
