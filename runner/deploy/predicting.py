"""Texts or a file of rows answered: rows stream through, answers are told as they come or written beside and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runner.deploy.answers import Answer, answer_rows, continue_texts
from runner.deploy.answers_file import open_writer
from runner.deploy.trained import OnnxModel, Trained, open_onnx, open_trained
from runner.inputs import InputError
from runner.profile import DataSection
from runner.rows import ReadingNotes, Row, rows_of
from runner.text import t

if TYPE_CHECKING:
    from runner.deploy.work import Teller

SORTED_ROWS = 512
"""Rows that are read ahead and answered in the order of their length, so that little is padding."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be answered, and by what."""

    folder: str = ""
    """With the torch model; or"""
    onnx: str = ""
    """the ONNX file."""
    texts: list[str] = []
    pairs: list[str] = []
    file: str = ""
    column: str = "text"
    pair_column: str = ""
    encoding: str = "auto"
    out: str = ""
    """CSV, JSONL or Parquet by its name; empty: answers are told one by one."""
    max_length: int | None = None
    batch_size: int = 16
    top: int = 5
    new_tokens: int = 50


def predict(request: Request, teller: Teller) -> None:
    """Answer every row; a line ``{"answer": ...}`` each, or ``{"done": rows}`` now and then with ``out``.

    Raises:
        InputError: the model, the file or its column is not there.
        OSError: the file cannot be read, or the answers not written.
    """
    trained = open_onnx(Path(request.onnx), request.max_length) if request.onnx else open_trained(Path(request.folder), request.max_length)  # fmt: skip
    if isinstance(trained, OnnxModel) and trained.kind == "causal-lm":
        raise InputError(t("text is continued from the torch model only: name the run or its final folder"))
    answers = _answers(trained, _rows(request), request)
    if not request.out:
        for row, answer in answers:
            teller.line(answer={"text": row.text, **answer})
        return
    path = Path(request.out)
    making = path.with_name(f".{path.name}.making")
    try:
        with open_writer(path, making) as writer:
            for number, (row, answer) in enumerate(answers, start=1):
                writer.write(row, answer)
                if number % 100 == 0:
                    teller.line(done=number)
        os.replace(making, path)  # noqa: PTH105 - atomic, and the name may exist
    finally:
        making.unlink(missing_ok=True)
    teller.line(done=writer.rows, written=str(path))


def _rows(request: Request) -> Iterator[Row]:
    if not request.file:
        for index, text in enumerate(request.texts):
            yield Row(text, request.pairs[index] if request.pairs else "", None)
        return
    section = DataSection(
        train=[request.file], text=request.column, text_pair=request.pair_column, label="", encoding=request.encoding
    )  # fmt: skip
    yield from rows_of([Path(request.file)], section, ReadingNotes())


def _answers(trained: Trained, rows: Iterable[Row], request: Request) -> Iterator[tuple[Row, Answer]]:
    """Yield (row, answer) in the order of the rows."""
    source = iter(rows)
    while some := list(islice(source, SORTED_ROWS)):
        order = sorted(range(len(some)), key=lambda index: len(some[index].text))
        found: dict[int, Answer] = {}
        for start in range(0, len(order), request.batch_size):
            lot = order[start : start + request.batch_size]
            texts = [some[index] for index in lot]
            answered = continue_texts(trained, texts, request.new_tokens) if trained.kind == "causal-lm" else answer_rows(trained, texts, request.top)  # fmt: skip
            found.update(zip(lot, answered, strict=True))
        yield from ((row, found[index]) for index, row in enumerate(some))
