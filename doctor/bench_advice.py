"""What a comparison means for the profile itself: what it has already of the winners, and what there is to change. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doctor.bench_levers import BEFORE, Lever, Settings
from runner.plan import Plan


def own_settings(plan: Plan) -> Settings:
    """Return the profile's own value of everything that is compared, with ``auto`` settled as for a run of it."""
    settled = {"train.precision": plan.settings.precision, "train.fused": plan.settings.fused, "train.workers": plan.settings.workers,
               "train.pin_memory": plan.settings.pin_memory and plan.settings.device == "cuda"}  # fmt: skip
    return {key: settled.get(key, _given(plan, key)) for key in BEFORE}


def _given(plan: Plan, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(plan.profile, section), name)


def has(own: Settings, settings: Settings) -> bool:
    """Return whether a run of the profile does all of ``settings``. ``auto`` that is settled in the run itself counts as not."""
    return all(own[key] == value for key, value in settings.items() if key in own)


def change(own: Settings, won: Sequence[Lever], lost: Sequence[Lever]) -> dict[str, Any]:
    """Return what to set in the profile: the winners it has not, and *before*'s value of what it has and was proven slower."""
    found: dict[str, Any] = {}
    for lever in lost:
        if has(own, lever.settings):
            found |= {key: BEFORE[key] for key in lever.settings if lever.settings[key] != BEFORE[key]}
    for lever in won:
        found |= {key: value for key, value in lever.settings.items() if own.get(key) != value}
    return found
