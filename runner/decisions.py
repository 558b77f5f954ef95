"""What a profile settles by itself, as decisions with their reasons, beside those that the machine settles. Pure."""

from __future__ import annotations

import msgspec

from runner.profile import Profile
from runner.text import Param, Text, t


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of the plan."""

    name: str
    """The profile's key, or the setting: ``train.precision``, ``threads``."""
    value: Param
    why: Text


def fixed_decisions(profile: Profile, device: str) -> list[Decision]:
    """Return the choices the profile made itself and that a reader of the plan wants beside the others."""
    train = profile.train
    decisions = [
        Decision(
            name="run.seed", value=profile.run.seed, why=t("hashed per purpose: init, split, order, steps")
        ),
        Decision(
            name="train.clip_norm",
            value=train.clip_norm,
            why=t("the norm of all gradients together, after unscaling")
            if train.clip_norm
            else t("0 in the profile: gradients are not clipped"),
        ),
        Decision(
            name="train.weight_decay",
            value=train.weight_decay,
            why=t("on weight matrices; none on biases, norms and other one-dimensional parameters"),
        ),
    ]
    decisions += technique_decisions(profile)
    if device == "cuda":
        decisions.append(
            Decision(
                name="train.deterministic",
                value=train.deterministic,
                why=t("only deterministic kernels: a rerun gives the same numbers, more slowly")
                if train.deterministic
                else t("kernels may add in any order: a rerun may differ in the last digits"),
            )
        )
    return decisions


_NON_FINITE = {
    "halt": t("a loss or gradient that is no number ends the run before the update"),
    "skip": t("a window whose loss or gradient is no number makes no update; too many in a row end the run"),
    "rollback": t(
        "a loss or gradient that is no number puts the last good checkpoint's weights back, and its window is left out"
    ),
}


_OFFLOAD = {
    "optimizer": t(
        "AdamW's moments and master weights lie in the host's memory and the update is made there: 8 of 16 bytes a "
        "parameter less on the card, gradients and weights over the bus at each update"
    ),
    "parameters": t(
        "parameters lie in the host's memory and are copied to the card module by module, activations are recomputed: "
        "the card holds one block at a time, each weight crosses the bus three times a micro-batch"
    ),
}


_COMPILE = (
    t("asked for in the profile; for any length of text, so that a new length compiles nothing anew"),
    t(
        "measured before the first step on batches of a few lengths, and kept only where the run is long enough to earn "
        "it back; what was decided is written into the run"
    ),
)


def batch_decisions(profile: Profile) -> list[Decision]:
    """Return how samples become batches, where that is not the usual way."""
    found, train = [], profile.train
    if train.pad_to == "max_length":
        why = t("every sample is padded to max_length: for comparing, it only costs time and memory")
        found.append(Decision(name="train.pad_to", value=train.pad_to, why=why))
    if train.micro_batch_tokens:
        why = t("micro-batches of at most so many padded positions: the same update in less memory")
        found.append(Decision(name="train.micro_batch_tokens", value=train.micro_batch_tokens, why=why))
    if train.packing:
        why = t(
            "training texts are joined into rows of exactly max_length: nothing is padded, nothing cut off; no text's "
            "first token is predicted from the text before it"
        )
        found.append(Decision(name="train.packing", value=True, why=why))
    return found


def placement_decisions(profile: Profile) -> list[Decision]:
    """Return where model and optimizer lie, where that is not simply the device."""
    found, asked = [], profile.model.device_map
    if profile.train.offload != "none":
        why = _OFFLOAD[profile.train.offload]
        found.append(Decision(name="train.offload", value=profile.train.offload, why=why))
    if asked != "none":
        why = t(
            "spread by accelerate over cards, host and disk; what lies on host or disk is fetched for each pass and stands still"
        )
        shown = asked if isinstance(asked, str) else ", ".join(f"{name}: {at}" for name, at in asked.items())
        found.append(Decision(name="model.device_map", value=shown, why=why))
    return found


def parallel_decisions(profile: Profile) -> list[Decision]:
    """Return the configuration files that the profile was read with, and what of them has no effect."""
    section = profile.parallel
    files = {"accelerate_config": section.accelerate_config, "deepspeed_config": section.deepspeed_config}
    unused = ", ".join(section.unused)
    why = t("read into the profile; without effect here: {names}", names=unused) if unused else t("read into the profile")  # fmt: skip
    return [Decision(name=f"parallel.{name}", value=path, why=why) for name, path in files.items() if path]


def technique_decisions(profile: Profile) -> list[Decision]:
    """Return the choices that are off unless a profile asks for them, and what they mean."""
    train, lora = profile.train, profile.model.lora
    found = [Decision(name="train.non_finite", value=train.non_finite, why=_NON_FINITE[train.non_finite])]
    if lora is not None:
        why = t(
            "adapters of rank {rank} and the head are trained, all other weights stand still", rank=lora.rank
        )
        found.append(Decision(name="model.lora", value=True, why=why))
    found += placement_decisions(profile)
    found += parallel_decisions(profile)
    found += batch_decisions(profile)
    if train.compile:
        found.append(
            Decision(name="train.compile", value=train.compile, why=_COMPILE[train.compile == "auto"])
        )
    if train.trackers:
        why = t(
            "told beside the run's own events; one that fails is left out. W&B stays offline unless WANDB_MODE says otherwise"
        )
        found.append(Decision(name="train.trackers", value=", ".join(train.trackers), why=why))
    return found
