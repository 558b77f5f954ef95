"""The variables that may make a command of the user's own faster, and why one does not apply here. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.command_environment import ALLOCATOR_NAMES
from doctor.machine_facts import machine_facts
from doctor.model import Facts, Record
from runner.choices import parse_capability
from runner.command_plan import CommandPlan
from runner.text import Text, t

NAMES = ("threads", "waiting", "tokenizers", "memory", "arenas", "tf32")


class Outside(Record, frozen=True, kw_only=True):
    """Some variables to set, over those that ``doctor run`` sets anyway."""

    name: str
    title: Text
    variables: dict[str, str]
    changes: Text | None = None
    """What of the results may differ."""
    skipped: Text | None = None


def outside_levers(plan: CommandPlan, facts: Facts, environ: Mapping[str, str]) -> list[Outside]:
    """Return every lever, those that do not apply with the reason. What the user set is left alone."""
    machine = machine_facts(facts)
    cores = int(plan.environment.get("OMP_NUM_THREADS") or environ.get("OMP_NUM_THREADS") or 1)
    half = str(max(1, cores // 2))
    found = [
        Outside(name="threads", title=t("half as many threads ({count})", count=half),
                variables={"OMP_NUM_THREADS": half, "MKL_NUM_THREADS": half},
                skipped=t("one thread is used already") if cores < 2 else None),
        Outside(name="waiting", title=t("threads that sleep while they wait"), variables={"OMP_WAIT_POLICY": "PASSIVE"}),
        Outside(name="tokenizers", title=t("tokenizers with threads of their own"), variables={"TOKENIZERS_PARALLELISM": "true"}),
        _memory(machine.device == "cuda", plan),
        Outside(name="arenas", title=t("two memory arenas for all threads of the C library"), variables={"MALLOC_ARENA_MAX": "2"}),
        _tf32(machine.compute_capability, machine.device == "cuda"),
    ]  # fmt: skip
    return [_left_alone(one, environ) for one in found]


def _memory(on_card: bool, plan: CommandPlan) -> Outside:
    set_already = [name for name in ALLOCATOR_NAMES if name in plan.environment]
    name = set_already[0] if set_already else ALLOCATOR_NAMES[0]
    return Outside(
        name="memory", title=t("torch's memory in fixed pieces (no expandable segments)"),
        variables={name: "expandable_segments:False"},
        skipped=None if on_card else t("the allocator of a GPU, and there is none here"),
    )  # fmt: skip


def _tf32(capability: str, on_card: bool) -> Outside:
    lever = Outside(
        name="tf32", title=t("matrix products in TF32"), variables={"NVIDIA_TF32_OVERRIDE": "1"},
        changes=t("products keep 10 bits of the mantissa instead of 23: losses differ in the third or fourth digit"),
    )  # fmt: skip
    if not on_card:
        return _skip(lever, t("TF32 is a GPU's, and there is none here"))
    if (parse_capability(capability) or (0, 0)) < (8, 0):
        return _skip(lever, t("cards before compute capability 8.0 have no TF32"))
    return lever


def _skip(lever: Outside, why: Text) -> Outside:
    return Outside(name=lever.name, title=lever.title, variables=lever.variables, changes=lever.changes, skipped=why)  # fmt: skip


def _left_alone(lever: Outside, environ: Mapping[str, str]) -> Outside:
    set_by_user = [name for name in lever.variables if name in environ]
    if lever.skipped is not None or not set_by_user:
        return lever
    return _skip(lever, t("{names}: set by you in this session, left as it is", names=", ".join(set_by_user)))  # fmt: skip
