"""A configuration of ``accelerate config``, read as keys of a profile. Pure: the file's content is handed in.

What it says of starting processes (machines, ports, ranks) is said to ``doctor run`` instead; how many there are is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.said_elsewhere import Elsewhere, part_of
from runner.text import t

STRATEGIES = {
    "NO": "", "MULTI_CPU": "ddp", "MULTI_GPU": "ddp", "FSDP": "fsdp", "DEEPSPEED": "deepspeed",
}  # fmt: skip
STARTING = (
    "compute_environment", "num_machines", "machine_rank", "main_process_ip", "main_process_port", "main_training_function",
    "rdzv_backend", "same_network", "gpu_ids", "enable_cpu_affinity", "debug", "use_cpu", "mpirun_config",
)  # fmt: skip
READ = ("distributed_type", "num_processes", "mixed_precision", "fsdp_config", "deepspeed_config")
ACCUMULATION = "gradient_accumulation_steps"
"""It follows here from batch_size, micro_batch_size and how many processes there are."""
WHOLE = ("FULL_SHARD", "1", 1)
FSDP_UNUSED = (
    "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params", "fsdp_state_dict_type", "fsdp_use_orig_params",
    "fsdp_sync_module_states", "fsdp_cpu_ram_efficient_loading", "fsdp_backward_prefetch", "fsdp_backward_prefetch_policy",
    "fsdp_forward_prefetch", "fsdp_version",
)  # fmt: skip
"""FSDP2 is used whatever they say: blocks are the repeated layers, and what is saved is whole."""
DEEPSPEED_READ = (
    "zero_stage",
    "gradient_clipping",
    "offload_optimizer_device",
    "offload_param_device",
    "deepspeed_config_file",
)
DEEPSPEED_UNUSED = (
    "zero3_init_flag", "zero3_save_16bit_model", "deepspeed_multinode_launcher", "deepspeed_hostfile", "deepspeed_exclusion_filter",
    "deepspeed_inclusion_filter",
)  # fmt: skip


def accelerate_file(values: Mapping[str, Any], name: str = "default_config.yaml") -> tuple[Elsewhere, str]:
    """Return what the file says of a profile, and the DeepSpeed file it names; empty: none."""
    found = Elsewhere(name)
    kind = str(values.get("distributed_type", "NO")).rpartition(".")[2].upper()
    if kind not in STRATEGIES:
        found.problems.append(
            t(
                "{at}: this runner shares work by {known}",
                at=found.at("distributed_type", kind),
                known="MULTI_GPU, MULTI_CPU, FSDP, DEEPSPEED",
            )
        )
    elif STRATEGIES[kind]:
        found.say("parallel.strategy", STRATEGIES[kind], "distributed_type")
        found.say("parallel.processes", values.get("num_processes"), "num_processes")
    _precision(values.get("mixed_precision"), found)
    _fsdp(part_of(values, "fsdp_config") if kind == "FSDP" else {}, found)
    own = part_of(values, "deepspeed_config") if kind == "DEEPSPEED" else {}
    _deepspeed(own, found)
    for key, value in values.items():
        if key in STARTING or key == ACCUMULATION or value in (None, "no", False, {}):
            found.unused.append(key)
        elif key not in READ:
            found.problems.append(t("{at}: it is not done here; take it out", at=found.at(key, value)))
    return found, str(own.get("deepspeed_config_file") or "")


def _precision(asked: Any, found: Elsewhere) -> None:
    kinds = {"no": "fp32", "false": "fp32", "bf16": "bf16", "fp16": "fp16"}
    if asked is None:
        return
    kind = kinds.get(str(asked).lower())
    if kind is None:
        found.problems.append(t("{at}: must be no, fp16 or bf16 here", at=found.at("mixed_precision", asked)))
    found.say("train.precision", kind, "mixed_precision")


def _fsdp(part: Mapping[str, Any], found: Elsewhere) -> None:
    for key, value in part.items():
        if key in FSDP_UNUSED:
            found.unused.append(f"fsdp_config.{key}")
        elif key == "fsdp_offload_params":
            found.say("train.offload", "parameters" if value is True else None, f"fsdp_config.{key}")
        elif key == "fsdp_activation_checkpointing":
            found.say("model.gradient_checkpointing", True if value is True else None, f"fsdp_config.{key}")
        elif key in ("fsdp_sharding_strategy", "fsdp_reshard_after_forward"):
            if value not in (*WHOLE, True, "true"):
                found.problems.append(
                    t(
                        "{at}: weights, gradients and moments are all cut into parts here (FULL_SHARD)",
                        at=found.at(f"fsdp_config.{key}", value),
                    )
                )
        else:
            found.problems.append(
                t("{at}: it is not done here; take it out", at=found.at(f"fsdp_config.{key}", value))
            )


def _deepspeed(part: Mapping[str, Any], found: Elsewhere) -> None:
    for key, name in (("zero_stage", "parallel.zero_stage"), ("gradient_clipping", "train.clip_norm")):
        found.say(name, part.get(key), f"deepspeed_config.{key}")
    away = {name: str(part.get(f"offload_{name}_device", "none")) for name in ("optimizer", "param")}
    for name, device in away.items():
        if device not in ("none", "cpu"):
            found.problems.append(
                t(
                    "{at}: only the host's memory (cpu) is used here, no disk",
                    at=found.at(f"deepspeed_config.offload_{name}_device", device),
                )
            )
    if away["param"] == "cpu":
        found.say("train.offload", "parameters", "deepspeed_config.offload_param_device")
    elif away["optimizer"] == "cpu":
        found.say("train.offload", "optimizer", "deepspeed_config.offload_optimizer_device")
    for key, value in part.items():
        if key in DEEPSPEED_UNUSED or key == ACCUMULATION:
            found.unused.append(f"deepspeed_config.{key}")
        elif key not in DEEPSPEED_READ:
            found.problems.append(
                t("{at}: it is not done here; take it out", at=found.at(f"deepspeed_config.{key}", value))
            )
