"""A DeepSpeed configuration that somebody already has, read as keys of a profile. Pure: the file's content is handed in.

Values of ``"auto"``, which only transformers' Trainer fills in, leave a key open. What would change the numbers and is not
done here is refused by name; what only prints is named as unused, and so is what no release of DeepSpeed looks at.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from runner.deepspeed_keys import (
    ADAM_UNUSED,
    LOW_UNUSED,
    OTHER_NUMBERS,
    READ,
    READ_OF_ZERO,
    TUNING,
    UNUSED,
    UNUSED_OF_ZERO,
    ZERO,
)
from runner.said_elsewhere import Elsewhere, is_true, part_of, says_nothing
from runner.said_offload import PARTS, say_offload
from runner.text import Text, t

NEAR, NEAR_OF_ZERO = 0.85, 0.75
"""As alike as a slip of the fingers. DeepSpeed itself refuses a key of ZeRO's that it does not know, and no other."""


def deepspeed_file(values: Mapping[str, Any], name: str = "ds.json") -> Elsewhere:
    """Return what the file says of a profile."""
    found = Elsewhere(name)
    found.say("parallel.strategy", "deepspeed", ZERO)
    _batch(values, found)
    found.say("train.clip_norm", values.get("gradient_clipping"), "gradient_clipping")
    _precision(values, found)
    _exchange(values, found)
    _optimizer(values, found)
    _zero(part_of(values, ZERO), found)
    for key, value in values.items():
        if key in OTHER_NUMBERS:
            if not _is_off(value):
                refused = _uncompiled if key == "compile" else _changes
                found.problems.append(refused(found.at(key, value)))
        elif key not in READ:
            _beside(key, value, found)
    return found


def _changes(at: str) -> Text:
    return t("{at}: it changes what is trained, and is not done here; take it out", at=at)


def _uncompiled(at: str) -> Text:
    return t("{at}: nothing is compiled under DeepSpeed here; take it out", at=at)


def _beside(key: str, value: Any, found: Elsewhere) -> None:
    near = difflib.get_close_matches(key, [*READ, *UNUSED, *OTHER_NUMBERS], n=1, cutoff=NEAR)
    if key in UNUSED or not near:
        found.unused.append(key)
    else:
        found.problems.append(
            t("{at}: not known here; did you mean {near}?", at=found.at(key, value), near=near[0])
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
    elif times and not (whole or micro):
        found.unused.append(keys[2])  # it follows from the profile's batch_size and micro_batch_size
    elif micro and times:
        found.problems.append(t("{at}: without train_batch_size the batch of an update depends on how many processes there are; name it", at=found.at(keys[2], times)))  # fmt: skip


def _precision(values: Mapping[str, Any], found: Elsewhere) -> None:
    parts = {name: part_of(values, name) for name in ("fp16", "bf16", "bfloat16", "torch_autocast")}
    on = [name for name, part in parts.items() if is_true(part.get("enabled"))]
    low = {"fp16" if name == "fp16" else "bf16" for name in on if name != "torch_autocast"}
    if len(low) > 1:
        found.problems.append(
            t("{at}: bf16 is enabled too; leave one of them", at=found.at("fp16.enabled", True))
        )
    elif low:
        found.say("train.precision", low.pop(), f"{on[0]}.enabled")
    elif on:
        _autocast(str(parts["torch_autocast"].get("dtype", "bfloat16")).removeprefix("torch."), found)
    elif all(says_nothing(parts[name].get("enabled", "auto")) for name in ("fp16", "bf16")):
        found.say("train.precision", "fp32", "bf16.enabled, fp16.enabled")
    for name in on:
        if name != "torch_autocast":
            _low(name, parts[name], found)


def _autocast(kind: str, found: Elsewhere) -> None:
    kinds = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16"}
    if kind in kinds:
        found.say("train.precision", kinds[kind], "torch_autocast.dtype")
    else:
        found.problems.append(
            t("{at}: must be no, fp16 or bf16 here", at=found.at("torch_autocast.dtype", kind))
        )


def _low(name: str, part: Mapping[str, Any], found: Elsewhere) -> None:
    """Name what else a lower precision's section says."""
    for key, value in part.items():
        if key == "loss_scale" and not says_nothing(value):
            found.problems.append(
                t("{at}: the loss scale moves by itself here; say 0", at=found.at(f"{name}.{key}", value))
            )
        elif key in LOW_UNUSED and key != "enabled":
            found.unused.append(f"{name}.{key}")
        elif key not in (*LOW_UNUSED, "loss_scale") and not _is_off(value):
            found.problems.append(_changes(found.at(f"{name}.{key}", value)))


def _exchange(values: Mapping[str, Any], found: Elsewhere) -> None:
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
    kind, params = str(optimizer.get("type", "AdamW")), part_of(optimizer, "params")
    if kind.lower() not in ("adamw", "adam") or (
        kind.lower() == "adam" and params.get("adam_w_mode") is False
    ):
        found.problems.append(t("{at}: this runner trains with AdamW", at=found.at("optimizer.type", kind)))
    read = {"lr": "lr", "betas": "betas", "eps": "epsilon", "weight_decay": "weight_decay"}
    for name, value in params.items():
        place = f"optimizer.params.{name}"
        if name in read:
            found.say(f"train.{read[name]}", value, place)
        elif name in ADAM_UNUSED and (name != "bias_correction" or is_true(value)):
            found.unused.append(place)
        elif name == "bias_correction" or not _is_off(value):
            found.problems.append(_changes(found.at(place, value)))
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
        _offload(zero, stage, found)
    for key, value in zero.items():
        if key in UNUSED_OF_ZERO:
            found.unused.append(f"{ZERO}.{key}")
        elif key in TUNING:
            if value != "auto":
                found.tuning[key] = value
        elif key not in READ_OF_ZERO and not _is_off(value):
            found.problems.append(_unread_of_zero(found.at(f"{ZERO}.{key}", value), key))


def _unread_of_zero(at: str, key: str) -> Text:
    known = [*TUNING, *UNUSED_OF_ZERO, "offload_optimizer", "offload_param", "stage"]
    near = difflib.get_close_matches(key, known, n=1, cutoff=NEAR_OF_ZERO)
    return t("{at}: not known here; did you mean {near}?", at=at, near=near[0]) if near else _changes(at)


def _offload(zero: Mapping[str, Any], stage: Any, found: Elsewhere) -> None:
    """``cpu_offload`` and ``cpu_offload_param`` are what older releases call it."""
    devices: dict[str, Any] = {}
    for name in PARTS:
        part = part_of(zero, f"offload_{name}")
        old = zero.get("cpu_offload" if name == "optimizer" else "cpu_offload_param")
        devices[name] = part.get("device") or ("cpu" if is_true(old) else "none")
        for key, value in part.items():
            if devices[name] != "cpu" or key == "device":
                continue
            if key == "pin_memory" and isinstance(value, bool):
                found.tuning[f"offload_{name}"] = {key: value}
            else:
                found.unused.append(f"{ZERO}.offload_{name}.{key}")
    say_offload(devices, stage, lambda name: f"{ZERO}.offload_{name}.device", found)


def _is_off(value: Any) -> bool:
    """Return whether a key that turns something on leaves it off: false, nothing, ``"auto"``, a group of one, or a section
    that is not enabled."""
    if isinstance(value, Mapping):
        return not value or ("enabled" in value and not is_true(value["enabled"]))
    return says_nothing(value) or (value == 1 and not isinstance(value, bool)) or value == "auto"
