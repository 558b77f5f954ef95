"""The sampler on the stand-in NVML: what it writes of the cards is what the driver said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.events import read_events
from runner.rundir import RunDir
from tests.nvml.build import environment, has_compiler

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler for the stand-in NVML")


def sampled(scenario: str, tmp_path: Path) -> list[dict[str, object]]:
    run = RunDir(tmp_path / "run")
    run.make()
    target = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3.5)"])
    argv = [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(target.pid), "--no-stacks"]
    try:
        done = subprocess.run(argv, env=environment(scenario), capture_output=True, timeout=30)
    finally:
        target.kill()
        target.wait()
    assert done.returncode == 0, done.stderr
    return [
        event.data for event, _ in read_events(run.events / "sampler.jsonl") if event.kind == "sample-gpu"
    ]


def test_throttled_cards_come_with_their_reasons(tmp_path: Path) -> None:
    cards = sampled("throttled", tmp_path)[-1]["gpus"]
    assert isinstance(cards, list)
    first = {
        key: cards[0][key]
        for key in ("name", "utilization_pct", "temperature_c", "power_w", "power_limit_w", "sm_clock_mhz")
    }
    assert first == {
        "name": "NVIDIA L40S", "utilization_pct": 99, "temperature_c": 93, "power_w": 180, "power_limit_w": 350, "sm_clock_mhz": 990,
    }  # fmt: skip
    assert all(card["throttle_reasons"] for card in cards)


def test_a_lost_card_is_named_and_the_others_are_still_read(tmp_path: Path) -> None:
    cards = sampled("lost-card", tmp_path)[-1]["gpus"]
    assert isinstance(cards, list)
    assert len(cards) == 4
    assert "lost" in str(cards[2]["error"]).lower()
    assert cards[0]["temperature_c"] == 30


def test_a_hung_driver_costs_the_gpu_lines_only_and_says_so(tmp_path: Path) -> None:
    answers = sampled("hung", tmp_path)
    assert answers
    assert all("why" in answer for answer in answers)


def test_no_driver_is_said_once_not_every_second(tmp_path: Path) -> None:
    assert len(sampled("not-loaded", tmp_path)) == 1
