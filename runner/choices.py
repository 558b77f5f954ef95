"""The choices a profile leaves open, settled by what the machine is: each value with its reason. Pure."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from runner.capability import parse_capability
from runner.decisions import Decision, fixed_decisions
from runner.profile import Profile, TrainSection
from runner.text import Text, t


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What of a machine decides a plan; whoever starts a run fills it from a snapshot."""

    device: str
    """``cuda`` or ``cpu``."""
    compute_capability: str = ""
    """``8.9``; empty: no GPU, or not readable."""
    gpu_name: str = ""
    gpu_count: int = 0
    cpu_cores_usable: float = 1.0
    """Cores within affinity and the cgroup's quota: ``nproc``, ``cat /sys/fs/cgroup/cpu.max``."""
    cpu_flags: tuple[str, ...] = ()
    """Of /proc/cpuinfo; only ``avx512_bf16`` and ``amx_bf16`` are looked for."""
    python: str = ""
    torch_version: str = ""
    tuned_micro_batch: int = 0
    """What ``doctor tune`` found to fit this device for the profile's model; 0: nobody tried, or it does not count here."""
    tuned_why: Text | None = None
    """Why what was found does not count here; None: it does, or nobody tried."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the trainer does, nothing left open."""

    device: str
    precision: str
    """``fp32``, ``bf16`` or ``fp16`` (with a loss scaler). Weights are fp32 in any case."""
    micro_batch_size: int
    fused: bool
    threads: int
    workers: int
    compile: Literal["auto"] | bool = False
    pin_memory: bool = True
    memory_probe: bool = False
    offload: str = "none"
    """``none``, ``optimizer`` or ``parameters``: what lies in the host's memory."""


def settle(profile: Profile, machine: MachineFacts) -> tuple[Settings, list[Decision]]:
    """Return the settings and a decision for each, in the order in which a person asks for them."""
    train = profile.train
    device, device_why = choose_device(machine, profile.model.device_map != "none")
    precision, precision_why = choose_precision(train.precision, device, machine)
    if precision == "fp16" and train.offload != "none" and profile.parallel.strategy != "deepspeed":
        precision, precision_why = (
            "fp32",
            t("fp16 would need a loss scaler, which train.offload does not go with"),
        )
    micro, micro_why = choose_micro_batch(train, machine.tuned_micro_batch, machine.tuned_why)
    fused, fused_why = choose_fused(train.fused, "cpu" if train.offload != "none" else device, machine)
    threads, threads_why = choose_threads(machine)
    workers, workers_why = choose_workers(train, device, machine)
    settings = Settings(
        device=device,
        precision=precision,
        micro_batch_size=micro,
        fused=fused,
        threads=threads,
        workers=workers,
        compile=train.compile,
        pin_memory=train.pin_memory is not False,
        memory_probe=device == "cuda" if train.memory_probe == "auto" else train.memory_probe,
        offload=train.offload,
    )
    decisions = [
        Decision(name="device", value=device, why=device_why),
        Decision(name="train.precision", value=precision, why=precision_why),
        Decision(name="train.micro_batch_size", value=micro, why=micro_why),
        Decision(name="train.fused", value=fused, why=fused_why),
        Decision(name="threads", value=threads, why=threads_why),
        Decision(name="train.workers", value=workers, why=workers_why),
        *fixed_decisions(profile, device),
    ]
    return settings, decisions


def recomputes(profile: Profile) -> bool:
    """Return whether activations are computed again in the backward pass: asked for, or needed by ``offload``."""
    return profile.model.gradient_checkpointing or profile.train.offload == "parameters"


def choose_device(machine: MachineFacts, is_spread: bool = False) -> tuple[str, Text]:
    if machine.device != "cuda":
        return "cpu", t("no usable GPU here: training on the CPU")
    if is_spread:
        return "cuda", t("spread over {count} {count:GPU|GPUs} ({gpu}) and what model.device_map adds",
                         count=machine.gpu_count, gpu=machine.gpu_name)  # fmt: skip
    if machine.gpu_count > 1:
        return "cuda", t(
            "one of {count} {count:GPU|GPUs} ({gpu}): this run uses one",
            count=machine.gpu_count,
            gpu=machine.gpu_name,
        )
    return "cuda", t("the GPU {gpu}", gpu=machine.gpu_name or "-")


def choose_precision(asked: str, device: str, machine: MachineFacts) -> tuple[str, Text]:
    """By compute capability, since ``torch.cuda.is_bf16_supported()`` counts emulation as support."""
    best, why = _best_precision(device, machine)
    if asked == "auto":
        return best, why
    if asked == "bf16" and best != "bf16":
        return asked, t(
            "asked for in the profile, though bf16 is emulated here and slow: auto takes {best}", best=best
        )
    return asked, t("asked for in the profile")


def _best_precision(device: str, machine: MachineFacts) -> tuple[str, Text]:
    if device == "cpu":
        units = sorted({"avx512_bf16", "amx_bf16"} & set(machine.cpu_flags))
        if units:
            return "bf16", t("the CPU multiplies bf16 in hardware ({units})", units=", ".join(units))
        return "fp32", t("the CPU has neither avx512_bf16 nor amx_bf16: lower precision would only be slower")
    capability = parse_capability(machine.compute_capability)
    if capability is None:
        return "fp32", t(
            "the GPU's compute capability could not be read, so nothing lower is assumed to work"
        )
    if capability >= (8, 0):
        return "bf16", t("compute capability {cc} is 8.0 or newer: bf16 in hardware, no loss scaler needed",
                         cc=machine.compute_capability)  # fmt: skip
    if capability >= (7, 0):
        return "fp16", t(
            "compute capability {cc} has fp16 tensor cores and only emulates bf16: fp16 with a loss scaler",
            cc=machine.compute_capability,
        )
    return "fp32", t("compute capability {cc} has no tensor cores: lower precision gains nothing",
                     cc=machine.compute_capability)  # fmt: skip


def choose_micro_batch(train: TrainSection, tuned: int = 0, unfit: Text | None = None) -> tuple[int, Text]:
    if train.micro_batch_size == "auto":
        return (train.batch_size, unfit) if unfit else tuned_micro_batch(train.batch_size, tuned)
    if train.micro_batch_size:
        return train.micro_batch_size, t("asked for in the profile")
    if train.accumulation:
        return train.batch_size // train.accumulation, t(
            "batch_size {batch} in {times} {times:part|parts}",
            batch=train.batch_size,
            times=train.accumulation,
        )
    return train.batch_size, t("the whole batch at once: no accumulation asked for")


def tuned_micro_batch(batch_size: int, tuned: int) -> tuple[int, Text]:
    """Return the largest part of the batch within what was found to fit: the same update, in equal parts."""
    if not tuned:
        return batch_size, t(
            "auto, and nobody has tried yet what fits here: the whole batch at once, cut smaller where memory is short. "
            "doctor tune finds what fits"
        )
    micro = max(size for size in range(1, batch_size + 1) if batch_size % size == 0 and size <= tuned)
    return micro, t("doctor tune found {tuned} to fit this device: the largest equal part of {batch}", tuned=tuned, batch=batch_size)  # fmt: skip


def choose_fused(asked: bool | str, device: str, machine: MachineFacts) -> tuple[bool, Text]:
    if isinstance(asked, bool):
        return asked, t("asked for in the profile")
    if device == "cuda":
        return True, t("one kernel for all parameters: the fastest AdamW on a GPU")
    if not machine.torch_version:
        return False, t("torch's version is not known here: the plain AdamW, which every torch has")
    if parse_release(machine.torch_version) >= (2, 4):
        return True, t("torch {version} has a fused AdamW for the CPU", version=machine.torch_version)
    return False, t(
        "torch {version} has no fused AdamW for the CPU (from 2.4 on)", version=machine.torch_version
    )


def parse_release(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)  # 2.13.0+cpu
    return (int(match[1]), int(match[2])) if match else (0, 0)


def choose_threads(machine: MachineFacts) -> tuple[int, Text]:
    threads = max(1, int(machine.cpu_cores_usable))
    return threads, t(
        "{cores} {cores:core|cores} usable here (affinity and cgroup quota)",
        cores=f"{machine.cpu_cores_usable:g}",
    )


def choose_workers(train: TrainSection, device: str, machine: MachineFacts) -> tuple[int, Text]:
    if isinstance(train.workers, int):
        return train.workers, t("asked for in the profile")
    if device == "cpu":
        return 0, t("texts are tokenised beforehand; loader workers would only take cores from the model")
    workers = 2 if machine.cpu_cores_usable >= 4 else 0
    return workers, t(
        "texts are tokenised beforehand; {count} {count:worker|workers} keep batches ready", count=workers
    )
