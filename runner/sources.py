"""Where rows come from: local files, an installed package, a function of the user's own. Each time in the same order."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.hub import hub_rows
from runner.inputs import InputError, PackageInput, package_folder, tree_sha256, verify_files
from runner.profile import DataSection
from runner.readers import rows_of
from runner.rows import ReadingNotes, Row, column_index, record_row
from runner.text import t
from runner.user_code import import_function


def source_rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
    """Yield every row of a part, from the hub, a function or local files, each time in the same order."""
    if data.function:
        yield from function_rows(data, part, notes)
    elif data.hub:
        yield from hub_rows(data, part)
    else:
        yield from local_rows(data, part, notes)


def verify_data(data: DataSection) -> None:
    """Compare pinned data with its hash."""
    if data.package:
        folder = data_folder(data)
        if data.sha256 and tree_sha256(folder) != data.sha256:
            raise InputError(
                t(
                    "{path} is not the data that the profile pins (its hash differs): not used",
                    path=str(folder),
                )
            )
    elif data.sha256 and len(data.train) == 1:
        path = Path(data.train[0])
        verify_files(path.parent, {path.name: data.sha256})


def data_folder(data: DataSection) -> Path:
    return package_folder(PackageInput(data.package, data.folder))


def local_rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
    """Yield every row of the ``train`` or ``eval`` files, or of the package, each time in the same order."""
    if data.package:
        yield from rows_of([data_folder(data)], data, notes)
    else:
        paths = data.train if part == "train" else data.eval
        yield from rows_of([Path(path) for path in paths], data, notes)


def function_rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
    """Yield what the user's own function yields for the split of this part.

    Raises:
        InputError: it cannot be imported, fails, or yields something else than dicts with the named columns.
    """
    split = data.train_split if part == "train" else data.eval_split
    notes.at(Path(data.function))
    for number, record in enumerate(_records(data.function, split, notes), start=1):
        notes.line = number
        if not isinstance(record, dict):
            raise InputError(
                t("data.function: {name} is to yield dicts, not {kind}",
                  name=data.function, kind=type(record).__name__)
            )  # fmt: skip
        if number == 1:
            column_index(Path(data.function), list(record), data.text)
        yield record_row(record, data)


def _records(name: str, split: str, notes: ReadingNotes) -> Iterator[Any]:
    """Yield what the function yields; where it fails, say after which row."""
    function = import_function("data.function", name)
    try:
        yield from function(split)
    except Exception as error:  # whatever the user's code does
        traceback.print_exc()
        raise InputError(t("data.function: {name} failed after {rows} {rows:row|rows}: {why} (where in it: trainer.log)", name=name,
                           rows=notes.line, why=f"{type(error).__name__}: {error}"[:500])) from error  # fmt: skip
