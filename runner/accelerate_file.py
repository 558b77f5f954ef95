"""A configuration of ``accelerate config``, read as keys of a profile. Pure: the file's content is handed in.

What it says of starting processes (ports, ranks) is said to ``doctor run`` instead; how many there are is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.said_elsewhere import Elsewhere, is_true, part_of, says_nothing
from runner.said_offload import PARTS, say_offload
from runner.sections import DEFAULT_STAGE
from runner.text import t

STRATEGIES = {
    "NO": "", "FALSE": "", "MULTI_CPU": "ddp", "MULTI_GPU": "ddp", "FSDP": "fsdp", "DEEPSPEED": "deepspeed",
}  # fmt: skip
"""``FALSE``: what YAML makes of a NO without quotes."""
STARTING = (
    "compute_environment", "machine_rank", "main_process_ip", "main_process_port", "main_training_function",
    "rdzv_backend", "same_network", "gpu_ids", "enable_cpu_affinity", "debug", "use_cpu", "mpirun_config", "downcast_bf16",
    "command_file", "commands", "tpu_name", "tpu_zone", "tpu_vm", "tpu_env", "tpu_use_cluster", "tpu_use_sudo",
)  # fmt: skip
READ = (
    "distributed_type", "num_processes", "num_machines", "mixed_precision", "fp16", "fsdp_config", "deepspeed_config",
)  # fmt: skip
COMPILED = ("dynamo_config", "dynamo_backend")
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
    "deepspeed_inclusion_filter", ACCUMULATION,
)  # fmt: skip


def accelerate_file(values: Mapping[str, Any], name: str = "default_config.yaml") -> tuple[Elsewhere, str]:
    """Return what the file says of a profile, and the DeepSpeed file it names; empty: none."""
    found = Elsewhere(name)
    kind = str(values.get("distributed_type", "NO")).rpartition(".")[2].upper()
    _processes(values, kind, found)
    _precision(values, found)
    _fsdp(part_of(values, "fsdp_config") if kind == "FSDP" else {}, found)
    own = part_of(values, "deepspeed_config") if kind == "DEEPSPEED" else {}
    _deepspeed(own, found)
    for key, value in values.items():
        if key in READ or says_nothing(value):
            continue
        if key in STARTING or key == ACCUMULATION:
            found.unused.append(key)
        elif key in COMPILED:
            _compiled(key, value, found)
        else:
            found.problems.append(t("{at}: it is not done here; take it out", at=found.at(key, value)))
    return found, str(own.get("deepspeed_config_file") or "")


def _processes(values: Mapping[str, Any], kind: str, found: Elsewhere) -> None:
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
        found.say("parallel.machines", values.get("num_machines"), "num_machines")


def _precision(values: Mapping[str, Any], found: Elsewhere) -> None:
    kinds = {"no": "fp32", "false": "fp32", "bf16": "bf16", "fp16": "fp16"}
    asked = values.get("mixed_precision", "fp16" if is_true(values.get("fp16")) else None)
    if asked is None:
        return
    kind = kinds.get(str(asked).lower())
    if kind is None:
        found.problems.append(t("{at}: must be no, fp16 or bf16 here", at=found.at("mixed_precision", asked)))
    found.say("train.precision", kind, "mixed_precision")


def _compiled(key: str, value: Any, found: Elsewhere) -> None:
    backend = value.get("dynamo_backend", "NO") if isinstance(value, Mapping) else value
    if not says_nothing(backend):
        text = t("{at}: say train.compile in the profile instead, and take it out", at=found.at(key, backend))
        found.problems.append(text)


def _fsdp(part: Mapping[str, Any], found: Elsewhere) -> None:
    for key, value in part.items():
        if key in FSDP_UNUSED:
            found.unused.append(f"fsdp_config.{key}")
        elif key == "fsdp_offload_params":
            found.say("train.offload", "parameters" if is_true(value) else None, f"fsdp_config.{key}")
        elif key == "fsdp_activation_checkpointing":
            found.say("model.gradient_checkpointing", is_true(value) or None, f"fsdp_config.{key}")
        elif key in ("fsdp_sharding_strategy", "fsdp_reshard_after_forward"):
            if value not in WHOLE and not is_true(value):
                found.problems.append(
                    t(
                        "{at}: weights, gradients and moments are all cut into parts here (FULL_SHARD)",
                        at=found.at(f"fsdp_config.{key}", value),
                    )
                )
        elif not says_nothing(value):
            found.problems.append(
                t("{at}: it is not done here; take it out", at=found.at(f"fsdp_config.{key}", value))
            )


def _deepspeed(part: Mapping[str, Any], found: Elsewhere) -> None:
    for key, name in (("zero_stage", "parallel.zero_stage"), ("gradient_clipping", "train.clip_norm")):
        found.say(name, part.get(key), f"deepspeed_config.{key}")
    devices = {name: part.get(f"offload_{name}_device") or "none" for name in PARTS}
    stage = part.get("zero_stage", DEFAULT_STAGE)
    say_offload(devices, stage, lambda name: f"deepspeed_config.offload_{name}_device", found)
    for key, value in part.items():
        if key in DEEPSPEED_UNUSED:
            found.unused.append(f"deepspeed_config.{key}")
        elif key not in DEEPSPEED_READ and not says_nothing(value):
            found.problems.append(
                t("{at}: it is not done here; take it out", at=found.at(f"deepspeed_config.{key}", value))
            )
