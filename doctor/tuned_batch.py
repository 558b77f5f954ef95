"""The micro-batch that ``doctor tune`` found, for a profile that leaves it to us (``train.micro_batch_size = "auto"``)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from doctor.corrections import key_of, read_kept, store_path, tuned_for
from doctor.machine_facts import machine_facts
from doctor.model import Snapshot
from doctor.model_config import NoConfig
from doctor.plan_device import device_of, placed
from doctor.plan_options import PlanOptions
from doctor.planning import torch_version
from doctor.profile_step import config_of_plan, request_of_plan
from runner.plan import MachineFacts, make_plan
from runner.profile import Profile


def facts_for(profile: Profile, snapshot: Snapshot, environ: Mapping[str, str] = os.environ) -> MachineFacts:
    """Return what of the machine decides a plan of ``profile``, with the batch that was tried for it."""
    machine = machine_facts(snapshot.facts)
    if profile.train.micro_batch_size != "auto":
        return machine
    return msgspec.structs.replace(machine, tuned_micro_batch=_found(profile, machine, snapshot, environ))


def _found(profile: Profile, machine: MachineFacts, snapshot: Snapshot, environ: Mapping[str, str]) -> int:
    """Return the largest batch tried for this model, device and torch, with gradients kept between micro-batches; 0: none,
    or somebody else holds now what it took."""
    plan = make_plan(profile, machine, "")
    options = PlanOptions(on_cpu=plan.settings.device == "cpu")
    card = device_of(snapshot, options)
    if card is None:
        return 0
    try:
        request = placed(request_of_plan(plan, config_of_plan(plan, snapshot), options.on_cpu), options)
    except NoConfig:
        return 0
    kept, _ = read_kept(store_path(environ))
    key = key_of(msgspec.structs.replace(request, accumulation=2), card.name, torch_version(snapshot))
    found = tuned_for([one for one in kept.tuned if not one.capped], key, request.sequence_length)
    return found.batch if found and found.process_bytes <= card.free_bytes else 0
