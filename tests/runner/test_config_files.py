"""A DeepSpeed file that somebody has: what it says is taken, what contradicts the profile is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.decisions import fixed_decisions
from runner.profile import Profile, ProfileError, load_profile
from tests.runner.tiny import PROFILE, write_rows

TRAINER: dict[str, Any] = {
    "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto", "loss_scale": 0},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {
        "stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True}, "offload_param": {"device": "cpu"},
        "overlap_comm": True, "contiguous_gradients": True, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
        "stage3_gather_16bit_weights_on_model_save": True,
    },
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000, "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": False,
}  # fmt: skip
"""As transformers documents it for its Trainer."""


def write(folder: Path, content: dict[str, Any], name: str = "ds.json") -> None:
    write_rows(folder / "rows.csv", 20)
    (folder / "tiny.toml").write_text(PROFILE)
    (folder / name).write_text(json.dumps(content))


def load(folder: Path, *overrides: str) -> Profile:
    return load_profile(folder / "tiny.toml", [f"parallel.deepspeed_config={folder / 'ds.json'}", *overrides])


def problems(folder: Path, *overrides: str) -> str:
    with pytest.raises(ProfileError) as found:
        load(folder, *overrides)
    return "\n".join(map(str, found.value.problems))


def test_a_file_of_the_trainers_is_taken_with_what_it_leaves_open(tmp_path: Path) -> None:
    write(tmp_path, TRAINER)
    profile = load(tmp_path)
    assert (profile.parallel.strategy, profile.parallel.zero_stage) == ("deepspeed", 3)
    assert (
        profile.train.offload == "parameters" and profile.train.lr == 1e-2 and profile.train.batch_size == 8
    )
    assert profile.parallel.deepspeed == {
        "overlap_comm": True, "contiguous_gradients": True, "sub_group_size": 1e9, "offload_optimizer": {"pin_memory": True},
    }  # fmt: skip
    assert profile.parallel.unused == [
        "ds.json: zero_optimization.stage3_gather_16bit_weights_on_model_save", "ds.json: steps_per_print",
        "ds.json: wall_clock_breakdown",
    ]  # fmt: skip


def test_numbers_are_taken_where_the_profile_has_none(tmp_path: Path) -> None:
    write(tmp_path, {"gradient_clipping": 0.3, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.95]}},
                     "zero_optimization": {"stage": 1}})  # fmt: skip
    profile = load(tmp_path)
    assert profile.train.clip_norm == 0.3 and profile.train.betas == (0.9, 0.95)


def test_a_stage_that_the_trainer_fills_in_leaves_offload_as_it_is(tmp_path: Path) -> None:
    away = {"device": "cpu"}
    write(
        tmp_path, {"zero_optimization": {"stage": "auto", "offload_optimizer": away, "offload_param": away}}
    )
    profile = load(tmp_path)
    assert profile.parallel.zero_stage is None and profile.train.offload == "parameters"


def test_what_has_no_effect_is_told_with_the_plan(tmp_path: Path) -> None:
    write(tmp_path, TRAINER)
    (said,) = [
        one for one in fixed_decisions(load(tmp_path), "cpu") if one.name == "parallel.deepspeed_config"
    ]
    assert "ds.json: steps_per_print" in str(said.why)


@pytest.mark.parametrize("wrong", ['parallel.unused="x"', "parallel.deepspeed=3"])
def test_keys_of_the_wrong_kind_are_named_and_nothing_breaks(tmp_path: Path, wrong: str) -> None:
    write(tmp_path, TRAINER)
    assert wrong.partition("=")[0] in problems(tmp_path, wrong)


def test_batch_sizes_say_how_many_processes(tmp_path: Path) -> None:
    sizes = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}
    write(tmp_path, {**sizes, "zero_optimization": {"stage": 2}})
    assert load(tmp_path).parallel.processes == 2


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "learning rate": ({"optimizer": {"params": {"lr": 1e-3}}}, "train.lr (line"),
    "batch": ({"train_batch_size": 64}, "train.batch_size (line"),
    "precision": ({"bf16": {"enabled": True}}, "train.precision (line"),
}


@pytest.mark.parametrize(("content", "named"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_contradiction_names_both_places(tmp_path: Path, content: dict[str, Any], named: str) -> None:
    write(tmp_path, {**content, "zero_optimization": {"stage": 2}})
    said = problems(tmp_path)
    assert named in said and "contradicts ds.json" in said


def test_the_same_number_in_both_is_no_contradiction(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"optimizer": {"params": {"lr": 0.01}}, "train_batch_size": 8, "zero_optimization": {"stage": 2}},
    )
    load(tmp_path)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both lower precisions": ({"fp16": {"enabled": True}, "bf16": {"enabled": "true"}}, "fp16.enabled"),
    "a loss scale that stands still": ({"fp16": {"enabled": True, "loss_scale": 128}}, "fp16.loss_scale"),
    "AdamW of another kind": ({"optimizer": {"params": {"amsgrad": True}}}, "optimizer.params.amsgrad"),
    "AdamW without its bias correction": ({"optimizer": {"params": {"bias_correction": False}}}, "bias_correction"),
    "batch sizes that cannot be": (
        {"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}, "not a multiple"),
    "a disk": ({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}, "offload_param.device"),
    "weights away and updated on the card": ({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}, "offload_optimizer"),
    "stage 0": ({"zero_optimization": {"stage": 0}}, "ddp"),
    "no ZeRO at all": ({"zero_optimization": {}}, "zero_optimization.stage"),
    "another optimizer": ({"optimizer": {"type": "Lamb"}}, "AdamW"),
    "a schedule with numbers": ({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}, "warmup_num_steps"),
    "quantized weights": ({"zero_optimization": {"stage": 3, "zero_quantized_weights": True}}, "zero_quantized_weights"),
    "compression": ({"compression_training": {"x": 1}}, "compression_training"),
    "a typing error": ({"gradient_cliping": 1.0}, "gradient_clipping"),
    "a typing error of ZeRO's": ({"zero_optimization": {"stage": 2, "overlap_com": True}}, "overlap_comm"),
    "gradients in bf16": ({"communication_data_type": "bf16"}, "fp32"),
    "a batch size that is none": ({"train_batch_size": "8"}, "whole number"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_done_here_is_refused_by_name(
    tmp_path: Path, content: dict[str, Any], named: str
) -> None:
    write(tmp_path, {"zero_optimization": {"stage": 2}, **content})
    assert named in problems(tmp_path)


@pytest.mark.parametrize("text", ["", "[1]", "{"], ids=["empty", "a list", "torn"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, {})
    (tmp_path / "ds.json").write_text(text)
    assert "ds.json" in problems(tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    write(tmp_path, {})
    assert "other.json: cannot be read" in problems(tmp_path, "parallel.deepspeed_config=other.json")
