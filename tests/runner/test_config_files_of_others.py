"""Files as projects hand them out: what is taken from them, what has no effect here, and what is refused by its key."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from runner.accelerate_file import accelerate_file
from runner.deepspeed_file import deepspeed_file
from runner.said_elsewhere import Elsewhere

PLAIN = """\
compute_environment: LOCAL_MACHINE
debug: false
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
num_machines: 1
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""
"""What `accelerate config` writes whatever it is told."""
STARTED = ["compute_environment", "main_training_function", "rdzv_backend", "same_network"]

ACCELERATE: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "several cards": (
        "distributed_type: MULTI_GPU\ngpu_ids: all\nmixed_precision: bf16\nnum_processes: 8\n",
        {"parallel.strategy": "ddp", "train.precision": "bf16", "parallel.processes": 8, "parallel.machines": 1}, ["gpu_ids"]),
    "one card": ("distributed_type: 'NO'\nmixed_precision: 'no'\nnum_processes: 1\n", {"train.precision": "fp32"}, []),
    "a NO without quotes": ("distributed_type: NO\nmixed_precision: no\nnum_processes: 1\n", {"train.precision": "fp32"}, []),
    "ZeRO-3 of a library for reinforcement learning": (
        "deepspeed_config:\n  deepspeed_multinode_launcher: standard\n  offload_optimizer_device: none\n  offload_param_device: none\n"
        "  zero3_init_flag: true\n  zero_stage: 3\ndistributed_type: DEEPSPEED\nmixed_precision: 'fp16'\nnum_processes: 8\n",
        {"parallel.strategy": "deepspeed", "parallel.zero_stage": 3, "train.precision": "fp16", "parallel.processes": 8,
         "parallel.machines": 1},
        ["deepspeed_config.deepspeed_multinode_launcher", "deepspeed_config.zero3_init_flag"]),
    "ZeRO-2 that moves weights, which only stage 3 can": (
        "deepspeed_config:\n  gradient_clipping: 1.0\n  offload_optimizer_device: cpu\n  offload_param_device: cpu\n  zero_stage: 2\n"
        "distributed_type: DEEPSPEED\nnum_processes: 1\n",
        {"parallel.strategy": "deepspeed", "parallel.zero_stage": 2, "train.clip_norm": 1.0, "train.offload": "optimizer",
         "parallel.processes": 1, "parallel.machines": 1}, ["deepspeed_config.offload_param_device"]),
    "a disk that is named and not used": (
        "deepspeed_config:\n  offload_optimizer_nvme_path: none\n  offload_param_nvme_path: null\n  zero_stage: 1\ndistributed_type: DEEPSPEED\n",
        {"parallel.strategy": "deepspeed", "parallel.zero_stage": 1, "parallel.machines": 1}, []),
    "FSDP2 as transformers' trainers have it": (
        "distributed_type: FSDP\nenable_cpu_affinity: false\nfsdp_config:\n  fsdp_activation_checkpointing: false\n  fsdp_offload_params: 'true'\n"
        "  fsdp_reshard_after_forward: true\n  fsdp_version: 2\nnum_processes: 2\n",
        {"parallel.strategy": "fsdp", "train.offload": "parameters", "parallel.processes": 2, "parallel.machines": 1},
        ["fsdp_config.fsdp_version"]),
    "before release 0.11": (
        "distributed_type: MULTI_GPU\ndynamo_backend: 'NO'\nfp16: true\nmegatron_lm_config: {}\nnum_processes: 2\n",
        {"parallel.strategy": "ddp", "train.precision": "fp16", "parallel.processes": 2, "parallel.machines": 1}, []),
}  # fmt: skip


def said(found: Elsewhere) -> dict[str, Any]:
    return {one.key: one.value for one in found.said}


@pytest.mark.parametrize(("text", "taken", "unused"), ACCELERATE.values(), ids=ACCELERATE.keys())
def test_what_a_file_of_accelerate_says_is_taken(text: str, taken: dict[str, Any], unused: list[str]) -> None:
    found, _ = accelerate_file(yaml.safe_load(PLAIN + text))
    assert not found.problems, found.problems
    assert said(found) == taken
    assert sorted(found.unused) == sorted([*STARTED, *unused])


ACCELERATE_REFUSED = {
    "sharded, but not the weights": (
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n", ["fsdp_sharding_strategy"]),
    "parts of a sequence on each card": (
        "distributed_type: FSDP\nparallelism_config:\n  parallelism_config_cp_size: 4\n", ["parallelism_config"]),
    "compiled": (
        "distributed_type: MULTI_GPU\ndynamo_config:\n  dynamo_backend: INDUCTOR\n  dynamo_mode: default\n", ["dynamo_config", "train.compile"]),
    "a disk": (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  offload_optimizer_device: nvme\n  zero_stage: 3\n", ["offload_optimizer_device"]),
    "weights alone on the host": (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  offload_param_device: cpu\n  zero_stage: 3\n", ["offload_param_device"]),
    "a batch size where accelerate reads none": (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  train_micro_batch_size_per_gpu: 2\n  zero_stage: 2\n", ["train_micro_batch_size_per_gpu"]),
    "a cloud's own": ("ec2_instance_type: ml.p3.2xlarge\n", ["ec2_instance_type"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "named"), ACCELERATE_REFUSED.values(), ids=ACCELERATE_REFUSED.keys())
def test_what_accelerate_would_do_and_this_does_not_is_named(text: str, named: list[str]) -> None:
    found, _ = accelerate_file(yaml.safe_load(PLAIN + text))
    (problem,) = found.problems
    assert all(word in str(problem) for word in named)


SCALER = {
    "loss_scale": 0,
    "loss_scale_window": 1000,
    "initial_scale_power": 16,
    "hysteresis": 2,
    "min_loss_scale": 1,
}
AUTO = dict.fromkeys(("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping"), "auto")  # fmt: skip
HOST = {"device": "cpu", "pin_memory": True}

DEEPSPEED: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "everything left to the Trainer": (
        {**AUTO, "fp16": {"enabled": "auto", **SCALER}, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "offload_optimizer": HOST,
         "offload_param": HOST}}, {"parallel.zero_stage": 3, "train.offload": "parameters"}, []),
    "sections that DeepSpeed has under other names": (
        {**AUTO, "comms_config": {"verbose": False}, "monitor_config": {"enabled": True, "tag": "x"}, "zero_optimization": {"stage": 2}},
        {"parallel.zero_stage": 2}, ["comms_config", "monitor_config"]),
    "a comment": ({"_comment": "see the tutorial", "zero_optimization": {"stage": 1}}, {"parallel.zero_stage": 1}, ["_comment"]),
    "fp16 with a scaler that moves": (
        {"fp16": {"enabled": True, **SCALER}, "zero_optimization": {"stage": 2}}, {"parallel.zero_stage": 2, "train.precision": "fp16"},
        ["fp16.loss_scale_window", "fp16.initial_scale_power", "fp16.hysteresis", "fp16.min_loss_scale"]),
    "a switch in a word": (
        {"bf16": {"enabled": "true"}, "zero_optimization": {"stage": 2}}, {"parallel.zero_stage": 2, "train.precision": "bf16"}, []),
    "accumulation alone": (
        {**AUTO, "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 2}}, {"parallel.zero_stage": 2},
        ["gradient_accumulation_steps"]),
    "parts that are off": (
        {"amp": {"enabled": "auto", "opt_level": "O1"}, "elasticity": {"enabled": False}, "hybrid_engine": {"enabled": False},
         "flops_profiler": {"enabled": False}, "zero_optimization": {"stage": 2, "zero_quantized_weights": False}},
        {"parallel.zero_stage": 2}, ["flops_profiler"]),
    "weights on the host at stage 2": (
        {"zero_optimization": {"stage": 2, "offload_optimizer": HOST, "offload_param": HOST}},
        {"parallel.zero_stage": 2, "train.offload": "optimizer"}, ["zero_optimization.offload_param.device"]),
    "part of the moments on the host": (
        {"zero_optimization": {"stage": 3, "offload_optimizer": {**HOST, "ratio": 0.3, "buffer_count": 4}}},
        {"parallel.zero_stage": 3, "train.offload": "optimizer"},
        ["zero_optimization.offload_optimizer.ratio", "zero_optimization.offload_optimizer.buffer_count"]),
    "torch's AdamW asked for": (
        {"optimizer": {"type": "adamw", "params": {"lr": "auto", "eps": 1e-8, "torch_adam": True, "adam_w_mode": True}},
         "zero_optimization": {"stage": 2}}, {"parallel.zero_stage": 2, "train.epsilon": 1e-8},
        ["optimizer.params.torch_adam", "optimizer.params.adam_w_mode"]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "taken", "unused"), DEEPSPEED.values(), ids=DEEPSPEED.keys())
def test_what_a_file_of_deepspeed_says_is_taken(
    content: dict[str, Any], taken: dict[str, Any], unused: list[str]
) -> None:
    found = deepspeed_file(content)
    assert not found.problems, found.problems
    assert said(found) == {"parallel.strategy": "deepspeed", **taken}
    assert sorted(found.unused) == sorted(unused)


DEEPSPEED_REFUSED = {
    "tensors cut as well": ({"tensor_parallel": {"autotp_size": 2}}, "tensor_parallel"),
    "compiled": ({"compile": {"disable": False, "backend": "inductor"}}, "compile"),
    "master weights in bf16": ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "bf16.bf16_master_weights_and_grads"),
    "fp8 by autocast": ({"torch_autocast": {"enabled": True, "dtype": "float8"}}, "torch_autocast.dtype"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "named"), DEEPSPEED_REFUSED.values(), ids=DEEPSPEED_REFUSED.keys())
def test_what_deepspeed_would_do_and_this_does_not_is_named(content: dict[str, Any], named: str) -> None:
    (problem,) = deepspeed_file({"zero_optimization": {"stage": 2}, **content}).problems
    assert f"{named} = " in str(problem)
