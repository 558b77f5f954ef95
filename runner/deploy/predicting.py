"""Texts or a file of rows answered: rows stream through, answers are told as they come or written beside and renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runner.deploy.answers import Answer, answer_rows, continue_texts, no_answers
from runner.deploy.answers_file import Writer, open_writer, with_text
from runner.deploy.foreign import pickle_note
from runner.deploy.from_run import choose_checkpoint, open_checkpoint
from runner.deploy.opening import open_onnx, open_trained
from runner.deploy.part_file import go_on_from, part_of
from runner.deploy.place import new_file
from runner.deploy.trained import OnnxModel, Trained
from runner.durable import sync_path
from runner.inputs import InputError
from runner.profile import DataSection
from runner.readers import kind_of, rows_of
from runner.rows import NoColumnError, ReadingNotes, Row
from runner.rundir import RunDir
from runner.text import t

if TYPE_CHECKING:
    from runner.deploy.work import Teller

SORTED_ROWS = 512
"""Rows that are read ahead and answered in the order of their length, so that little is padding."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be answered, and by what."""

    folder: str = ""
    """With the torch model; or"""
    run: str = ""
    """the run, with"""
    checkpoint: str = ""
    """``best``, ``last`` or a step; or"""
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
    resume: bool = False
    """Go on from what an interrupted call left of ``out``."""
    max_length: int | None = None
    batch_size: int = 16
    top: int = 5
    new_tokens: int = 50


def predict(request: Request, teller: Teller) -> None:
    """Answer every row; a line ``{"answer": ...}`` each, or ``{"done": rows}`` now and then with ``out``.

    The last line says how many rows of the file did not fit its header and got no answer, and with ``out`` how many were cut.

    Raises:
        InputError: the model, the file or its column is not there.
        OSError: the file cannot be read, or the answers not written.
    """
    _refuse_own_output(request)
    trained, notes = _open(request, teller), ReadingNotes()
    if trained.kind == "features":
        raise no_answers(trained)
    if isinstance(trained, OnnxModel) and trained.kind == "causal-lm":
        raise InputError(t("text is continued from the torch model only: name the run or its final folder"))
    rows = _rows(request, notes)
    if request.out:
        writer = _write(trained, rows, request, teller)
        teller.line(
            done=writer.rows, written=request.out, left_out=notes.misshapen_rows, cut_rows=writer.cut_rows,
            max_length=trained.max_length,
        )  # fmt: skip
        return
    for done, (row, answer) in enumerate(_answers(trained, rows, request), start=1):
        teller.line(answer=with_text(row, answer, bool(request.pair_column or request.pairs)), done=done)
    teller.line(left_out=notes.misshapen_rows)


def _refuse_own_output(request: Request) -> None:
    out = Path(request.out)
    if request.out and request.file and out.exists() and out.samefile(request.file):
        raise InputError(t("{path} is the file with the texts: write the answers to another one", path=request.out))  # fmt: skip


def _write(trained: Trained, rows: Iterator[Row], request: Request, teller: Teller) -> Writer:
    """Write all answers to a file that is whole or not there, and return the writer, which counted them.

    Interrupted, it leaves what is answered beside it (:mod:`runner.deploy.part_file`), for a call with ``resume``.
    """
    path, answered = Path(request.out), 0
    part = part_of(path)
    if not path.parent.is_dir():
        raise InputError(t("there is no folder {path}", path=str(path.parent)))
    if part.is_file() and not request.resume:
        teller.doing(t("{path} has the answers of an interrupted call: with --resume it is gone on from there", path=str(part)))  # fmt: skip
    with new_file(path) as making:
        try:
            with open_writer(path, making, bool(request.pair_column)) as writer:
                if request.resume:
                    go_on_from(part, rows, writer, lambda lot: _answered(trained, lot, request))
                tell = partial(_tell_progress, teller, writer.rows)
                for row, answer in _answers(trained, rows, request, tell):
                    writer.write(writer.values(row, answer))
                    answered += 1
        except KeyboardInterrupt:
            if answered:
                _keep(making, part, writer.rows, teller)
            raise
        except OSError as error:
            raise _named(error, making, path) from error
    part.unlink(missing_ok=True)
    return writer


def _tell_progress(teller: Teller, before: int, answered: int) -> None:
    teller.line(done=before + answered)


def _keep(making: Path, part: Path, rows: int, teller: Teller) -> None:
    making.replace(part)
    sync_path(part)
    teller.line(kept=rows, part=str(part))


def _named(error: OSError, making: Path, path: Path) -> OSError:
    """Return a failure to write with the file that was asked for in it; another one as it is."""
    if error.filename not in (None, str(making)):
        return error
    return OSError(error.errno, error.strerror or str(error), str(path))


def _open(request: Request, teller: Teller) -> Trained:
    if request.onnx:
        return open_onnx(Path(request.onnx), request.max_length)
    if not request.checkpoint:
        if note := pickle_note(Path(request.folder)):
            teller.doing(note)
        return open_trained(Path(request.folder), request.max_length)
    checkpoint, why = choose_checkpoint(RunDir(request.run), request.checkpoint)
    teller.doing(why)
    return open_checkpoint(RunDir(request.run), checkpoint, request.max_length)


def _rows(request: Request, notes: ReadingNotes) -> Iterator[Row]:
    if not request.file:
        for index, text in enumerate(request.texts):
            yield Row(text, request.pairs[index] if request.pairs else "", None)
        return
    _refuse_unknown_form(Path(request.file))
    section = DataSection(
        train=[request.file], text=request.column, text_pair=request.pair_column, label="", encoding=request.encoding
    )  # fmt: skip
    try:
        yield from rows_of([Path(request.file)], section, notes)
    except NoColumnError as error:
        given = error.problem.params
        raise InputError(t("{path}: there is no column {name} (there are {found}); name it with --column, or where the first row is a text "
                           "already, put a row of names above it",
                           path=given["path"], name=given["name"], found=given["found"])) from error  # fmt: skip


def _refuse_unknown_form(path: Path) -> None:
    try:
        kind_of(path)
    except InputError as error:
        raise InputError(t("{path}: what kind of file this is is told by its name: .csv, .tsv, .jsonl, .parquet or .txt, also compressed (.gz)",
                           path=str(path))) from error  # fmt: skip


def _answers(
    trained: Trained,
    rows: Iterable[Row],
    request: Request,
    tell: Callable[[int], None] = lambda answered: None,
) -> Iterator[tuple[Row, Answer]]:
    """Yield (row, answer) in the order of the rows; ``tell`` hears after each batch how many are answered."""
    source, answered = iter(rows), 0
    while some := list(islice(source, SORTED_ROWS)):
        order = sorted(range(len(some)), key=lambda index: len(some[index].text))
        found: dict[int, Answer] = {}
        for start in range(0, len(order), request.batch_size):
            lot = order[start : start + request.batch_size]
            texts = [some[index] for index in lot]
            found.update(zip(lot, _answered(trained, texts, request), strict=True))
            answered += len(lot)
            tell(answered)
        yield from ((row, found[index]) for index, row in enumerate(some))


def _answered(trained: Trained, rows: list[Row], request: Request) -> list[Answer]:
    if trained.kind == "causal-lm":
        return continue_texts(trained, rows, request.new_tokens)
    return answer_rows(trained, rows, request.top)
