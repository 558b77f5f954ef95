"""The first steps' memory in a run: foretold and measured side by side, and a warning at once where they part."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner import memory_watch
from runner.memory_watch import have_parted, warning
from runner.model_families import FAMILIES
from runner.state import fold
from tests.runner.tiny import events, make_run, outcome, train

MIB = 1 << 20


@pytest.mark.parametrize(
    ("measured", "foretold", "device", "parted"),
    [
        pytest.param(1100, 1000, "cuda", False, id="ten percent on a card"),
        pytest.param(1200, 1000, "cuda", True, id="twenty percent more on a card"),
        pytest.param(800, 1000, "cuda", True, id="twenty percent less on a card"),
        pytest.param(60, 30, "cuda", False, id="twice, but thirty MB"),
        pytest.param(440, 200, "cpu", False, id="twice on a CPU, within what its libraries take"),
        pytest.param(1400, 1000, "cpu", False, id="on a CPU the C library alone may keep as much"),
        pytest.param(1500, 1000, "cpu", True, id="fifty percent of a real model on a CPU"),
        pytest.param(600, 1000, "cpu", True, id="forty percent less on a CPU"),
    ],
)
def test_they_part_by_more_than_a_share_and_more_than_noise(
    measured: int, foretold: int, device: str, parted: bool
) -> None:
    assert have_parted(measured * MIB, foretold * MIB, device) is parted


def test_more_than_foretold_says_what_the_longest_samples_may_take() -> None:
    words = str(warning(1500 * MIB, 1000 * MIB, 4000 * MIB, (8, 120), 512))
    assert "+50 %" in words
    assert "512 tokens may take 6000 MB" in words


def test_less_than_foretold_says_that_a_larger_micro_batch_may_fit() -> None:
    words = str(warning(500 * MIB, 1000 * MIB, 4000 * MIB, (8, 120), 512))
    assert "-50 %" in words
    assert "larger micro-batch may fit" in words


@pytest.mark.train
def test_a_run_tells_what_was_foretold_and_measured_after_its_second_step(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=4"])
    assert train(run) == 0
    told = events(run, "memory")
    assert told and told[0].step == 2
    data = told[0].data
    assert data["device"] == "cpu"
    assert data["samples"] == 4 and 1 <= data["length"] <= 32
    assert 0 < data["predicted_bytes"] <= data["worst_bytes"] < 50 * MIB
    assert data["measured_bytes"] > 0
    assert data["process_bytes"] > 100 * MIB
    assert data["parted"] is False
    assert fold(told).memory == told[-1].data


@pytest.mark.train
def test_a_run_that_takes_more_than_foretold_is_warned_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = memory_watch.Taken(tensor_bytes=3000 * MIB, process_bytes=3500 * MIB)
    monkeypatch.setattr(memory_watch.MemoryWatch, "_taken", lambda _: taken)
    run = make_run(tmp_path, ["train.steps=4"])
    assert train(run) == 0
    notes = [note for note in events(run, "note") if "foretold" in note.data["text"]["msgid"]]
    assert notes and notes[0].step == 2
    assert notes[0].data["level"] == "warn"
    assert events(run, "memory")[0].data["parted"] is True
    assert outcome(run)["outcome"] == "completed"


@pytest.mark.train
def test_a_run_that_the_arithmetic_does_not_know_is_measured_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(FAMILIES, "bert")
    run = make_run(tmp_path, ["train.steps=3"])
    assert train(run) == 0
    (told, *_) = events(run, "memory")
    assert "predicted_bytes" not in told.data
    assert "does not know the architecture" in told.data["why"]["msgid"]
    assert told.data["measured_bytes"] > 0


@pytest.mark.train
def test_what_stands_still_is_foretold_as_taking_less(tmp_path: Path) -> None:
    foretold = []
    for name, rules in (("all", ""), ("head", '{ parameters = "bert.*" }')):
        run = make_run(tmp_path, ["train.steps=3", f"train.freeze=[{rules}]"], name)
        assert train(run) == 0
        foretold.append(events(run, "memory")[0].data["predicted_bytes"])
    assert foretold[1] < foretold[0] / 2
