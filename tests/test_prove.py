"""The same bits twice, or where they part: as tables over traces, and with real trainings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.proofs import Place, ProofRecord, Trace, level_of, parting, place_differences, read_trace
from doctor.prove import proof_plan
from runner.plan import decode_plan, encode_plan, make_plan
from runner.profile import load_profile
from tests.runner.tiny import ONE_CORE, PROFILE, write_rows

ROOT = Path(__file__).parent.parent


def line(window: int, **changed: dict[str, str]) -> dict[str, Any]:
    base = {
        stage: {"a": "1", "b": "2"} for stage in ("data", "random", "gradients", "parameters", "optimizer")
    }
    return {
        "window": window,
        **base,
        **({"init": {"a": "0"}} if window == 0 else {}),
        **changed,
        "loss": "0x1p-1",
    }


def trace(*lines: dict[str, Any]) -> Trace:
    return Trace(lines=lines)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(trace(line(0), line(1)), None, id="the same"),
        pytest.param(
            trace(line(0, init={"a": "9"}), line(1)), (0, "init", ("a",)), id="other weights to begin with"
        ),
        pytest.param(
            trace(line(0), line(1, data={"a": "1", "b": "9"})), (1, "data", ("b",)), id="another batch"
        ),
        pytest.param(
            trace(line(0, gradients={"a": "9", "b": "9"}, parameters={"a": "9", "b": "9"}), line(1)),
            (0, "gradients", ("a", "b")),
            id="gradients differ, and so everything after",
        ),
        pytest.param(
            trace(line(0, optimizer={"a": "1"}), line(1)), (0, "optimizer", ("b",)), id="a state is missing"
        ),
        pytest.param(
            trace(line(0, random={"a": "9", "b": "2"}), line(1)), (0, "random", ("a",)), id="another draw"
        ),
        pytest.param(trace(line(0)), (1, "length", ()), id="one ended sooner"),
    ],
)
def test_the_first_difference_is_named(
    other: Trace, expected: tuple[int, str, tuple[str, ...]] | None
) -> None:
    found = parting(trace(line(0), line(1)), other)
    assert (found and (found.window, found.stage, found.names)) == expected
    assert (found is None) == (trace(line(0), line(1)).sha256 == other.sha256)


HERE = Place(device="RTX 4090", torch="2.6.0", hostname_hash="aa")
THERE = Place(device="RTX 4090", torch="2.6.0", hostname_hash="bb")


@pytest.mark.parametrize(
    ("same", "before", "now", "expected"),
    [
        pytest.param(False, None, HERE, "none", id="two starts differ"),
        pytest.param(True, None, HERE, "new-process", id="never proved before"),
        pytest.param(
            True, ProofRecord(sha256="x", steps=5, place=HERE), HERE, "new-session", id="as before, here"
        ),
        pytest.param(
            True,
            ProofRecord(sha256="x", steps=5, place=THERE),
            HERE,
            "new-machine",
            id="as before, elsewhere",
        ),
        pytest.param(
            True, ProofRecord(sha256="y", steps=5, place=THERE), HERE, "new-process", id="not as before"
        ),
        pytest.param(
            True, ProofRecord(sha256="x", steps=9, place=THERE), HERE, "new-process", id="another length"
        ),
    ],
)
def test_the_level_is_what_was_shown(
    same: bool, before: ProofRecord | None, now: Place, expected: str
) -> None:
    assert level_of(same, before, ProofRecord(sha256="x", steps=5, place=now)) == expected


def test_what_differs_between_two_places_is_named_without_the_machine_itself() -> None:
    assert place_differences(HERE, THERE) == []
    assert place_differences(HERE, msgspec.structs.replace(HERE, torch="2.7.0", driver="570")) == [
        "driver",
        "torch",
    ]


def test_of_a_window_that_was_tried_again_the_last_line_counts() -> None:
    content = b"\n".join(
        msgspec.json.encode({"window": window, "data": {"a": value}})
        for window, value in ((0, "1"), (1, "2"), (0, "3"))
    )
    assert [item["data"]["a"] for item in read_trace(content).lines] == ["3", "2"]
    with pytest.raises(ValueError, match="line 2"):
        read_trace(b'{"window": 0}\nnot json\n')


def test_a_plan_to_be_proved_differs_in_nothing_but_when_it_stops(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    plan = make_plan(load_profile(tmp_path / "tiny.toml", []), ONE_CORE, "2026-11-30T00:00:00Z")
    proved = decode_plan(encode_plan(proof_plan(plan, 3)))
    assert proved.environment.pop("DOCTOR_PROOF_STEPS") == "3"
    assert msgspec.structs.replace(proved, digest=plan.digest) == plan


# -- real trainings ----------------------------------------------------------------------------------------------
def doctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DOCTOR_LANG": "en"}
    return subprocess.run(
        [sys.executable, "-m", "doctor", *words, "--python", sys.executable], cwd=folder, env=environ,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    write_rows(tmp_path / "rows.csv", 60)
    return tmp_path


@pytest.mark.long
@pytest.mark.train
def test_a_run_is_proved_twice_and_a_changed_file_is_found(folder: Path) -> None:
    assert doctor(folder, "run", "tiny.toml", "--run-dir", "run", "--set", "train.steps=4").returncode == 0
    first = doctor(folder, "prove", "run", "--steps", "2", "--json")
    assert first.returncode == 0, first.stderr
    record = json.loads(first.stdout)["record"]
    assert record["level"] == "new-process" and len(record["lines"]) == 2
    assert json.loads((folder / "run" / "proof.json").read_text())["sha256"] == record["sha256"]
    again = doctor(folder, "prove", "run", "--steps", "2")
    assert again.returncode == 0 and "as proved here before" in again.stdout
    rows = (folder / "rows.csv").read_text()
    (folder / "rows.csv").write_text(rows.replace("the soup", "a side").replace("waited", "order"))
    changed = doctor(folder, "prove", "run", "--steps", "2")
    assert changed.returncode == 1 and "Not the same as the proof of" in changed.stdout
    assert json.loads((folder / "run" / "proof.json").read_text())["sha256"] == record["sha256"], (
        "the old one is kept"
    )


UNSTEADY = """
import os
import torch

def loss(logits, labels):
    noise = 1 + int.from_bytes(os.urandom(2), "big") / 2**16
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none") * noise
"""


@pytest.mark.train
def test_a_loss_that_draws_from_elsewhere_is_found_in_forward_and_backward(folder: Path) -> None:
    (folder / "unsteady.py").write_text(UNSTEADY)
    done = doctor(folder, "prove", "tiny.toml", "--steps", "2", "--set", "train.loss=unsteady:loss")
    assert done.returncode == 1, done.stderr
    assert "not reproducible" in done.stdout and "in step 1, in forward or backward" in done.stdout
    assert "loss: " in done.stdout


@pytest.mark.train
def test_a_training_that_fails_is_a_sentence_with_its_last_words(folder: Path) -> None:
    done = doctor(folder, "prove", "tiny.toml", "--set", "train.loss=nowhere:loss")
    assert done.returncode == 1 and "nowhere:loss cannot be imported" in done.stderr


def test_what_is_neither_run_nor_profile_is_a_sentence(folder: Path) -> None:
    done = doctor(folder, "prove", "nothing-of-that-name")
    assert done.returncode == 1 and "nothing-of-that-name" in done.stderr
