"""A DeepSpeed configuration that somebody already has, read as keys of a profile. Pure: the file's content is handed in.

Values of ``"auto"``, which only transformers' Trainer fills in, leave a key open. What would change the numbers and is not
done here is refused by name; what only prints is named as unused.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from runner.said_elsewhere import Elsewhere, part_of
from runner.text import Text, t

ZERO = "zero_optimization"
TUNING = (
    "allgather_partitions", "allgather_bucket_size", "overlap_comm", "reduce_scatter", "reduce_bucket_size",
    "contiguous_gradients", "round_robin_gradients", "use_multi_rank_bucket_allreduce", "sub_group_size",
    "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "stage3_model_persistence_threshold",
    "stage3_max_live_parameters", "stage3_max_reuse_distance", "stage3_module_granularity_threshold",
    "stage3_use_all_reduce_for_fetch_params", "prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold",
    "max_live_parameters", "max_reuse_distance", "module_granularity_threshold", "use_all_reduce_for_fetch_params",
    "memory_efficient_linear", "log_trace_cache_warnings",
)  # fmt: skip
"""Of ``zero_optimization``: how much at a time, and when. The numbers stay the same."""
READ_OF_ZERO = ("stage", "offload_optimizer", "offload_param", "cpu_offload", "cpu_offload_param")
UNUSED_OF_ZERO = (
    "stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save", "load_from_fp32_weights",
    "ignore_unused_parameters", "cpu_offload_use_pin_memory",
)  # fmt: skip
UNUSED = (
    "steps_per_print", "wall_clock_breakdown", "dump_state", "memory_breakdown", "comms_logger", "flops_profiler", "tensorboard",
    "wandb", "csv_monitor", "comet", "checkpoint", "activation_checkpointing", "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer", "aio", "timers", "log_level", "dataloader_drop_last",
)  # fmt: skip
"""They print, or tell of what is written; activations are recomputed where the profile says so."""
READ = (
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "bf16", "bfloat16",
    "fp16", "torch_autocast", "optimizer", "scheduler", "communication_data_type", "data_types", "prescale_gradients",
    "gradient_predivide_factor", ZERO,
)  # fmt: skip
OTHER_NUMBERS = (
    "amp", "sparse_attention", "compression_training", "data_efficiency", "curriculum_learning", "progressive_layer_drop",
    "eigenvalue", "quantize_training", "sparse_gradients", "elasticity", "autotuning", "hybrid_engine", "pipeline", "tensor_parallel",
    "sequence_parallel_size", "zenflow", "expert_parallel", "compile", "weight_quantization", "gradient_allreduce_op",
)  # fmt: skip


def deepspeed_file(values: Mapping[str, Any], name: str = "ds.json") -> Elsewhere:
    """Return what the file says of a profile."""
    found = Elsewhere(name)
    found.say("parallel.strategy", "deepspeed", ZERO)
    _batch(values, found)
    found.say("train.clip_norm", values.get("gradient_clipping"), "gradient_clipping")
    _precision(values, found)
    _optimizer(values, found)
    _zero(part_of(values, ZERO), found)
    for key, value in values.items():
        if key in UNUSED:
            found.unused.append(key)
        elif key not in READ:
            found.problems.append(_unread(found.at(key, value), key))
    return found


def _unread(at: str, key: str) -> Text:
    if key in OTHER_NUMBERS:
        return t("{at}: it changes what is trained, and is not done here; take it out", at=at)
    near = difflib.get_close_matches(key, [*READ, *UNUSED, *OTHER_NUMBERS], n=1, cutoff=0.6)
    return (
        t("{at}: not known here; did you mean {near}?", at=at, near=near[0])
        if near
        else t("{at}: not known here; take it out", at=at)
    )


def _batch(values: Mapping[str, Any], found: Elsewhere) -> None:
    """``train_batch_size`` is micro-batch x accumulation x processes; what two of them leave open is not guessed."""
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    whole, micro, times = (value if isinstance(value := values.get(key), int) else None for key in keys)
    for key in keys:
        value = values.get(key)
        if value not in (None, "auto") and (not isinstance(value, int) or value < 1):
            found.problems.append(t("{at}: must be a whole number above 0", at=found.at(key, value)))
            return
    found.say("train.batch_size", whole, keys[0])
    found.say("train.micro_batch_size", micro, keys[1])
    if whole and micro and times:
        if whole % (micro * times):
            found.problems.append(t("{at}: it is not a multiple of train_micro_batch_size_per_gpu ({micro}) x gradient_accumulation_steps ({times}): no number of processes makes it so", at=found.at(keys[0], whole), micro=micro, times=times))  # fmt: skip
        else:
            found.say("parallel.processes", whole // (micro * times), "train_batch_size")
    elif micro and times:
        found.problems.append(t("{at}: without train_batch_size the batch of an update depends on how many processes there are; name it", at=found.at(keys[2], times)))  # fmt: skip


def _precision(values: Mapping[str, Any], found: Elsewhere) -> None:
    low = {
        name: part_of(values, name).get("enabled") for name in ("fp16", "bf16", "bfloat16", "torch_autocast")
    }
    if low["fp16"] is True:
        found.problems.append(
            t(
                "{at}: its loss scaler cannot be looked into before an update; take bf16 or fp32",
                at=found.at("fp16.enabled", True),
            )
        )
    elif True in (low["bf16"], low["bfloat16"]):
        found.say("train.precision", "bf16", "bf16.enabled")
    elif low["torch_autocast"] is True:
        kind = str(part_of(values, "torch_autocast").get("dtype", "bfloat16")).removeprefix("torch.")
        if kind in ("bfloat16", "bf16"):
            found.say("train.precision", "bf16", "torch_autocast.dtype")
        else:
            found.problems.append(
                t(
                    "{at}: its loss scaler cannot be looked into before an update; take bf16 or fp32",
                    at=found.at("torch_autocast.dtype", kind),
                )
            )
    elif low["fp16"] is False and False in (low["bf16"], low["bfloat16"]):
        found.say("train.precision", "fp32", "bf16.enabled, fp16.enabled")
    exchanged = values.get("communication_data_type")
    summed = part_of(values, "data_types").get("grad_accum_dtype")
    for place, value in (("communication_data_type", exchanged), ("data_types.grad_accum_dtype", summed)):
        if value not in (None, "auto", "fp32"):
            found.problems.append(
                t("{at}: gradients are exchanged and added up in fp32 here", at=found.at(place, value))
            )
    if values.get("prescale_gradients") or values.get("gradient_predivide_factor", 1.0) not in (1.0, "auto"):
        found.problems.append(t("{at}: gradients are sums here, not means; take it out", at=found.at("gradient_predivide_factor", values.get("gradient_predivide_factor", 1.0))))  # fmt: skip


def _optimizer(values: Mapping[str, Any], found: Elsewhere) -> None:
    optimizer, schedule = part_of(values, "optimizer"), part_of(values, "scheduler")
    kind, params = optimizer.get("type", "AdamW"), part_of(optimizer, "params")
    if kind not in ("AdamW", "Adam") or (kind == "Adam" and params.get("adam_w_mode") is False):
        found.problems.append(t("{at}: this runner trains with AdamW", at=found.at("optimizer.type", kind)))
    for name, key in (("lr", "lr"), ("betas", "betas"), ("eps", "epsilon"), ("weight_decay", "weight_decay")):
        found.say(f"train.{key}", params.get(name), f"optimizer.params.{name}")
    fixed = [name for name, value in part_of(schedule, "params").items() if value not in (None, "auto")]
    if fixed:
        found.problems.append(t("{at}: say it in train.schedule and train.warmup, and take it out of the file ({names})", at=found.at("scheduler", schedule.get("type", "-")), names=", ".join(fixed)))  # fmt: skip


def _zero(zero: Mapping[str, Any], found: Elsewhere) -> None:
    stage = zero.get("stage", 0)
    if stage == 0:
        found.problems.append(
            t(
                '{at}: nothing is cut into parts: take parallel.strategy = "ddp" without this file',
                at=found.at(f"{ZERO}.stage", 0),
            )
        )
    elif stage not in (1, 2, 3, "auto"):
        found.problems.append(t("{at}: must be 1, 2 or 3", at=found.at(f"{ZERO}.stage", stage)))
    else:
        found.say("parallel.zero_stage", stage, f"{ZERO}.stage")
    _offload(zero, found)
    for key, value in zero.items():
        if key in UNUSED_OF_ZERO:
            found.unused.append(f"{ZERO}.{key}")
        elif key in TUNING:
            if value != "auto":
                found.tuning[key] = value
        elif key not in READ_OF_ZERO and not _is_off(value):
            found.problems.append(_unread_of_zero(found.at(f"{ZERO}.{key}", value), key))


def _unread_of_zero(at: str, key: str) -> Text:
    near = difflib.get_close_matches(
        key, [*TUNING, *UNUSED_OF_ZERO, "offload_optimizer", "offload_param", "stage"], n=1, cutoff=0.75
    )
    if near:
        return t("{at}: not known here; did you mean {near}?", at=at, near=near[0])
    return t("{at}: it changes what is trained, and is not done here; take it out", at=at)


def _offload(zero: Mapping[str, Any], found: Elsewhere) -> None:
    away: dict[str, bool] = {}
    for name, old in (("offload_optimizer", "cpu_offload"), ("offload_param", "cpu_offload_param")):
        part = part_of(zero, name)
        device = part.get("device", "cpu" if zero.get(old) is True else "none")
        if device == "nvme":
            found.problems.append(
                t(
                    "{at}: only the host's memory (cpu) is used here, no disk",
                    at=found.at(f"{ZERO}.{name}.device", device),
                )
            )
        elif device not in ("cpu", "none", "auto"):
            found.problems.append(
                t("{at}: must be cpu or none", at=found.at(f"{ZERO}.{name}.device", device))
            )
        away[name] = device in ("cpu", "nvme")
        if away[name] and isinstance(part.get("pin_memory"), bool):
            found.tuning[name] = {"pin_memory": part["pin_memory"]}
    if away["offload_param"] and not away["offload_optimizer"]:
        found.problems.append(t("{at}: only together with offload_optimizer: weights that lie on the host are updated there", at=found.at(f"{ZERO}.offload_param", "cpu")))  # fmt: skip
    elif away["offload_param"] and zero.get("stage") not in (3, "auto"):
        found.problems.append(
            t(
                "{at}: weights are only cut into parts, and moved away, at stage 3",
                at=found.at(f"{ZERO}.offload_param", "cpu"),
            )
        )
    elif any(away.values()):
        found.say(
            "train.offload",
            "parameters" if away["offload_param"] else "optimizer",
            f"{ZERO}.offload_optimizer",
        )


def _is_off(value: Any) -> bool:
    """Return whether a key that turns something on leaves it off: false, nothing, or a group of one."""
    return value is None or value is False or (value == 1 and not isinstance(value, bool)) or value == "auto"
