"""A model cut into parts with what people train today: adapters, frozen weights, lower precision; and copies in bf16 too."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import safetensors.torch

from runner.events import read_events
from runner.rundir import RunDir
from tests.parallel.test_ranks_train import assert_same_training
from tests.parallel.test_ranks_trouble import LOSS, NAN, stopped_and_through
from tests.parallel.together import furthest, overrides, steps, train_ranks
from tests.runner.tiny import events, make_run, outcome, train

pytestmark = pytest.mark.train

FSDP, DDP = 'parallel.strategy="fsdp"', 'parallel.strategy="ddp"'


def lora(merge: bool) -> str:
    return f'model.lora={{rank=4, alpha=8, targets=["query", "value"], merge={str(merge).lower()}}}'


FREEZES = {
    "the embeddings": 'train.freeze=[{ parameters = "bert.embeddings.*" }]',
    "all but the head": 'train.freeze=[{ parameters = "bert.*" }]',
    "one layer, for three updates": 'train.freeze=[{ parameters = "bert.encoder.layer.0.*", until = 3 }]',
    "biases, within each part": 'train.freeze=[{ parameters = "*.bias" }]',
}


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("strategy", [FSDP, DDP], ids=["parts", "copies"])
def test_adapters_are_trained_as_by_one_process(tmp_path: Path, strategy: str, size: int) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    settings = overrides(
        "train.lr=3e-3", "train.batch_size=12", "train.micro_batch_size=2", strategy, lora(True)
    )
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, size) == [0] * size, outcome(other)
    assert_same_training(one, other)
    assert adapter(one.final / "adapter").keys() == adapter(other.final / "adapter").keys()
    assert furthest_adapter(one.final / "adapter", other.final / "adapter") <= 1e-6
    names = safetensors.torch.load_file(other.checkpoint(7) / "model.safetensors").keys()
    assert names and all("lora_" in name or "classifier" in name for name in names), "the base is not stored"


def test_an_adapter_alone_is_written_from_parts(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    settings = overrides("train.lr=3e-3", "train.steps=6", FSDP, lora(False))
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert not (other.final / "model.safetensors").exists()
    assert furthest_adapter(one.final, other.final) <= 1e-6


MORE: dict[str, list[str]] = {
    "activations computed again": ["model.gradient_checkpointing=true", lora(True)],
    "weights on the host": ['train.offload="parameters"', lora(True)],
    "GPT-2, whose embeddings are tied": [
        'model.task="causal-lm"', 'model.config={ model_type = "gpt2", n_embd = 32, n_layer = 2, n_head = 2, n_positions = 64 }',
        'model.lora={rank=4, alpha=8, targets=["c_attn"], merge=true}'],
    "the best put back": [lora(True), "train.restore_best=true", "train.evaluate_every=3"],
}  # fmt: skip


@pytest.mark.parametrize("more", MORE.values(), ids=MORE.keys())
def test_adapters_on_parts_go_with(tmp_path: Path, more: list[str]) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    settings = overrides("train.lr=3e-2", "train.steps=7", FSDP, *more)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert furthest(one.final, other.final) <= 1e-6
    assert furthest_adapter(one.final / "adapter", other.final / "adapter") <= 1e-6


def test_adapters_on_parts_go_on_to_the_bit(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed")

    run, through = stopped_and_through(
        tmp_path,
        overrides(
            "train.lr=3e-3", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', FSDP, lora(True)
        ),
    )
    assert furthest_adapter(run.final / "adapter", through.final / "adapter") == 0.0


def adapter(folder: Path) -> dict[str, object]:
    return dict(safetensors.torch.load_file(folder / "adapter_model.safetensors"))


def furthest_adapter(one: Path, other: Path) -> float:
    first, second = (
        safetensors.torch.load_file(folder / "adapter_model.safetensors") for folder in (one, other)
    )
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)


@pytest.mark.parametrize("rule", FREEZES.values(), ids=FREEZES.keys())
def test_what_is_frozen_stands_still_and_the_rest_is_trained_as_by_one_process(
    tmp_path: Path, rule: str
) -> None:
    settings = overrides("train.lr=3e-4", "train.steps=8", FSDP, rule)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert_same_training(one, other)


def test_weights_are_put_back_in_parts_where_a_run_rolls_back_to_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=NAN, at=4))
    settings = overrides("train.lr=3e-4", FSDP, 'train.loss="trouble_loss:loss"', 'train.non_finite="rollback"',
                         "train.steps=8", "train.checkpoint_every=100")  # fmt: skip
    run = make_run(tmp_path, settings)
    assert train_ranks(run, 2) == [0, 0], outcome(run)
    assert any("put back" in event.data["text"]["msgid"] for event in events(run, "note"))


@pytest.mark.parametrize("size", [2, 3])
def test_moments_on_the_host_make_the_updates_of_one_process(tmp_path: Path, size: int) -> None:
    settings = overrides("train.lr=3e-4", "train.batch_size=12", FSDP, 'train.offload="optimizer"')
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, size) == [0] * size, outcome(other)
    assert_same_training(one, other)


def test_moments_on_the_host_go_on_to_the_bit(tmp_path: Path) -> None:
    stopped_and_through(tmp_path, overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', FSDP,
                                            'train.offload="optimizer"'))  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("recomputed", ["false", "true"])
def test_parts_compiled_block_by_block_train_the_weights_of_one_process(
    tmp_path: Path, recomputed: str
) -> None:
    settings = overrides("train.lr=3e-4", "train.steps=8", "train.pad_to=max_length", FSDP,
                         f"model.gradient_checkpointing={recomputed}")  # fmt: skip
    compiled = [*settings, "train.compile=true"]
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, compiled, "several")
    assert train(one) == 0
    assert train_ranks(other, 2, timeout_s=400) == [0, 0], outcome(other)
    assert b'"compiled":true' in (other.path / "compile.json").read_bytes()
    assert furthest(one.final, other.final) <= 1e-6


LOWER = {"copies in bf16": (DDP, "bf16"), "parts in bf16": (FSDP, "bf16"), "parts in fp16": (FSDP, "fp16"), "copies in fp16": (DDP, "fp16")}  # fmt: skip


@pytest.mark.parametrize(("strategy", "precision"), LOWER.values(), ids=LOWER.keys())
def test_lower_precision_stays_finite_and_near_and_goes_on_to_the_bit(
    tmp_path: Path, strategy: str, precision: str
) -> None:
    settings = overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', strategy,
                         f'train.precision="{precision}"')  # fmt: skip
    _, through = stopped_and_through(tmp_path, settings)
    assert all(math.isfinite(step["loss"]) for step in steps(through))
    full = make_run(tmp_path, overrides("train.lr=3e-4", "train.micro_batch_size=2"), "fp32")
    assert train(full) == 0
    assert 0 < furthest(through.final, full.final) <= 2e-2
    last, wanted = steps(through)[-1]["loss"], steps(full)[-1]["loss"]
    assert last == pytest.approx(wanted, abs=0.05)


def test_an_overflow_on_one_rank_holds_the_update_back_on_all(tmp_path: Path) -> None:
    """fp16: the scaler of each rank sees the gradients of its own parts; all must hear of an overflow in one of them."""
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="found = found * 1e6", at=3))
    run = make_run(
        tmp_path, overrides("train.lr=3e-4", FSDP, 'train.loss="trouble_loss:loss"', 'train.precision="fp16"')
    )
    assert train_ranks(run, 2) == [0, 0], outcome(run)
    for rank in (0, 1):
        skipped = [
            event.step for event, _ in read_events(rank_events(run, rank)) if event.data.get("skipped")
        ]
        assert 3 in skipped, f"rank {rank}: {skipped}"


def rank_events(run: RunDir, rank: int) -> Path:
    return run.events / f"trainer-{rank}.jsonl"
