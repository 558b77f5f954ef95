"""Rows as people have them: any encoding, any form, with the mistakes that real files carry."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.encodings import decode_bytes, detect_encoding
from runner.inputs import InputError
from runner.labels import EVAL, TRAIN
from runner.profile import DataSection, Profile, load_profile
from runner.readers import rows_of
from runner.rows import ReadingNotes, Row
from runner.seen import SeenTexts, text_key
from runner.sources import local_rows
from runner.survey import Survey, survey_rows
from runner.survey_notes import survey_notes
from runner.vocabulary import SPECIAL_TOKENS, make_vocabulary
from tests.runner.tiny import PROFILE

CHINESE = "\u9001\u9910\u73b0\u5728\u8d8a\u6765\u8d8a\u4e0d\u9760\u8c31\uff0c\u518d\u4e5f\u4e0d\u70b9\u4e86"
FRENCH = "caf\u00e9 tr\u00e8s bon, \u00e0 refaire; d\u00e9\u00e7u par le d\u00e9lai"


@pytest.mark.parametrize(
    ("text", "written_as", "found"),
    [
        (CHINESE, "utf-8", "utf-8"),
        (CHINESE, "utf-8-sig", "utf-8-sig"),
        (CHINESE, "gbk", "gb18030"),
        (CHINESE, "utf-16", "utf-16"),
        (FRENCH, "cp1252", "cp1252"),
        ("price \u00a3300", "cp1252", "cp1252"),
        ("plain", "ascii", "utf-8"),
        ("", "ascii", "utf-8"),
    ],
)
def test_the_encoding_is_found(text: str, written_as: str, found: str) -> None:
    assert decode_bytes(text.encode(written_as)) == (text, found)
    assert detect_encoding(io.BytesIO(text.encode(written_as))) == found


def test_a_character_cut_by_a_block_is_still_utf8() -> None:
    data = b"x" * ((1 << 20) - 1) + CHINESE.encode()
    assert detect_encoding(io.BytesIO(data)) == "utf-8"


WRITERS: dict[str, Callable[[Path], Path]] = {}


def writer(name: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def register(write: Callable[[Path], None]) -> Callable[[Path], None]:
        def make(folder: Path) -> Path:
            path = folder / name
            write(path)
            return path

        WRITERS[name] = make
        return write

    return register


@writer("a.csv")
def _csv(path: Path) -> None:
    path.write_text('label,text\n1,"one, ""two""\nthree"\n0,four\n', encoding="utf-8")


@writer("a.csv.gz")
def _csv_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(b'text,label\n"one, ""two""\nthree",1\nfour,0\n'))


@writer("a.csv.zst")
def _csv_zst(path: Path) -> None:
    import pyarrow  # type: ignore[import-untyped]

    with pyarrow.output_stream(str(path), compression="zstd") as file:
        file.write(b'text,label\n"one, ""two""\nthree",1\nfour,0\n')


@writer("a.jsonl.xz")
def _jsonl_xz(path: Path) -> None:
    path.write_bytes(
        lzma.compress(b'{"text": "one, \\"two\\"\\nthree", "label": 1}\n{"text": "four", "label": 0}\n')
    )


@writer("a.csv.bz2")
def _csv_bz2(path: Path) -> None:
    path.write_bytes(bz2.compress(b'text,label\n"one, ""two""\nthree",1\nfour,0\n'))


@writer("a.jsonl")
def _jsonl(path: Path) -> None:
    path.write_text('{"text": "one, \\"two\\"\\nthree", "label": 1}\n\n{"text": "four", "label": 0.0}\n')


@writer("a.parquet")
def _parquet(path: Path) -> None:
    import pyarrow
    import pyarrow.parquet  # type: ignore[import-untyped]

    table = pyarrow.table({"text": ['one, "two"\nthree', "four"], "label": [1, 0]})
    pyarrow.parquet.write_table(table, path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    rows = list(rows_of([WRITERS[name](tmp_path)], DataSection(), ReadingNotes()))
    assert rows == [Row('one, "two"\nthree', "", "1"), Row("four", "", "0")]


def test_text_lines_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good\tlovely soup\nbad\tcold soup\n")
    for label, text in (("good", "lovely soup"), ("bad", "price \u00a33")):
        (tmp_path / "tree" / label).mkdir(parents=True)
        (tmp_path / "tree" / label / "1.txt").write_bytes(text.encode("cp1252"))
    notes = ReadingNotes()
    assert [row.label for row in rows_of([tmp_path / "a.txt"], DataSection(), notes)] == ["good", "bad"]
    assert [row.label for row in rows_of([tmp_path / "tree"], DataSection(), notes)] == ["bad", "good"]
    assert notes.encodings == {"utf-8": 2, "cp1252": 1}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "review,stars\nx,1\n", "no column text"),
        ("a.jsonl", "not json\n", "line 1"),
        ("a.jsonl", json.dumps({"review": "x"}) + "\n", "no column text"),
        ("a.xyz", "", "unknown kind of file"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=words):
        list(rows_of([tmp_path / name], DataSection(), ReadingNotes()))


def profile_over(tmp_path: Path, rows: str, *overrides: str) -> Profile:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    return load_profile(tmp_path / "tiny.toml", overrides)


def surveyed(tmp_path: Path, rows: str, *overrides: str) -> Survey:
    return survey_rows(profile_over(tmp_path, rows, *overrides), local_rows)


TWENTY = "".join(f"text {number},{number % 2}\n" for number in range(20))


def test_equal_texts_count_once_before_the_split(tmp_path: Path) -> None:
    survey = surveyed(tmp_path, TWENTY * 3)
    assert survey.counts["train"].duplicates == 40
    assert survey.count(TRAIN) + survey.count(EVAL) == 20


def test_each_class_is_held_out_in_proportion(tmp_path: Path) -> None:
    rows = "".join(f"text {number},{'rare' if number < 10 else 'common'}\n" for number in range(100))
    survey = surveyed(tmp_path, rows)
    held_out = [survey.labels[part][row] for part, row in survey.rows_with(EVAL)]
    assert (held_out.count("rare"), held_out.count("common")) == (2, 18)


def test_the_split_is_the_seeds(tmp_path: Path) -> None:
    first, again = surveyed(tmp_path, TWENTY), surveyed(tmp_path, TWENTY)
    other = surveyed(tmp_path, TWENTY, "run.seed=8")
    assert first.fate == again.fate != other.fate


def test_empty_unlabelled_misshapen_and_contradicting_rows_are_counted_and_said(tmp_path: Path) -> None:
    survey = surveyed(tmp_path, TWENTY + "  ,1\nno label,\ntoo,many,fields\ntext 0,1\n")
    counts = survey.counts["train"]
    assert (counts.empty, counts.unlabelled, counts.contradictions) == (1, 1, 1)
    said = " ".join(str(sentence) for _, sentence in survey_notes(survey))
    assert "1 row without text and 1 without label" in said
    assert "another label" in said and "columns of their header" in said


def test_held_out_texts_that_are_trained_on_are_said(tmp_path: Path) -> None:
    (tmp_path / "held.csv").write_text("text,label\ntext 1,1\nnew text,0\nnew text,0\n")
    survey = surveyed(tmp_path, TWENTY, f"data.eval={tmp_path / 'held.csv'}")
    assert survey.counts["eval"].held_out_also_trained == 1
    assert survey.count(TRAIN) == 20 and survey.count(EVAL) == 3


@pytest.mark.parametrize(
    ("rows", "overrides", "words"),
    [
        ("a,1\nb,1\nc,1\n", [], "nothing to learn"),
        (TWENTY, ['data.labels=["0"]'], "unknown label"),
        ("", [], "there are no rows"),
    ],
    ids=["one class", "a label outside the list", "no rows"],
)
def test_labels_that_cannot_be_learnt_are_refused(
    tmp_path: Path, rows: str, overrides: list[str], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        surveyed(tmp_path, rows, *overrides)


def test_a_regression_label_that_is_no_number_is_said_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":22: the label much is not a number"):
        surveyed(tmp_path, TWENTY + "a text,much\n", "model.task=regression")


def test_a_language_model_needs_no_labels(tmp_path: Path) -> None:
    profile = profile_over(tmp_path, "", "model.task=causal-lm")
    (tmp_path / "rows.csv").write_text("text\n" + "".join(f"text {n}\n" for n in range(10)))
    assert survey_rows(profile, local_rows).count(TRAIN) == 8


def test_numbers_are_classes_in_the_order_of_their_values(tmp_path: Path) -> None:
    rows = "".join(f"text {number},{number % 12}\n" for number in range(48))
    assert surveyed(tmp_path, rows).classes == [str(number) for number in range(12)]


def test_limits_take_a_seeded_sample_and_no_more(tmp_path: Path) -> None:
    survey = surveyed(tmp_path, TWENTY, "data.train_limit=5", "data.eval_limit=2")
    assert (survey.count(TRAIN), survey.count(EVAL)) == (5, 2)


def test_a_vocabulary_covers_every_character_and_is_the_same_again() -> None:
    texts = [CHINESE, "Caf\u00e9 zebra zebra", "ab"]
    tokens = make_vocabulary(texts, 200)
    assert tokens[:5] == list(SPECIAL_TOKENS) and len(set(tokens)) == len(tokens)
    assert {"z", "##a", "cafe", "zebra", CHINESE[0]} <= set(tokens)
    assert make_vocabulary(texts, 200) == tokens
    assert len(make_vocabulary(texts, 20)) == 20


def test_a_large_zstd_file_is_read_whole_and_its_encoding_found_first(tmp_path: Path) -> None:
    import pyarrow

    lines = "".join(f"{number},\u9910 {number * 7919 % 1000003} {number}\n" for number in range(120_000))
    with pyarrow.output_stream(str(tmp_path / "a.csv.zst"), compression="zstd") as file:
        file.write(("label,text\n" + lines).encode("gbk"))
    notes = ReadingNotes()
    rows = list(rows_of([tmp_path / "a.csv.zst"], DataSection(), notes))
    assert len(rows) == 120_000 and rows[-1].label == "119999" and notes.encodings == {"gb18030": 1}


def test_seen_texts_are_found_again_after_the_table_grew() -> None:
    seen, numbers = SeenTexts(slots=8), {text_key(f"text {n}", ""): n for n in range(5000)}
    for key, number in numbers.items():
        assert seen.get(key) is None
        seen.add(key, number)
    assert len(seen) == 5000
    assert all(seen.get(key) == number for key, number in numbers.items())
    assert seen.get(text_key("text", "1")) is None
