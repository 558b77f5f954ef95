"""The sampler on the stand-in NVML: what it writes of the cards is what the driver said."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from doctor.gpu_meter import GpuMeter
from doctor.probes.nvml import NvmlReader
from runner.events import RunEvent, read_events
from runner.rundir import RunDir
from runner.state import RunState, fold
from runner.text import t
from tests.nvml.build import environment, has_compiler, write_scenario

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


def test_eight_cards_that_take_seconds_to_wake_are_shown_when_they_have(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "8xh100", {"slow.nvmlInitWithFlags": 2500})
    meter = GpuMeter(reader=NvmlReader(environment(scenario)))
    answers: list[dict[str, Any]] = []
    try:
        while not (answers and "gpus" in answers[-1]) and len(answers) < 400:
            answers.append(meter.sample())
            time.sleep(0.05)
    finally:
        meter.close()
    assert "why" in answers[0]
    assert len(answers[-1]["gpus"]) == 8


def test_a_driver_that_is_always_late_still_gives_values(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"slow.nvmlDeviceGetTemperature": 300})
    reader = NvmlReader(environment(scenario))
    try:
        seen = [reader.sample(0.1) for _ in range(30)]
    finally:
        reader.close()
    assert any(isinstance(answer, list) for answer in seen)


def test_cards_that_cannot_be_read_now_keep_their_last_values_with_their_age() -> None:
    def sample(at: float, **data: object) -> RunEvent:
        return RunEvent(seq=0, t=at, source="sampler", kind="sample-gpu", data=data)

    seen = [{"index": 0, "utilization_pct": 97.0}]
    state = fold([sample(100, gpus=seen), sample(105, why=t("late")), sample(140, why=t("late"))])
    assert (state.gpus["gpus"], state.gpus["seen_at"], str(state.gpus["why"])) == (seen, 100, "late")
    assert state.windows.whole.gpu_looks == 1, "an old value is no new look"
    assert fold([sample(141, gpus=[{"index": 0}])], state).gpus == {"gpus": [{"index": 0}]}
    assert fold([sample(1, why=t("no driver"))], RunState()).gpus == {"why": t("no driver")}
