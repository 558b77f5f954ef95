"""``doctor check --deep`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands_run import doctor
from tests.probes.test_deep import environment


def test_a_torch_that_crashes_is_a_failure_with_its_place(tmp_path: Path) -> None:
    python = environment(tmp_path / "env", torch="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    done = doctor("check", "--deep", "--python", str(python), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "torch-import-fails" in done.stdout and "SIGSEGV: File" in done.stdout
    assert "crashed    import torch" in done.stdout


def test_the_steps_are_facts_of_the_json_report(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 1000)
    python = environment(tmp_path / "env", torch="raise ImportError('no')")
    done = doctor("check", "--deep", "--data", "data", "--json", "--python", str(python), cwd=tmp_path)
    tree = json.loads(done.stdout)
    assert [(step["name"], step["status"]) for step in tree["deep"]["steps"]] == [
        ("import", "failed"),
        ("read", "ok"),
    ]
    assert tree["deep"]["read_path"] == str(tmp_path / "data")
    assert tree["exit_code"] == done.returncode == 1


def test_without_deep_torch_is_not_touched(tmp_path: Path) -> None:
    python = environment(tmp_path / "env", torch="open('touched', 'w')")
    done = doctor("check", "--python", str(python), cwd=tmp_path)
    assert "Deep check" not in done.stdout
    assert not (tmp_path / "touched").exists()


def test_a_hang_costs_no_more_than_the_time_given(tmp_path: Path) -> None:
    python = environment(tmp_path / "env", torch="import time\ntime.sleep(600)")
    done = doctor(
        "check", "--deep", "--deep-timeout", "1", "--python", str(python), cwd=tmp_path, timeout_s=30
    )
    assert "[deep-check-timed-out]" in done.stdout
    assert "what comes behind was not tried" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("--data", "."), "add --deep", id="data without deep"),
        pytest.param(("--deep", "--facts", "x.json"), "leave one of them out", id="another machine"),
        pytest.param(("--deep", "--deep-timeout", "0"), "1 to 3600", id="no time"),
        pytest.param(("--deep", "--deep-timeout", "nan"), "1 to 3600", id="no number"),
        pytest.param(("--deep", "--python", "/nowhere/python"), "no such file", id="no interpreter"),
    ],
)
def test_wrong_words_are_refused(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = doctor("check", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr
