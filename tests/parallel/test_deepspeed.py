"""Under DeepSpeed's ZeRO the same weights come out, and the files are those of any run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers

from runner.rundir import RunDir
from tests.parallel.test_ranks_train import assert_same_training
from tests.parallel.together import furthest, overrides, steps, together, train_ranks, weights
from tests.runner.test_config_files import TRAINER
from tests.runner.tiny import events, make_run, outcome, train

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed"),
]

OFFLOADED = {
    "stage 2, moments on the host": (2, "optimizer"),
    "stage 3, moments on the host": (3, "optimizer"),
    "stage 3, weights on the host too": (3, "parameters"),
}
CUT = ["train.batch_size=12", "train.micro_batch_size=2", "train.steps=16", "train.clip_norm=0.5"]
"""Windows of three micro-batches a process, the fourteenth of one; most are clipped."""


def zero(stage: int, *more: str) -> list[str]:
    return [
        *overrides("train.lr=3e-4", 'parallel.strategy="deepspeed"', f"parallel.zero_stage={stage}"),
        *more,
    ]


def ranks(run: RunDir, size: int, resume: bool = False, approximate: bool = False) -> list[int]:
    return train_ranks(run, size, resume, approximate, timeout_s=300)


def pair(tmp_path: Path, settings: list[str], size: int = 2) -> tuple[RunDir, RunDir]:
    """Return a run of one process and one of several, both trained."""
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0, outcome(one)
    assert ranks(other, size) == [0] * size, outcome(other)
    return one, other


def assert_same_checkpoint(one: Path, other: Path) -> None:
    """Weights and moments, each under its name and whole."""
    for name in ("model.safetensors", "optimizer.safetensors"):
        first, second = (safetensors.torch.load_file(folder / name) for folder in (one, other))
        assert first.keys() == second.keys()
        for key, tensor in first.items():
            assert tensor.shape == second[key].shape and tensor.dtype == second[key].dtype, key
            assert float((tensor.double() - second[key].double()).abs().max()) <= 1e-6, key


@pytest.mark.parametrize(("stage", "size"), [(1, 2), (2, 2), (3, 2), (2, 3), (3, 3)])
def test_zero_trains_the_weights_of_one_process(tmp_path: Path, stage: int, size: int) -> None:
    one, other = pair(tmp_path, zero(stage, *CUT), size)
    assert_same_training(one, other)
    assert_same_checkpoint(one.checkpoint(14), other.checkpoint(14))
    assert max(step["grad_norm"] for step in steps(one)) > 0.5, "nothing was clipped"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(other.final)
    assert model.config.architectures == ["BertForSequenceClassification"]


@pytest.mark.parametrize(("stage", "offload"), OFFLOADED.values(), ids=OFFLOADED.keys())
def test_what_lies_on_the_host_changes_no_number(tmp_path: Path, stage: int, offload: str) -> None:
    one, other = pair(tmp_path, zero(stage, *CUT, f'train.offload="{offload}"'))
    assert_same_training(one, other)


@pytest.mark.parametrize("stage", [2, 3])
def test_tied_weights_are_one(tmp_path: Path, stage: int) -> None:
    one, other = pair(tmp_path, zero(stage, "train.steps=6", 'model.task="masked-lm"'))
    assert furthest(one.final, other.final) <= 1e-6
    assert furthest(one.checkpoint(6), other.checkpoint(6)) <= 1e-6


@pytest.mark.parametrize("stage", [2, 3])
def test_adapters_are_trained_and_merged(tmp_path: Path, stage: int) -> None:
    pytest.importorskip("peft")
    one, other = pair(
        tmp_path, zero(stage, "train.steps=6", 'model.lora={ rank = 4, targets = ["query", "value"] }')
    )
    assert furthest(one.final, other.final) <= 1e-6


@pytest.mark.parametrize("stage", [2, 3])
def test_what_stands_still_is_in_the_final_model_all_the_same(tmp_path: Path, stage: int) -> None:
    rule = 'train.freeze=[{ parameters = "bert.encoder.layer.0.*" }]'
    one, other = pair(tmp_path, zero(stage, "train.steps=6", rule))
    assert furthest(one.final, other.final) <= 1e-6
    assert weights(other.checkpoint(6)).keys() == weights(one.checkpoint(6)).keys()


@pytest.mark.parametrize(
    ("stage", "precision", "apart"),
    [(2, "bf16", 1e-5), (3, "bf16", 3e-4), (2, "fp16", 1e-5), (3, "fp16", 3e-4)],
)
def test_lower_precision_is_that_of_copies(tmp_path: Path, stage: int, precision: str, apart: float) -> None:
    """Autocast over fp32 weights, gradients added up in fp32, as DDP does it; at stage 3 DeepSpeed's own linear layer adds
    the bias after rounding, and so rounds twice."""
    more = ["train.steps=6", f'train.precision="{precision}"']
    run = make_run(tmp_path, zero(stage, *more))
    ddp = make_run(tmp_path, [*overrides("train.lr=3e-4"), *more], "ddp")
    for one in (run, ddp):
        assert ranks(one, 2) == [0, 0], outcome(one)
    assert furthest(run.final, ddp.final) <= apart
    assert all(tensor.dtype == torch.float32 for tensor in weights(run.final).values())


def test_the_file_that_somebody_used_with_the_trainer_is_trained_with(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps(TRAINER))
    one, other = pair(
        tmp_path, [*overrides("train.lr=3e-4", "train.steps=6"), f'parallel.deepspeed_config="{path}"']
    )
    assert_same_training(one, other)
    (note,) = [event for event in events(other, "run-started") if event.data.get("strategy")]
    assert note.data["strategy"] == "deepspeed"


def test_as_a_person_starts_it_and_its_log_is_the_runs(tmp_path: Path) -> None:
    run = make_run(tmp_path, zero(3, "train.steps=4"))
    code, said = together(run, 2)
    assert code == 0, said
    assert (
        "deepspeed" in said and "ZeRO" not in said and "[INFO]" not in said and "real_accelerator" not in said
    ), said
