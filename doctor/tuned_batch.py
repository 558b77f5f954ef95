"""The micro-batch that ``doctor tune`` found, for a profile that leaves it to us (``train.micro_batch_size = "auto"``)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from doctor.corrections import Key, Tuned, key_of, read_kept, store_path, tuned_for
from doctor.machine_facts import machine_facts
from doctor.model import Snapshot
from doctor.model_config import NoConfig
from doctor.plan_device import device_of, placed
from doctor.plan_options import PlanOptions
from doctor.planning import torch_version
from doctor.profile_step import config_of_plan, request_of_plan
from doctor.render.layout import human_bytes
from runner.plan import MachineFacts, make_plan
from runner.profile import Profile
from runner.text import Text, t

WAYS = (
    "precision",
    "optimizer",
    "attention",
    "gradient_checkpointing",
    "lora_rank",
    "accumulated",
    "variant",
)
"""Of a key: how is trained; the rest is what, and on what."""


def facts_for(profile: Profile, snapshot: Snapshot, environ: Mapping[str, str] = os.environ) -> MachineFacts:
    """Return what of the machine decides a plan of ``profile``, with the batch that was tried for it."""
    machine = machine_facts(snapshot.facts)
    if profile.train.micro_batch_size != "auto":
        return machine
    batch, why = _found(profile, machine, snapshot, environ)
    return msgspec.structs.replace(machine, tuned_micro_batch=batch, tuned_why=why)


def _found(profile: Profile, machine: MachineFacts, snapshot: Snapshot, environ: Mapping[str, str]) -> tuple[int, Text | None]:  # fmt: skip
    """Return the largest batch tried for this model, device and torch, with gradients kept between micro-batches; 0: none that
    counts here, and why, where one was found for something else."""
    plan = make_plan(profile, machine, "")
    options = PlanOptions(on_cpu=plan.settings.device == "cpu")
    card = device_of(snapshot, options)
    if card is None:
        return 0, None
    try:
        request = placed(request_of_plan(plan, config_of_plan(plan, snapshot), options.on_cpu), options)
    except NoConfig:
        return 0, None
    kept, _ = read_kept(store_path(environ))
    key = key_of(msgspec.structs.replace(request, accumulation=2), card.name, torch_version(snapshot))
    found = tuned_for([one for one in kept.tuned if not one.capped], key, request.sequence_length)
    if found is not None and found.process_bytes <= card.free_bytes:
        return found.batch, None
    others = [found] if found else [one for one in kept.tuned if one.key.model == key.model and one.batch]
    return 0, why_not(others[-1], key, request.sequence_length, card.free_bytes) if others else None


def why_not(tuned: Tuned, key: Key, length: int, free_bytes: int) -> Text:
    """Return why what was found does not count for ``key`` at ``length`` tokens with so much memory free: the first reason."""
    batch = tuned.batch
    if tuned.key.card != key.card:
        return t("the whole batch at once: doctor tune found {batch} on {other}, which says nothing of {here}; run it here", batch=batch, other=tuned.key.card, here=key.card)  # fmt: skip
    if tuned.key.torch != key.torch:
        return t("the whole batch at once: doctor tune found {batch} with torch {other}, and this is {here}; run it again", batch=batch, other=tuned.key.torch, here=key.torch)  # fmt: skip
    if tuned.length < length:
        return t("the whole batch at once: doctor tune found {batch} at {other} tokens, and {here} are asked for; run it again", batch=batch, other=tuned.length, here=length)  # fmt: skip
    if tuned.capped:
        return t("the whole batch at once: doctor tune found {batch} under a limit that was asked for; without --memory-limit it finds what fits here", batch=batch)  # fmt: skip
    if tuned.process_bytes > free_bytes:
        return t("the whole batch at once, cut smaller where memory is short: doctor tune found {batch}, which held {held}, and {free} are free now",
                 batch=batch, held=human_bytes(tuned.process_bytes), free=human_bytes(free_bytes))  # fmt: skip
    names = [name for name in WAYS if getattr(tuned.key, name) != getattr(key, name)]
    return t("the whole batch at once: doctor tune found {batch} for another way of training ({names}); run it again", batch=batch, names=", ".join(names) or "-")  # fmt: skip
