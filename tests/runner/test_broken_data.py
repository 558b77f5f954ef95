"""Data as it comes broken: each kind ends a run before its first step with one sentence that names the file and the place, or
is said and trained on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.inputs import InputError
from runner.labels import EVAL, TRAIN
from runner.profile import load_profile
from runner.readers import rows_of
from runner.rows import ReadingNotes
from runner.sources import local_rows
from runner.survey import Survey, survey_rows
from runner.survey_notes import survey_notes
from tests.runner.tiny import PROFILE, events, make_run, outcome, train

CHINESE = "送餐现在越来越不靠谱，再也不点了"
MANY = "text,label\n" + "".join(
    f"the soup was {'warm' if n % 2 else 'cold'} {n},{n % 2}\n" for n in range(60)
)

Write = Callable[[Path], Path]
REFUSED: dict[str, tuple[Write, list[str], str]] = {}
"""By what is wrong: who writes the file, other settings, and what is said: ``{path}`` stands for the file."""


def refused(says: str, *settings: str, name: str = "a.csv") -> Callable[[Callable[[Path], None]], None]:
    def register(write: Callable[[Path], None]) -> None:
        def make(folder: Path) -> Path:
            write(folder / name)
            return folder / name

        REFUSED[write.__name__.strip("_").replace("_", " ")] = (make, list(settings), says)

    return register


@refused("{path}:", name="a.csv.gz")
def gzip_cut_short(path: Path) -> None:
    path.write_bytes(gzip.compress(MANY.encode() * 50)[:-300])


@refused("the file breaks off or is damaged", name="a.jsonl.gz")
def gzip_with_a_flipped_byte(path: Path) -> None:
    lines = "".join(json.dumps({"text": f"soup {n * 7919}", "label": n % 2}) + "\n" for n in range(400))
    data = bytearray(gzip.compress(lines.encode()))
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@refused("{path}, line 31: the byte 0xcb is not UTF-8, while 29 other lines are")
def two_encodings_mixed(path: Path) -> None:
    rows = [f"{CHINESE}{n},{n % 2}\n".encode() for n in range(30)]
    rows[29] = f"{CHINESE}29,1\n".encode("gbk")
    path.write_bytes(b"text,label\n" + b"".join(rows))


@refused("{path}:41 cannot be read as utf-8: invalid continuation byte", "data.encoding=utf-8")
def another_encoding_than_was_said(path: Path) -> None:
    path.write_bytes(MANY.encode().replace(b"cold 39", b"\xcb\xcd 39").replace(b"warm 39", b"\xcb\xcd 39"))


@refused("data.encoding: unknown encoding: utf-9", "data.encoding=utf-9")
def an_encoding_nobody_knows(path: Path) -> None:
    path.write_text(MANY)


@refused("{path}: there is no column label (there are text)")
def one_column(path: Path) -> None:
    path.write_text("text\n" + "".join(f"soup {n}\n" for n in range(9)))


@refused('{path}: there is no column label (there are text, " label")')
def a_blank_before_a_column(path: Path) -> None:
    path.write_text("text, label\nsoup,1\n")


@refused("{path}: the column text stands in the header 2 times")
def a_column_twice(path: Path) -> None:
    path.write_text("text,label,text\nsoup,1,other\n")


@refused("{path}, line 21: a quote is opened here and never closed")
def a_quote_nobody_closed(path: Path) -> None:
    path.write_text(MANY.replace("the soup was warm 19", '"the soup was warm 19'))


@refused("60 rows do not have the columns of their header and 1 has (the first that does not: {path}:3)")
def a_header_of_another_file(path: Path) -> None:
    path.write_text("text,label,stars\nsoup,1,5\n" + MANY.partition("\n")[2])


@refused("{path} is empty")
def nothing_in_it(path: Path) -> None:
    path.write_text("")


@refused("data.train: there are no rows in it", name="a.jsonl")
def nothing_in_jsonl(path: Path) -> None:
    path.write_text("")


@refused("data.train: there are no rows in it")
def a_header_alone(path: Path) -> None:
    path.write_text("text,label\n")


@refused("every row has the label 1: nothing to learn")
def one_class(path: Path) -> None:
    path.write_text("text,label\n" + "".join(f"soup {n},1\n" for n in range(9)))


@refused("no row has a label")
def no_labels(path: Path) -> None:
    path.write_text("text,label\n" + "".join(f"soup {n},\n" for n in range(9)))


@refused("data.train: unknown label(s) 7, first at {path}:12; known are 0, 1", 'data.labels=["0", "1"]')
def a_label_out_of_range(path: Path) -> None:
    path.write_text(MANY.replace("cold 10,0", "cold 10,7"))


@refused("data.train: {path}:12: the label much is not a number", "model.task=regression")
def a_number_that_is_none(path: Path) -> None:
    path.write_text(MANY.replace("cold 10,0", "cold 10,much"))


@refused("{path}:2: the column text holds dict, not text", name="a.parquet")
def parquet_with_objects(path: Path) -> None:
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    texts = [None, *({"body": f"soup {n}"} for n in range(9))]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": [n % 2 for n in range(10)]}), path)


@refused("{path}: the file breaks off or is damaged", name="a.parquet")
def parquet_cut_short(path: Path) -> None:
    parquet_with_texts(path)
    path.write_bytes(path.read_bytes()[:-20])


def parquet_with_texts(path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = {"text": [f"soup {n}" for n in range(9)], "label": [n % 2 for n in range(9)]}
    pyarrow.parquet.write_table(pyarrow.table(rows), path)


@refused('{path} is a Parquet file: say data.format = "parquet"')
def parquet_by_another_name(path: Path) -> None:
    parquet_with_texts(path)


@refused("{path}, line 900: not JSON", name="a.jsonl")
def jsonl_with_a_broken_line(path: Path) -> None:
    rows = [json.dumps({"text": f"soup {n}", "label": n % 2}) for n in range(1000)]
    rows[899] = rows[899][:-4]
    path.write_text("\n".join(rows))


@refused("{path} is one JSON list; one object a line is wanted", name="a.json")
def json_as_one_list(path: Path) -> None:
    path.write_text(json.dumps([{"text": "soup", "label": 1}, {"text": "rice", "label": 0}]))


@refused("{path} is one JSON list; one object a line is wanted", name="a.json")
def json_as_one_list_over_many_lines(path: Path) -> None:
    path.write_text(json.dumps([{"text": "soup", "label": 1}, {"text": "rice", "label": 0}], indent=1))


@refused("{path} is only a pointer of git LFS: its content was not fetched")
def a_pointer_of_git_lfs(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n")


@refused("{path} is a web page, not data")
def a_web_page(path: Path) -> None:
    path.write_text("<!DOCTYPE html>\n<html><body>Sign in</body></html>\n")


@refused("{path} is no text but ZIP, Excel (.xlsx)")
def an_excel_sheet(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(200))


@pytest.mark.train
@pytest.mark.parametrize(("make", "settings", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_trained_on_ends_before_the_first_step_with_its_place(
    tmp_path: Path, make: Write, settings: list[str], says: str
) -> None:
    path = make(tmp_path)
    run = make_run(tmp_path, [f"data.train={path}", *settings])
    assert train(run) == 1
    (said,) = [str(event.data["text"]) for event in events(run, "note") if event.data["level"] == "fail"]
    error = str(outcome(run)["error"])
    assert says.format(path=path) in error and "\n" not in error
    assert error in said or "msgid" in said
    assert events(run, "step") == [] and not list(run.checkpoints.iterdir())


@pytest.mark.train
def test_a_file_nobody_may_read_and_one_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, [f"data.train={tmp_path / 'gone.csv'}"])
    assert train(run) == 1
    assert f"{tmp_path / 'gone.csv'} cannot be read: No such file or directory" in str(outcome(run)["error"])


FUNCTION = """\
def rows(split):
    for number in range(100):
        if number == 37:
            raise KeyError("review")
        yield {"text": f"soup {number}", "label": number % 2}
"""


@pytest.mark.train
def test_a_function_that_fails_half_way_is_named_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_rows.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path, ["data.train=[]", "data.function=broken_rows:rows"])
    assert train(run) == 1
    assert "data.function: broken_rows:rows failed after 37 rows: KeyError: 'review'" in str(
        outcome(run)["error"]
    )


@pytest.mark.train
def test_labels_of_the_held_out_file_alone_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "held.csv").write_text("text,label\nnew soup,1\nolder soup,maybe\n")
    run = make_run(tmp_path, [f"data.eval={tmp_path / 'held.csv'}"])
    assert train(run) == 1
    said = f"data.eval: unknown label(s) maybe, first at {tmp_path / 'held.csv'}:3; known are 0, 1"
    assert str(outcome(run)["error"]) == said


# -- read, and said


def surveyed(folder: Path, content: bytes, *overrides: str) -> tuple[Survey, dict[str, str]]:
    """Return what was found in a CSV file, and the sentences about it by level."""
    (folder / "rows.csv").write_bytes(content)
    (folder / "tiny.toml").write_text(PROFILE)
    survey = survey_rows(load_profile(folder / "tiny.toml", overrides), local_rows)
    said: dict[str, str] = {}
    for level, sentence in survey_notes(survey):
        said[level] = said.get(level, "") + f"{sentence}\n"
    return survey, said


def test_zero_characters_are_taken_out_and_said_with_their_place(tmp_path: Path) -> None:
    survey, said = surveyed(tmp_path, MANY.encode().replace(b"cold 10", b"cold\0\0 10"))
    assert (
        f"2 zero characters in the texts were taken out (the first: {tmp_path / 'rows.csv'}:12)"
        in said["warn"]
    )
    assert survey.count(TRAIN) + survey.count(EVAL) == 60


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_found(tmp_path: Path, encoding: str) -> None:
    survey, said = surveyed(tmp_path, MANY.replace("soup", CHINESE).encode(encoding))
    assert survey.count(TRAIN) + survey.count(EVAL) == 60 and encoding in said["info"]


def test_gbk_after_megabytes_of_ascii_is_still_gbk(tmp_path: Path) -> None:
    content = ("text,label\n" + "plain soup,1\n" * 400_000).encode() + f"{CHINESE},0\n".encode("gbk")
    (tmp_path / "a.csv").write_bytes(content)
    profile = load_profile_of(tmp_path)
    notes = ReadingNotes()
    *_, last = rows_of([tmp_path / "a.csv"], profile.data, notes)
    assert last.text == CHINESE and notes.encodings == {"gb18030": 1}


def load_profile_of(folder: Path) -> Any:
    (folder / "tiny.toml").write_text(PROFILE)
    return load_profile(folder / "tiny.toml")


def test_an_encoding_that_is_a_guess_is_a_warning(tmp_path: Path) -> None:
    _, said = surveyed(tmp_path, MANY.replace("soup", "caf\u00e9").encode("cp1252"))
    assert "cp1252: 1" in said["warn"]


def test_quoted_newlines_are_texts_and_lines_are_still_counted_right(tmp_path: Path) -> None:
    content = MANY.replace("the soup was warm 1,", '"the soup\nwas\nwarm 1",') + "odd,one,out\n"
    survey, said = surveyed(tmp_path, content.encode())
    assert survey.count(TRAIN) + survey.count(EVAL) == 60
    assert f"(the first: {tmp_path / 'rows.csv'}:64)" in said["warn"]


def test_a_quote_closed_by_the_next_one_shows_by_its_lines(tmp_path: Path) -> None:
    swallowed = '"the soup was' + "".join(f" cold {n},0\n" for n in range(300)) + 'end",1\n'
    _, said = surveyed(tmp_path, (MANY + swallowed).encode())
    assert f"{tmp_path / 'rows.csv'}:62: one text goes over 301 lines" in said["warn"]


def test_one_class_held_out_and_a_class_without_training_rows_are_said(tmp_path: Path) -> None:
    (tmp_path / "held.csv").write_text("text,label\n" + "".join(f"new {n},1\n" for n in range(4)))
    overrides = [f"data.eval={tmp_path / 'held.csv'}", 'data.labels=["0", "1", "2"]']
    _, said = surveyed(tmp_path, MANY.encode(), *overrides)
    assert "every held-out row has the label 1" in said["warn"]
    assert "no training row has the label 2: it cannot be learnt" in said["warn"]


def test_texts_taken_for_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="60 different labels in 60 rows: is it the column of the labels"):
        surveyed(tmp_path, MANY.encode(), "data.text=label", "data.label=text", "data.deduplicate=false")


@pytest.mark.train
def test_one_line_of_many_megabytes_is_a_text_that_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(MANY + "the soup " * 600_000 + ",1\n")
    run = make_run(tmp_path, [f"data.train={tmp_path / 'a.csv'}", "train.steps=2"])
    assert train(run) == 0


@pytest.mark.train
def test_files_that_grew_since_are_said_and_the_run_goes_on_with_its_rows(tmp_path: Path) -> None:
    from tests.runner.test_trainer import StopAfter
    from tests.runner.tiny import final_hash

    whole, run = make_run(tmp_path, ["train.steps=12"], "whole"), make_run(tmp_path, ["train.steps=12"])
    assert train(whole) == 0 and train(run, stop=StopAfter(12)) == 143
    with open(tmp_path / "rows.csv", "a") as file:
        file.write("one more,1\n")
    assert train(run, resume=True) == 0
    notes = [event.data["text"] for event in events(run, "note") if event.data["level"] == "warn"]
    (note,) = [note for note in notes if "was changed since the run began" in note["msgid"]]
    assert note["params"]["now"] == note["params"]["was"] + len("one more,1\n")
    assert final_hash(run) == final_hash(whole)


@pytest.mark.train
def test_rows_that_changed_before_any_ids_were_made_have_a_vocabulary_of_their_own(tmp_path: Path) -> None:
    """A start that was stopped in the midst of tokenising leaves a tokenizer made of the texts of that time."""
    from runner.plan import decode_plan
    from runner.prepare import prepare_data
    from runner.signals import Stopped
    from tests.runner.test_trainer import StopAfter

    (tmp_path / "rows.csv").write_text(MANY)
    run, again = make_run(tmp_path), make_run(tmp_path, name="again")
    with pytest.raises(Stopped):  # looked at once in the survey, once for the vocabulary
        prepare_data(decode_plan(run.plan.read_bytes()), run, lambda *_: None, StopAfter(2))
    assert run.tokenizer.is_dir() and not run.data.exists()
    (tmp_path / "rows.csv").write_text(MANY.replace("soup", "noodle"))
    for one in (run, again):
        prepare_data(decode_plan(one.plan.read_bytes()), one, lambda *_: None, StopAfter(99))
    assert (run.tokenizer / "tokenizer.json").read_bytes() == (
        again.tokenizer / "tokenizer.json"
    ).read_bytes()
