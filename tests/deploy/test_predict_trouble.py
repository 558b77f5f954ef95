"""``doctor predict`` on files as they come: Parquet, broken rows, an interrupt, a kill, a full disk. A part never looks whole."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.deploy.opening import open_trained
from runner.deploy.predicting import SORTED_ROWS, Request, _answers
from runner.rows import Row
from tests.commands_run import doctor
from tests.deploy.tiny import save_model

pytestmark = pytest.mark.long

TEXTS = [f"the film was {'good' if number % 2 else 'bad'} " + "very " * (number % 9) for number in range(60)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("predict") / "model", "AutoModelForSequenceClassification")


def ask(model: Path, *arguments: str) -> tuple[int, str, str]:
    done = doctor(
        "predict", str(model), "--python", sys.executable, *arguments, cwd=model.parent, timeout_s=200
    )
    return done.returncode, done.stdout, done.stderr


def many_rows(path: Path, rows: int) -> None:
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text"])
        table.writerows([["the film was good " * 20]] * rows)


def test_parquet_is_read_in_its_order(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    texts = [*TEXTS, None, ""]
    table = pyarrow.table({"number": list(range(len(texts))), "review": texts})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    code, _, err = ask(
        model, "--file", str(tmp_path / "rows.parquet"), "--column", "review", "-o", str(tmp_path / "a.jsonl")
    )
    assert code == 0, err
    answers = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [one["text"] for one in answers] == [text or "" for text in texts]
    code, _, err = ask(model, "--file", str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "b.jsonl"))
    assert code == 1 and "no column text (there are number, review)" in err and "--column" in err


def test_rows_that_do_not_fit_the_header_are_counted_and_the_rest_is_answered(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("text,stars\ngood film,5\nbad, very bad,1\nbad\nnot good,2\n")
    code, _, err = ask(model, "--file", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "a.csv"))
    assert code == 0, err
    assert "2 rows have more or fewer fields than the header" in err
    with open(tmp_path / "a.csv", encoding="utf-8-sig", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == ["good film", "not good"]


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "a line that is no JSON": ("rows.jsonl", b'{"text": "good"}\n{"text": \n{"text": "bad"}\n', "line 2"),
    "a Parquet file that was cut off": ("rows.parquet", b"PAR1\x00\x00", "rows.parquet"),
    "a name that tells no form": ("rows.xlsx", b"PK\x03\x04", ".parquet or .txt"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_one_sentence_and_no_answers(
    model: Path, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "out").mkdir()
    code, out, err = ask(model, "--file", str(tmp_path / name), "-o", str(tmp_path / "out" / "a.csv"))
    assert code == 1, (out, err)
    assert words in err and len(err.splitlines()) == 1 and "Traceback" not in err
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_not_there_is_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("good\n")
    code, _, err = ask(model, "--file", str(tmp_path / "rows.txt"), "-o", str(tmp_path / "gone" / "a.csv"))
    assert code == 1 and f"there is no folder {tmp_path / 'gone'}" in err


def started(model: Path, source: Path, target: Path) -> subprocess.Popen[str]:
    """Start to answer a long file, and return when answers have reached the disk."""
    code = "import sys; from doctor.commands import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, "predict", str(model), "--python", sys.executable, "--file", str(source), "-o", str(target)]  # fmt: skip
    process = subprocess.Popen(
        argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if any(path.stat().st_size for path in target.parent.glob(".*")):
            return process
        time.sleep(0.05)
    raise AssertionError(process.communicate(timeout=10))


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def gone(folder: Path) -> list[str]:
    """Return what is still in a folder after a moment."""
    wait_for(lambda: not list(folder.iterdir()))
    return [path.name for path in folder.iterdir()]


@pytest.mark.train
@pytest.mark.parametrize(
    ("how", "suffix"), [("Ctrl-C", ".csv"), ("a kill", ".parquet"), ("a closed terminal", ".jsonl")]
)
def test_what_was_broken_off_is_kept_under_another_name(
    model: Path, tmp_path: Path, how: str, suffix: str
) -> None:
    many_rows(tmp_path / "rows.csv", 200_000)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / f"a{suffix}"
    process = started(model, tmp_path / "rows.csv", target)
    if how == "a kill":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGINT if how == "Ctrl-C" else signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert process.returncode == {"Ctrl-C": 130, "a kill": -signal.SIGKILL}.get(how, -signal.SIGHUP)
    assert "Traceback" not in err
    part = target.with_name(f"a.part{suffix}")
    wait_for(lambda: [path.name for path in target.parent.iterdir()] == [part.name])
    if how == "Ctrl-C":
        assert f"are kept in {part}: the same line with --resume goes on from there" in err
        kept = int(re.findall(r"(\d+) answers are kept", err)[0])
        many_rows(tmp_path / "rows.csv", kept + 3)
        code, out, err = ask(model, "--file", str(tmp_path / "rows.csv"), "-o", str(target), "--resume")
        assert (code, f"{kept + 3} answers in" in out) == (0, True), err
        assert [path.name for path in target.parent.iterdir()] == ["a.csv"]


@pytest.mark.train
def test_what_a_kill_of_everything_left_is_removed_by_the_next(model: Path, tmp_path: Path) -> None:
    many_rows(tmp_path / "rows.csv", 200_000)
    (tmp_path / "few.txt").write_text("good\n")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "a.csv"
    process = started(model, tmp_path / "rows.csv", target)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    time.sleep(0.5)
    assert [path.name for path in target.parent.iterdir()] != ["a.csv"]
    assert ask(model, "--file", str(tmp_path / "few.txt"), "-o", str(target))[0] == 0
    assert [path.name for path in target.parent.iterdir()] == ["a.csv"]


@pytest.mark.train
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_is_one_sentence_with_the_file(model: Path, tmp_path: Path, suffix: str) -> None:
    """A limit on the size of a file fails a write as a full disk does: in its middle, with OSError."""
    (tmp_path / "rows.txt").write_text(
        "".join(f"the film {number} was good {os.urandom(40).hex()}\n" for number in range(3000))
    )
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / f"a{suffix}"
    argv = f"ulimit -f 120; exec {sys.executable} -c 'import sys; from doctor.commands import main; sys.exit(main())' "
    done = subprocess.run(
        ["bash", "-c", argv + f"predict {model} --python {sys.executable} --file {tmp_path / 'rows.txt'} -o {target}"],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert str(target) in done.stderr and "File too large" in done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith("doctor:")]
    assert len(complaints) == 1 and ".making-" not in done.stderr
    assert gone(target.parent) == []


def test_no_more_rows_are_held_than_are_sorted_together(model: Path) -> None:
    read = 0

    def rows() -> Iterator[Row]:
        nonlocal read
        for _ in range(10_000):
            read += 1
            yield Row("good", "", None)

    answers = _answers(open_trained(model), rows(), Request(folder=str(model), batch_size=64))
    for _ in range(SORTED_ROWS + 1):
        next(answers)
    assert read == 2 * SORTED_ROWS
