"""A question to a program that may be anything ends in time, holds little, and leaves no process behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from doctor.probes.small_child import ask


def script(folder: Path, body: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        pytest.param("echo 3.11.7", "3.11.7\n", id="an answer"),
        pytest.param("echo talk >&2; echo 3.11.7", "3.11.7\n", id="talk on stderr is none"),
        pytest.param("echo 3.11.7; exit 3", None, id="it fails"),
        pytest.param("sleep 100", None, id="it hangs"),
        pytest.param("yes", None, id="it prints without end"),
        pytest.param("exec >&-; sleep 100", None, id="it closes its output and hangs"),
    ],
)
def test_only_an_answer_is_an_answer(tmp_path: Path, body: str, answer: str | None) -> None:
    assert ask([script(tmp_path, body)], 0.5) == answer


def test_what_is_no_program_has_no_answer(tmp_path: Path) -> None:
    assert ask([tmp_path / "nothing"], 0.5) is None
    assert ask([tmp_path], 0.5) is None


def test_a_wrappers_children_end_with_it(tmp_path: Path) -> None:
    assert ask([script(tmp_path, f"sleep 100 & echo $! > {tmp_path}/pid; wait")], 1.0) is None
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not _runs(child):
            return
        time.sleep(0.05)
    pytest.fail(f"process {child} is still there")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
