"""``doctor plan --measure`` and ``doctor tune``, typed: real steps on this CPU, and what later plans make of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.commands.planned_step import memory

ROOT = Path(__file__).parent.parent.parent
MB = 1 << 20
SMALL = {"model_type": "bert", "vocab_size": 2000, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 128}  # fmt: skip


def doctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "small.json").write_text(json.dumps(SMALL))
    environ = {
        **os.environ,
        "DOCTOR_LANG": "en",
        "DOCTOR_STATE_DIR": str(folder / "state"),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-m", "doctor", *arguments], capture_output=True, text=True, timeout=280, cwd=folder, env=environ,
        check=False,
    )  # fmt: skip


def plan(folder: Path, *arguments: str) -> dict[str, Any]:
    done = doctor(folder, "plan", "--model", "small.json", "--seq", "32", "--cpu", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    tree: dict[str, Any] = json.loads(done.stdout)
    return tree


@pytest.mark.train
def test_what_was_measured_corrects_this_plan_and_later_ones_and_no_other_precision(tmp_path: Path) -> None:
    before = plan(tmp_path, "--batch", "2", "--precision", "fp32")
    measured = plan(tmp_path, "--batch", "2", "--precision", "fp32", "--measure")
    later = plan(tmp_path, "--batch", "64", "--precision", "fp32")
    assert before["correction"] is None
    assert [row["batch"] for row in measured["measured"]["rows"]] == [1, 2]
    (largest,) = [row for row in measured["measured"]["rows"] if row["batch"] == 2]
    assert measured["estimate"]["allocated_bytes"] == pytest.approx(largest["peak_bytes"], abs=2)
    assert later["correction"] == measured["correction"]
    assert "correction" in [part["name"] for part in later["estimate"]["parts"]]
    assert plan(tmp_path, "--precision", "bf16")["correction"] is None


@pytest.mark.long
@pytest.mark.train
def test_tune_finds_a_batch_within_the_limit_and_plan_shows_it(tmp_path: Path) -> None:
    done = doctor(tmp_path, "tune", "--model", "small.json", "--seq", "32", "--precision", "fp32", "--cpu",
                  "--memory-limit", "600MB", "--limit-seconds", "60", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["search"]["largest"] >= 1
    assert found["tuned"]["process_bytes"] <= 0.92 * 600 * MB
    assert found["tuned"]["capped"] is True
    assert f"batch {found['search']['tried'][0]['batch']}:" in done.stderr, "each is said as it comes"
    assert plan(tmp_path, "--precision", "fp32")["tuned"]["batch"] == found["search"]["largest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.json", "state"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("tune",), 2, "Name a profile", id="tune what?"),
        pytest.param(("tune", "--model", "small.json", "--cpu", "--optimizer", "adamw-8bit"), 3, "bitsandbytes", id="8 bits"),
        pytest.param(("plan", "--model", "small.json", "--cpu", "--gpus", "2", "--measure"), 3, "one device", id="two cards"),
        pytest.param(("tune", "--model", "small.json", "--cpu", "--memory-limit", "lots"), 2, "2GB", id="no size"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_said(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = doctor(tmp_path, *arguments)
    assert done.returncode == code
    assert words in done.stderr


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2048), ("1.5g", 1536), ("800MB", 800), ("800 MiB", 800), ("512", 512)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert memory(text) == size * MB
