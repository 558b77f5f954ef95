"""The variables that may make a command of the user's own faster, and why one does not apply here. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from doctor.command_environment import ALLOCATOR_NAMES
from doctor.machine_facts import machine_facts
from doctor.model import Facts, Record
from runner.capability import parse_capability
from runner.command_plan import CommandPlan
from runner.text import Text, t

NAMES = ("plain", "threads", "waiting", "tokenizers", "hugepages", "memory", "arenas", "tf32")
ALWAYS = ("PYTHONUNBUFFERED",)
"""Set in every run: without it the log tells all steps at the end."""


class Outside(Record, frozen=True, kw_only=True):
    """Some variables to set, over those that ``doctor run`` sets anyway."""

    name: str
    title: Text
    variables: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Of what ``doctor run`` sets, left out."""
    changes: Text | None = None
    """What of the results may differ."""
    skipped: Text | None = None


def outside_levers(
    plan: CommandPlan,
    facts: Facts,
    environ: Mapping[str, str],
    tries: Sequence[str] = (),
    huge_pages: str = "",
) -> list[Outside]:
    """Return every lever, those that do not apply with the reason. What the user set is left alone.

    ``tries``: the user's own, ``NAME=VALUE``. ``huge_pages``: the kernel's mode; empty: it could not be read.
    """
    machine = machine_facts(facts)
    cores = int(plan.environment.get("OMP_NUM_THREADS") or environ.get("OMP_NUM_THREADS") or 1)
    half = str(max(1, cores // 2))
    found = [
        Outside(name="threads", title=t("half as many threads ({count})", count=half),
                variables={"OMP_NUM_THREADS": half, "MKL_NUM_THREADS": half},
                skipped=t("one thread is used already") if cores < 2 else None),
        Outside(name="waiting", title=t("threads that sleep while they wait"), variables={"OMP_WAIT_POLICY": "PASSIVE"}),
        Outside(name="tokenizers", title=t("tokenizers with threads of their own"), variables={"TOKENIZERS_PARALLELISM": "true"}),
        _huge_pages(huge_pages),
        _memory(machine.device == "cuda", plan),
        Outside(name="arenas", title=t("two memory arenas for all threads of the C library"), variables={"MALLOC_ARENA_MAX": "2"}),
        _tf32(machine.compute_capability, machine.device == "cuda"),
    ]  # fmt: skip
    return [_plain(plan), *(_left_alone(one, environ) for one in found), *map(_own, tries)]


def _plain(plan: CommandPlan) -> Outside:
    without = tuple(name for name in plan.environment if name not in ALWAYS)
    lever = Outside(
        name="plain", title=t("as your shell starts it: without what doctor run sets"), without=without
    )
    return (
        lever if without else _skip(lever, t("doctor run sets nothing here that you have not set yourself"))
    )


def _own(text: str) -> Outside:
    name, _, value = text.partition("=")
    return Outside(name=text, title=t("{variable}, as asked for", variable=text), variables={name: value})


def _huge_pages(mode: str) -> Outside:
    """torch's c10 allocator asks for huge pages for CPU tensors of 2 MB and more, where the kernel lets it."""
    lever = Outside(
        name="hugepages", title=t("CPU tensors in huge pages"), variables={"THP_MEM_ALLOC_ENABLE": "1"}
    )
    if mode in ("madvise", "always"):
        return lever
    return _skip(lever, t("this kernel gives no transparent huge pages ({mode})", mode=mode or "?"))


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
        name="tf32", title=t("matrix products in TF32"), variables={"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
        changes=t("products keep 10 bits of the mantissa instead of 23: losses differ in the third or fourth digit"),
    )  # fmt: skip
    if not on_card:
        return _skip(lever, t("TF32 is a GPU's, and there is none here"))
    if (parse_capability(capability) or (0, 0)) < (8, 0):
        return _skip(lever, t("cards before compute capability 8.0 have no TF32"))
    return lever


def _skip(lever: Outside, why: Text) -> Outside:
    return msgspec.structs.replace(lever, skipped=why)


def _left_alone(lever: Outside, environ: Mapping[str, str]) -> Outside:
    set_by_user = [name for name in lever.variables if name in environ]
    if lever.skipped is not None or not set_by_user:
        return lever
    return _skip(lever, t("{names}: set by you in this session, left as it is", names=", ".join(set_by_user)))  # fmt: skip
