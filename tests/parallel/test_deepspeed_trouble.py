"""Under DeepSpeed's ZeRO, what goes wrong on one rank is known to all of them; what does not go with it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parallel.test_deepspeed import pytestmark as pytestmark
from tests.parallel.test_deepspeed import ranks, zero
from tests.parallel.test_ranks_trouble import LOSS, NAN, SIGNAL
from tests.parallel.together import furthest, overrides
from tests.runner.tiny import events, make_run, outcome


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_nan_is_left_out_on_all_ranks_and_the_rest_goes_on_as_if_it_had_never_been(
    tmp_path: Path, stage: int
) -> None:
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=NAN, at=8))
    more = [
        "train.micro_batch_size=2",
        'train.loss="trouble_loss:loss"',
        'train.non_finite="skip"',
        "train.steps=8",
    ]
    run = make_run(tmp_path, zero(stage, *more))
    assert ranks(run, 2) == [0, 0], outcome(run)
    assert [event.step for event in events(run, "step") if event.data.get("skipped")] == [4]
    ddp = make_run(tmp_path, [*overrides("train.lr=3e-4"), *more], "ddp")
    assert ranks(ddp, 2) == [0, 0], outcome(ddp)
    assert furthest(run.final, ddp.final) <= 1e-6


@pytest.mark.parametrize(
    ("stage", "offload", "size"),
    [(1, "none", 2), (2, "none", 2), (3, "none", 3), (2, "optimizer", 2), (3, "parameters", 2)],
)
def test_a_signal_saves_and_they_go_on_to_the_bit(
    tmp_path: Path, stage: int, offload: str, size: int
) -> None:
    """Three ranks cut what does not come out even: two biases of a head, one to two of them."""
    settings = zero(
        stage, "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', f'train.offload="{offload}"'
    )
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=SIGNAL, at=13))
    run = make_run(tmp_path, settings)
    assert ranks(run, size) == [143] * size, outcome(run)
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert ranks(run, size, resume=True) == [0] * size, outcome(run)
    through = make_run(tmp_path, settings, "through")
    assert ranks(through, size) == [0] * size
    assert furthest(run.final, through.final) == 0.0
    assert furthest(run.checkpoint(20), through.checkpoint(20)) == 0.0


@pytest.mark.parametrize("stage", [2, 3])
def test_another_number_of_processes_goes_on_where_that_is_accepted(tmp_path: Path, stage: int) -> None:
    settings = zero(stage, "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"')
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=SIGNAL, at=13))
    run = make_run(tmp_path, settings)
    assert ranks(run, 2) == [143, 143], outcome(run)
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert ranks(run, 3, resume=True) == [1, 1, 1]
    assert "world_size: 2 -> 3" in str(outcome(run)["error"])
    assert ranks(run, 3, resume=True, approximate=True) == [0, 0, 0], outcome(run)
    through = make_run(
        tmp_path,
        [*overrides("train.lr=3e-4"), "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"'],
        "through",
    )
    assert ranks(through, 2) == [0, 0]
    assert furthest(run.final, through.final) <= 1e-5


@pytest.mark.parametrize("stage", [2, 3])
def test_the_last_good_checkpoint_comes_back_on_all_ranks(tmp_path: Path, stage: int) -> None:
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=NAN, at=20))
    more = [
        "train.micro_batch_size=2",
        'train.loss="trouble_loss:loss"',
        'train.non_finite="rollback"',
        "train.steps=12",
    ]
    run = make_run(tmp_path, zero(stage, *more))
    assert ranks(run, 2) == [0, 0], outcome(run)
    ddp = make_run(tmp_path, [*overrides("train.lr=3e-4"), *more], "ddp")
    assert ranks(ddp, 2) == [0, 0], outcome(ddp)
    assert furthest(run.final, ddp.final) <= 1e-6


@pytest.mark.parametrize(("stage", "offload"), [(1, "none"), (2, "optimizer"), (3, "parameters")])
def test_a_gradient_that_overflows_holds_the_update_back_on_all_ranks_and_lowers_the_scale(
    tmp_path: Path, stage: int, offload: str
) -> None:
    """fp16, and one rank's loss a million times as large in one window: what copies of the model do, to the window."""
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="found = found * 1e6", at=8))
    more = [
        "train.micro_batch_size=2",
        'train.loss="trouble_loss:loss"',
        'train.precision="fp16"',
        "train.steps=8",
    ]
    run = make_run(tmp_path, zero(stage, *more, f'train.offload="{offload}"'))
    ddp = make_run(tmp_path, [*overrides("train.lr=3e-4"), *more], "ddp")
    for one in (run, ddp):
        assert ranks(one, 2) == [0, 0], outcome(one)
    held = [[event.step for event in events(one, "step") if event.data.get("skipped")] for one in (run, ddp)]
    assert held[0] == held[1] and 4 in held[0]
    scales = [json.loads((one.checkpoint(8) / "state.json").read_text())["scaler"] for one in (run, ddp)]
    assert scales[0] == scales[1] and scales[0]["scale"] < 65536.0
    assert furthest(run.final, ddp.final) <= 3e-4


REFUSED = {
    "compiled": (2, ["train.compile=true"], "train.compile (its exchange runs in hooks"),
    "frozen for a while": (2, ['train.freeze=[{ parameters = "bert.encoder.*", until = 3 }]'], "until"),
    "weights away that are not cut": (2, ['train.offload="parameters"'], "zero_stage = 3"),
    "another number of processes than the file says": (2, ["parallel.processes=4"], "--nproc 4"),
    "another number of machines than the file says": (2, ["parallel.processes=16", "parallel.machines=2"], "--nnodes 2 --nproc 8"),
}  # fmt: skip


@pytest.mark.parametrize(("stage", "more", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_go_with_it_is_refused_by_name(
    tmp_path: Path, stage: int, more: list[str], said: str
) -> None:
    run = make_run(tmp_path, zero(stage, *more))
    assert ranks(run, 2) == [1, 1]
    assert said in str(outcome(run)["error"])
