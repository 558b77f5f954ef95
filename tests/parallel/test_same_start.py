"""Ranks that do not begin alike do not begin: another rate, cut or library on one machine is named, on all ranks the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from runner.plan import decode_plan
from runner.rundir import RunDir
from runner.same_start import begins_with, code_digest, differences
from tests.parallel.together import FORKS, free_port, one_rank, overrides
from tests.runner.tiny import events, make_run, outcome

pytestmark = pytest.mark.train


def told(run: RunDir) -> dict[str, object]:
    return begins_with(decode_plan(run.plan.read_bytes()))


DIFFERENT = {
    "the rate": (["train.lr=1e-3"], "train.lr: 0.0003 / 0.001"),
    "the cut": (["train.micro_batch_size=2"], "train.micro_batch_size: 4 / 2"),
    "the seed": (["run.seed=8"], "seeds.init: "),
    "the precision": (['train.precision="bf16"'], "train.precision: fp32 / bf16"),
    "how they share": (['parallel.strategy="fsdp"'], "parallel.strategy: auto / fsdp"),
}


@pytest.mark.parametrize(("more", "said"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_what_differs_is_named_with_both_values(tmp_path: Path, more: list[str], said: str) -> None:
    one, other = (
        make_run(tmp_path, ["train.lr=3e-4"], "one"),
        make_run(tmp_path, ["train.lr=3e-4", *more], "other"),
    )
    assert any(line.startswith(said) for line in differences(told(one), told(other)))


EACH_ITS_OWN = ["run.name=other", "train.workers=2", "parallel.timeout_s=30", "train.pin_memory=true"]


def test_what_a_machine_has_for_itself_does_not_count(tmp_path: Path) -> None:
    one, other = make_run(tmp_path, [], "one"), make_run(tmp_path / "elsewhere", EACH_ITS_OWN, "other")
    assert differences(told(one), told(other)) == []


def test_another_library_or_code_is_named(tmp_path: Path) -> None:
    first = told(make_run(tmp_path))
    assert differences(first, {**first, "torch": "2.6.0"}) == [f"torch: {first['torch']} / 2.6.0"]
    (tmp_path / "a.py").write_text("x = 1")
    before = code_digest(tmp_path)
    (tmp_path / "a.py").write_text("x = 2")
    assert code_digest(tmp_path) != before


def test_a_rank_with_another_plan_ends_all_before_anything_is_made(tmp_path: Path) -> None:
    """As two machines started with different --set: each has a run directory of its own."""
    runs = [
        make_run(tmp_path, overrides(f"train.lr={lr}"), f"rank{rank}")
        for rank, lr in enumerate(("3e-4", "1e-3"))
    ]
    port = free_port()
    ranks = [FORKS.Process(target=one_rank, args=(run, rank, 2, port)) for rank, run in enumerate(runs)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
    assert [process.exitcode for process in ranks] == [1, 1]
    said = [msgspec.json.encode(event.data).decode() for event in events(runs[0], "note")]
    assert "train.lr: 0.0003 / 0.001" in str(outcome(runs[0])["error"]) and "rank 1" in str(
        outcome(runs[0])["error"]
    )
    assert said and not runs[0].data.exists()
