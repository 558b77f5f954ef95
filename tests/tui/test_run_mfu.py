"""A run's utilisation counts the tokens of all its processes and the cards that these train on, not what else the machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.expectations import Expected
from doctor.run_mfu import mfu_of
from doctor.service import watch_run
from runner.events import EventWriter
from runner.text import Text
from tests.tui.recorded import ONE_4090, RunBuilder

CARD: dict[str, Any] = ONE_4090["gpus"][0]
EXPECTED = Expected(flops_per_token=1e10)
PEAK = 165.2e12
"""Of an RTX 4090, 16-bit."""


def run_of(path: Path, cards: list[dict[str, Any]], world: int = 1, **started: Any) -> float | Text:
    run = RunBuilder(path)
    about = {"world_size": world} if world > 1 else {}
    others = [
        EventWriter(run.run.events / f"trainer-{rank}.jsonl", f"trainer-{rank}", run.clock)
        for rank in range(1, world)
    ]
    run.start(device="cuda:0", **about, **started)
    for step in range(1, 31):
        run.steps(1, first=step)
        for writer in others:
            writer.write("step", step, tokens=3000, samples=32, seconds=1.0)
    run.gpu(gpus=cards)
    return mfu_of(watch_run(str(run.run.path)).poll(), EXPECTED)


def test_eight_cards_that_stand_by_do_not_count(tmp_path: Path) -> None:
    one, among_eight = (run_of(tmp_path / str(n), [{**CARD, "index": i} for i in range(n)]) for n in (1, 8))
    assert one == among_eight == pytest.approx(3000 * 1e10 / PEAK, rel=0.05)


@pytest.mark.parametrize("seen", [4, 2], ids=["all on this machine", "half of them on another"])
def test_four_ranks_count_four_times_their_tokens_and_four_cards(tmp_path: Path, seen: int) -> None:
    found = run_of(tmp_path / "r", [{**CARD, "index": i} for i in range(seen)], world=4)
    assert found == pytest.approx(3000 * 1e10 / PEAK, rel=0.05)


def test_cards_of_different_kinds_are_not_guessed_about(tmp_path: Path) -> None:
    found = run_of(tmp_path / "r", [CARD, {**CARD, "name": "NVIDIA H100 80GB HBM3"}])
    assert isinstance(found, Text) and "different kinds" in str(found)


def test_a_command_of_the_users_own_is_not_guessed_about(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "r")
    run.trainer = EventWriter(run.run.events / "log.jsonl", "log", run.clock)
    run.start(device="cuda:0", command=["python", "train.py"]).steps(5)
    run.gpu(gpus=[CARD, {**CARD, "index": 1}])
    found = mfu_of(watch_run(str(run.run.path)).poll(), EXPECTED)
    assert isinstance(found, Text) and "not told" in str(found)
