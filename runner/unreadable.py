"""A data file that cannot be read, in words: which file, where in it, what is wrong, and what to do about it."""

from __future__ import annotations

import contextlib
import csv
import errno
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

from runner.compressed import open_bytes
from runner.encodings import MixedEncodingError, first_bad_line
from runner.inputs import InputError
from runner.profile import DataSection
from runner.rows import NotTextError, ReadingNotes
from runner.text import Text, printable, t

# version https://git-lfs.github.com/spec/v1
_LFS = b"version https://git-lfs"
_FIRST_BYTES = {
    b"PK\x03\x04": "ZIP, Excel (.xlsx)",
    b"\xd0\xcf\x11\xe0": "Excel (.xls)",
    b"ARROW1": "Arrow, Feather",
    b"SQLite format 3": "SQLite",
    b"%PDF": "PDF",
    b"\x80\x03": "pickle",
    b"\x80\x04": "pickle",
    b"\x80\x05": "pickle",
}


def refuse_foreign(path: Path, kind: str) -> None:
    """Raise InputError for a file that is plainly something else than ``kind``: its first bytes say what."""
    if kind == "folders":
        return
    with open_bytes(path) as file:
        start = file.read(64)
    shown = printable(str(path))
    if start.startswith(_LFS):
        raise InputError(t("{path} is only a pointer of git LFS: its content was not fetched. Type: git lfs pull", path=shown))  # fmt: skip
    if start.startswith(b"PAR1") and kind != "parquet":
        raise InputError(t('{path} is a Parquet file: say data.format = "parquet"', path=shown))
    if kind != "text" and start.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise InputError(t("{path} is a web page, not data: what was downloaded is an error page or asks for a login", path=shown))  # fmt: skip
    found = next((words for first, words in _FIRST_BYTES.items() if start.startswith(first)), None)
    if found is not None:
        raise InputError(
            t("{path} is no text but {found}: export it as CSV, JSONL or Parquet", path=shown, found=found)
        )


@contextlib.contextmanager
def in_words(path: Path, data: DataSection, notes: ReadingNotes) -> Iterator[None]:
    """Turn what libraries raise over a broken file into a sentence that names it. Raises InputError."""
    try:
        yield
    except NotTextError as error:
        raise InputError(t("{place}: the column {column} holds {kind}, not text", place=notes.place,
                           column=error.column, kind=error.kind)) from error  # fmt: skip
    except InputError:
        raise
    except UnicodeError as error:
        raise InputError(_not_decoded(path, data, error)) from error
    except MixedEncodingError as error:
        raise InputError(t("{path}, line {line}: the byte {byte} is not UTF-8, while {good} other lines are: two encodings are "
                           "mixed in it. Mend these lines, or convert the parts one by one", path=notes.path,
                           line=error.line, byte=f"0x{error.byte:02x}", good=error.good_lines)) from error  # fmt: skip
    except csv.Error as error:
        raise InputError(t("{place}: not CSV ({why})", place=notes.place, why=str(error))) from error
    except ModuleNotFoundError as error:
        raise InputError(t("{path}: the package {package} is wanted to read it and is not installed", path=notes.path, package=error.name or "-")) from error  # fmt: skip
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise InputError(_not_read(notes, error)) from error
    except ValueError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise InputError(_not_read(notes, error)) from error


def _not_read(notes: ReadingNotes, error: Exception) -> Text:
    """Return what the system or a decoder said; only the system gives a number."""
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return t("{path} cannot be read: {why}", path=notes.path, why=error.strerror or str(error))
    why = " ".join(str(error).split())[:200] or type(error).__name__
    return t("{place}: the file breaks off or is damaged ({why}): copy or download it again",
             place=notes.place, why=why)  # fmt: skip


def _not_decoded(path: Path, data: DataSection, error: UnicodeError) -> Text:
    encoding = getattr(error, "encoding", data.encoding)
    try:
        with open_bytes(path) as file:
            line = first_bad_line(file, encoding)
    except (OSError, EOFError):
        line = 0
    place = printable(str(path)) + (f":{line}" if line else "")
    return t("{place} cannot be read as {encoding}: {why}; name its own encoding (data.encoding, --encoding)", place=place, encoding=encoding,
             why=getattr(error, "reason", str(error)))  # fmt: skip
