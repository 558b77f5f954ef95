"""Rows to ids: the same bytes from any number of workers, after any interruption, and from the cache."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest

from runner import tokenising
from runner.encoded import Chunk, Encoded, RowEncoder
from runner.inputs import InputError, file_sha256
from runner.plan import decode_plan
from runner.prepare import prepare_data
from runner.rows import Row
from runner.rundir import RunDir
from runner.signals import Stopped, StopRequest
from runner.store import StoreWriter
from runner.text import Text
from runner.token_cache import TokenCache, cache_folder
from runner.tokenising import encoded_chunks
from runner.vocabulary import make_vocabulary
from tests.runner.test_traps import built
from tests.runner.tiny import ONE_CORE, make_run


def prepare(run: RunDir, stop: StopRequest | None = None) -> tuple[dict[str, str], list[str], list[dict[str, Any]]]:  # fmt: skip
    """Return the files' hashes, the notes and what was told of the progress."""
    notes: list[str] = []
    told: list[dict[str, Any]] = []

    def note(level: str, text: Text) -> None:
        notes.append(f"{level}: {text}")

    prepare_data(
        decode_plan(run.plan.read_bytes()), run, note, StopRequest() if stop is None else stop, told.append
    )
    return {path.name: file_sha256(path) for path in run.data.glob("*.bin")}, notes, told


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("rows", [3, 600, 1500])
def test_two_workers_write_the_very_bytes_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setenv("DOCTOR_CACHE", "off")
    monkeypatch.setattr(tokenising, "WORTH_A_POOL", 1)
    monkeypatch.setattr(tokenising, "CHUNK_ROWS", 100)
    two = msgspec.structs.replace(ONE_CORE, cpu_cores_usable=2.0)
    alone, _, _ = prepare(make_run(tmp_path, name="alone", rows=rows))
    together, _, told = prepare(make_run(tmp_path, name="together", machine=two))
    assert together == alone
    assert told[-1]["rows"] == told[-1]["rows_total"] and told[-1]["part"] == "eval"


def test_each_row_lies_in_the_files_as_the_tokenizer_gives_it_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path, rows=40)
    data = prepare_data(decode_plan(run.plan.read_bytes()), run, lambda *_: None, StopRequest())
    texts = (tmp_path / "rows.csv").read_text().splitlines()[1:]
    assert len(data.train) > 20
    for index in range(len(data.train)):
        sample = data.train[index]
        alone = data.tokenizer(texts[int(sample["row"])].rpartition(",")[0], truncation=True, max_length=32)
        assert sample["ids"].tolist() == alone["input_ids"]


class StopsAfter(StopRequest):
    """Asked to stop at the n-th time somebody looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def __bool__(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.mark.parametrize("packing", [False, True], ids=["rows", "packed"])
def test_broken_off_it_goes_on_where_it_was_and_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: bool
) -> None:
    monkeypatch.setenv("DOCTOR_CACHE", "off")
    monkeypatch.setattr(tokenising, "CHUNK_ROWS", 64)
    gpt2 = 'model.config={ model_type = "gpt2", n_embd = 32, n_layer = 1, n_head = 2, n_positions = 64 }'
    changes = ["model.task=causal-lm", gpt2, "train.packing=true"] if packing else []
    whole, _, _ = prepare(make_run(tmp_path, changes, name="whole", rows=2000))
    run = make_run(tmp_path, changes, name="broken")
    with pytest.raises(Stopped):
        prepare(
            run, StopsAfter(10)
        )  # four looks each: the survey, the texts for the vocabulary; then the rows
    progress = json.loads((run.path / "data.making" / "progress.json").read_bytes())
    assert progress["part"] == "train" and 0 < progress["position"]["taken"] < 1600
    with open(run.path / "data.making" / "train.ids.bin", "ab") as file:
        file.write(b"written after the position was kept, and lost in the kill")
    encoded: list[int] = []
    encoder = tokenising.encoded_chunks

    def counting(encoder_: Any, chunks: Iterator[Chunk], workers: int) -> Iterator[Encoded]:
        for one in encoder(encoder_, chunks, workers):
            encoded.append(len(one.rows))
            yield one

    monkeypatch.setattr(tokenising, "encoded_chunks", counting)
    again, _, _ = prepare(run)
    assert again == whole
    assert sum(encoded) == 2000 - progress["position"]["taken"], "what was done is not done again"
    assert not (run.data / "progress.json").exists()


def test_half_written_files_of_other_data_are_not_gone_on_with(tmp_path: Path) -> None:
    run = make_run(tmp_path, rows=50)
    making = run.path / "data.making"
    making.mkdir()
    (making / "progress.json").write_text('{"key": "another", "done": {}, "part": "", "position": null}')
    (making / "left-over").write_text("x")
    prepare(run)
    assert not (run.data / "left-over").exists()


def test_a_second_run_takes_the_ids_from_the_cache_and_tokenises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, _ = prepare(make_run(tmp_path, name="first"))
    monkeypatch.setattr(
        tokenising, "encoded_chunks", lambda *_: pytest.fail("nothing was to be tokenised again")
    )
    second, notes, told = prepare(make_run(tmp_path, name="second"))
    assert second == first and told == []
    assert any("taken from the cache" in note for note in notes)


@pytest.mark.parametrize(
    "change",
    ["train.max_length=16", "run.seed=8", "data.eval_share=0.3", "model.vocabulary_size=150"],
)
def test_other_settings_or_rows_are_another_entry(tmp_path: Path, change: str) -> None:
    prepare(make_run(tmp_path, name="first"))
    _, notes, told = prepare(make_run(tmp_path, [change], name="second"))
    assert told and not any("taken from the cache" in note for note in notes)


def test_a_damaged_entry_is_named_and_made_anew(tmp_path: Path) -> None:
    first, _, _ = prepare(make_run(tmp_path, name="first"))
    (entry,) = (tmp_path / "cache" / "tokens").iterdir()
    content = bytearray((entry / "train.ids.bin").read_bytes())
    content[100] ^= 1
    (entry / "train.ids.bin").unlink()  # the first run's own file is the same one
    (entry / "train.ids.bin").write_bytes(content)
    second, notes, told = prepare(make_run(tmp_path, name="second"))
    assert second == first and told
    assert any(note.startswith("warn") and "train.ids.bin" in note and "made anew" in note for note in notes)
    third, notes, _ = prepare(make_run(tmp_path, name="third"))
    assert third == first and any("taken from the cache" in note for note in notes)


def test_of_two_that_keep_at_once_one_entry_stays_and_both_have_their_files(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    prepare(run)
    parts = msgspec.json.decode((run.data / "data.json").read_bytes())
    from runner.data import PartFacts

    facts = {name: msgspec.convert(parts[name], PartFacts) for name in ("train", "eval")}
    cache = TokenCache(tmp_path / "cache" / "tokens")
    (entry,) = (tmp_path / "cache" / "tokens").iterdir()
    assert cache.keep(entry.name, facts, run.data) is None
    assert [path.name for path in (tmp_path / "cache" / "tokens").iterdir()] == [entry.name]
    assert cache.take(entry.name, tmp_path / "taken") == facts


def test_a_cache_that_cannot_be_written_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DOCTOR_CACHE", str(tmp_path / "file"))
    files, notes, _ = prepare(make_run(tmp_path))
    assert files and any("not kept for the next run" in note for note in notes)


def test_small_data_are_kept_only_where_a_folder_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.delenv("DOCTOR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    prepare(make_run(tmp_path))
    assert not (tmp_path / "xdg").exists()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"DOCTOR_CACHE": "/big"}, "/big/tokens"),
        ({"DOCTOR_CACHE": "off"}, "None"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/rundoctor/tokens"),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], expected: str) -> None:
    assert str(cache_folder(environ)) == expected


def test_a_full_disk_is_said_with_the_way_out_and_what_was_done_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenising, "CHUNK_ROWS", 32)
    monkeypatch.setattr(tokenising, "KEPT_EVERY_S", 0.0)
    run = make_run(tmp_path, rows=300)
    whole, _, _ = prepare(make_run(tmp_path, name="whole"))
    real, added = StoreWriter.add, 0

    def full(self: StoreWriter, encoded: Encoded) -> None:
        nonlocal added
        added += 1
        if added == 4:
            self.files["ids"].write(b"half a chunk")
            raise OSError(28, "No space left on device")
        real(self, encoded)

    monkeypatch.setattr(StoreWriter, "add", full)
    monkeypatch.setenv("DOCTOR_CACHE", "off")
    with pytest.raises(InputError, match=r"no room .* --run-dir"):
        prepare(run)
    assert read_progress_of(run)["position"]["taken"] == 3 * 32
    monkeypatch.setattr(StoreWriter, "add", real)
    assert prepare(run)[0] == whole


def read_progress_of(run: RunDir) -> Any:
    return json.loads((run.path / "data.making" / "progress.json").read_bytes())


class Dies:
    """An encoder that kills the worker it runs in, once; in the process of the test it works."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __call__(self, chunk: Chunk) -> Any:
        if os.getpid() != self.home and chunk[0][0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return [number for number, _ in chunk]


def test_a_worker_that_is_killed_loses_no_row() -> None:
    chunks: Iterator[Any] = iter([[(number, None)] for number in range(12)])
    encoder: Any = Dies()
    found: list[Any] = list(encoded_chunks(encoder, chunks, 2))
    assert found == [[number] for number in range(12)]


def test_the_cut_of_memory_by_ids_is_bounded_by_chunks_under_way() -> None:
    """However many chunks there are, only so many are read ahead of the one that is taken."""
    read = 0

    def chunks() -> Iterator[Any]:
        nonlocal read
        for number in range(200):
            read += 1
            yield [(number, None)]

    encoder: Any = lambda chunk: numpy.int64(chunk[0][0])  # noqa: E731
    for taken, _ in enumerate(encoded_chunks(encoder, chunks(), 2), start=1):
        assert read - taken <= 2 * tokenising.CHUNKS_AHEAD


def test_a_very_long_text_is_tokenised_from_its_beginning_to_the_same_ids(tmp_path: Path) -> None:
    """And all of it where its beginning is one endless word, or many blanks, that do not fill the row."""
    bench = built(make_run(tmp_path))
    encoder = RowEncoder(bench.data.task, bench.data.tokenizer, 32, False, False)
    words = "the soup was warm and cold \u9001\u9910, " * 9000
    texts = [words, "x" * 200_000 + " " + words, " " * 300_000 + words, "short", words[:131_080]]
    chunk = [(number, Row(text, "", "1")) for number, text in enumerate(texts)]
    found = encoder(chunk)
    encoder.most_characters = sys.maxsize
    whole = encoder(chunk)
    assert found.ids.tolist() == whole.ids.tolist() and found.truncated == whole.truncated == 4
    alone = RowEncoder(bench.data.task, bench.data.tokenizer, 32, False, False)
    asked: list[int] = []
    cut = alone._cut
    alone._cut = lambda texts, pairs: asked.append(len(texts[0])) or cut(texts, pairs)  # type: ignore[method-assign, func-returns-value]
    alone([(0, Row(words, "", "1"))])
    assert len(asked) == 1 and asked[0] < 132_000 < len(words)


def test_a_vocabulary_of_one_long_text_is_that_of_its_pieces() -> None:
    text = "warm soup\u3000\u9001\u9910 " * 200_000
    assert make_vocabulary([text], 200) == make_vocabulary(text.split(), 200)
