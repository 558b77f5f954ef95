"""What can make a profile's steps faster or smaller, one lever at a time, and why one does not apply here. Pure.

*Before* is how the usual tutorial trains: every sample padded to ``max_length``, in plain order, fp32, the plain optimizer.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from doctor.model import Record
from runner.choices import MachineFacts, choose_fused, choose_precision
from runner.profile import Profile
from runner.text import Text, t

Settings = dict[str, Any]
"""``train.precision`` to its value; None: as if the profile did not say."""

BEFORE: Settings = {
    "train.pad_to": "max_length",
    "train.bucketing": False,
    "train.packing": False,
    "train.precision": "fp32",
    "train.fused": False,
    "train.workers": 0,
    "train.pin_memory": False,
    "train.compile": False,
    "train.memory_probe": False,
    "train.micro_batch_tokens": None,
    "model.gradient_checkpointing": False,
    "model.attention": "auto",
}

Changes = Literal["nothing", "rounding", "rows"]
"""What of a loss may differ from before: nothing but the order of sums, rounding, or the rows are others."""


class Lever(Record, frozen=True, kw_only=True):
    """One thing to change, laid over *before*."""

    name: str
    title: Text
    settings: Settings
    changes: Changes = "nothing"
    is_for: Literal["speed", "memory", "contrast"] = "speed"
    """``contrast``: the worse choice, to show what the better one is worth."""
    skipped: Text | None = None
    """Why it is not measured here, unless it was asked for by name and can be."""
    is_possible: bool = True


def levers_of(profile: Profile, machine: MachineFacts, micro_batch: int, has_compiler: bool) -> list[Lever]:
    """Return every lever for this profile and machine, those that do not apply with the reason."""
    return [
        Lever(
            name="padding",
            title=t("pad to the longest of the batch"),
            settings={"train.pad_to": "longest"},
        ),
        Lever(
            name="bucketing",
            title=t("batches of like length, padded to the longest"),
            settings={"train.pad_to": "longest", "train.bucketing": True},
        ),
        _precision(machine),
        _fused(machine),
        _checkpointing(profile),
        _workers(machine),
        _pinning(machine),
        _compile(machine, has_compiler),
        Lever(
            name="attention",
            title=t("eager attention instead of SDPA: what SDPA is worth"),
            settings={"model.attention": "eager"},
            is_for="contrast",
        ),
        _accumulation(micro_batch),
        _packing(profile),
    ]


NAMES = (
    "padding", "bucketing", "precision", "fused", "checkpointing", "workers", "pinning", "compile", "attention",
    "accumulation", "packing",
)  # fmt: skip


def _precision(machine: MachineFacts) -> Lever:
    best, why = choose_precision("auto", machine.device, machine)
    lever = Lever(
        name="precision", title=t("autocast in {precision}", precision=best if best != "fp32" else "bf16"),
        settings={"train.precision": best if best != "fp32" else "bf16"}, changes="rounding",
    )  # fmt: skip
    return msgspec.structs.replace(lever, skipped=why) if best == "fp32" else lever


def _fused(machine: MachineFacts) -> Lever:
    fused, why = choose_fused("auto", machine.device, machine)
    lever = Lever(name="fused", title=t("fused AdamW"), settings={"train.fused": True})
    return lever if fused else msgspec.structs.replace(lever, skipped=why, is_possible=False)


def _checkpointing(profile: Profile) -> Lever:
    return Lever(
        name="checkpointing", title=t("gradient checkpointing: memory for time"), is_for="memory",
        settings={"model.gradient_checkpointing": True},
    )  # fmt: skip


def _workers(machine: MachineFacts) -> Lever:
    lever = Lever(name="workers", title=t("two loader workers"), settings={"train.workers": 2})
    if machine.cpu_cores_usable >= 2:
        return lever
    return msgspec.structs.replace(
        lever, skipped=t("one core is usable here: workers would only take it from the training")
    )


def _pinning(machine: MachineFacts) -> Lever:
    lever = Lever(name="pinning", title=t("page-locked batches"), settings={"train.pin_memory": True})
    if machine.device == "cuda":
        return lever
    why = t("page-locked memory is for copies to a GPU, and there is none here")
    return msgspec.structs.replace(lever, skipped=why, is_possible=False)


def _compile(machine: MachineFacts, has_compiler: bool) -> Lever:
    lever = Lever(
        name="compile", title=t("torch.compile, any length"), settings={"train.compile": True}, changes="rounding"
    )  # fmt: skip
    if not has_compiler:
        why = t("no C compiler was found (gcc, g++, cc), and torch.compile needs one")
        return msgspec.structs.replace(lever, skipped=why, is_possible=False)
    if machine.device == "cpu":
        why = t(
            "compiling takes a minute or more in every run on a CPU; measure it by name: --levers compile"
        )
        return msgspec.structs.replace(lever, skipped=why)
    return lever


def _accumulation(micro_batch: int) -> Lever:
    smaller = next(size for size in range(max(1, micro_batch // 4), 0, -1) if micro_batch % size == 0)
    lever = Lever(
        name="accumulation", title=t("micro-batches of {size} instead of {whole}", size=smaller, whole=micro_batch),
        settings={"train.micro_batch_size": smaller, "train.accumulation": None}, is_for="memory",
    )  # fmt: skip
    if micro_batch > 1:
        return lever
    return msgspec.structs.replace(lever, skipped=t("the micro-batch is one sample already"), is_possible=False)  # fmt: skip


def _packing(profile: Profile) -> Lever:
    lever = Lever(
        name="packing", title=t("texts packed into whole rows"), changes="rows",
        settings={"train.packing": True, "train.pad_to": "longest"},
    )  # fmt: skip
    if profile.model.task == "causal-lm":
        return lever
    return msgspec.structs.replace(lever, skipped=t("texts are packed for causal-lm only"), is_possible=False)  # fmt: skip


def with_settings(profile: Profile, settings: Settings) -> Profile:
    """Return ``profile`` with values of its sections replaced."""
    for key, value in settings.items():
        section, _, name = key.partition(".")
        part = msgspec.structs.replace(getattr(profile, section), **{name: value})
        profile = msgspec.structs.replace(profile, **{section: part})
    return profile


def combined(levers: list[Lever]) -> Settings:
    """Return the settings of several levers together."""
    found: Settings = {}
    for lever in levers:
        found |= lever.settings
    return found
