"""``doctor plan PROFILE --data``: the rows are read as a run would read them, and nothing is written or trained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.tiny import PROFILE, write_rows


def plan_data(folder: Path, *arguments: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-m", "doctor", "plan", *arguments, "--data"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=folder)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    write_rows(tmp_path / "rows.csv")
    return tmp_path


def test_rows_are_counted_by_class_and_what_is_odd_is_said_with_its_line(folder: Path) -> None:
    with open(folder / "rows.csv", "a") as file:
        file.write("one more,1\nodd,one,out\n")
    code, out, _ = plan_data(folder, "./tiny.toml")
    assert code == 0
    assert "161 rows to train on, 40 held out, 2 classes" in out
    assert [line.split() for line in out.splitlines()[2:4]] == [["0", "80", "20"], ["1", "81", "20"]]
    assert f"{folder / 'rows.csv'}:203" in out.replace("\n    ", " ")
    assert sorted(path.name for path in folder.iterdir()) == ["rows.csv", "tiny.toml"], "nothing is written"


def test_rows_that_cannot_be_trained_on_are_an_answer_of_their_own(folder: Path) -> None:
    code, out, err = plan_data(folder, "./tiny.toml", "--set", 'data.labels=["0"]')
    assert (code, err) == (1, "")
    assert f"cannot train: data.train: unknown label(s) 1, first at {folder / 'rows.csv'}:3" in out.replace(
        "\n    ", " "
    )


def test_it_is_a_document_too(folder: Path) -> None:
    code, out, _ = plan_data(folder, "./tiny.toml", "--json")
    tree = json.loads(out)
    assert code == 0 and tree["can_train"] and (tree["train"], tree["held_out"]) == (160, 40)
    assert tree["classes"] == [
        {"name": "0", "train": 80, "held_out": 20},
        {"name": "1", "train": 80, "held_out": 20},
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), "name one"), (("nowhere",), "nowhere"), (("./tiny.toml", "--set", "data.text=3"), "data.text")],
    ids=["no profile", "none of that name", "a wrong value"],
)
def test_a_wrong_line_is_said(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = plan_data(folder, *arguments)
    assert code == 2 and words in err and "Traceback" not in err
