"""When no torch build runs: why, and the nearest single change that makes one run. Pure."""

from __future__ import annotations

import msgspec

from doctor.checks.advice import best_torch_builds, likeliest_build, newer_than_the_tables
from doctor.checks.versions import index_url
from doctor.model import Text, t
from doctor.recommend_target import Target, capability_named, runnable
from doctor.tables import load
from doctor.tables.drivers import branch, last_branch_for, minimum_driver


def undriven(target: Target) -> list[Text]:
    """Say which cards this driver does not drive at all: too new for it, or dropped before it."""
    mine = branch(target.driver)
    if mine is None or target.windows:
        return []
    out = []
    for one in target.capabilities:
        first = next(
            (row["first_branch"] for row in load("drivers")["family"] if one in row["capabilities"]), None
        )
        last = last_branch_for(one)
        if first and mine < first:
            out.append(
                t(
                    "compute capability {card} needs driver branch {branch} or newer: rent a machine with such a driver",
                    card=one,
                    branch=first,
                )
            )
        if last and mine > last:
            out.append(
                t(
                    "compute capability {card} is driven up to driver branch {branch} only: rent a machine with such a driver",
                    card=one,
                    branch=last,
                )
            )
    return out


def ways_out(target: Target) -> list[Text]:
    """Say which single change would make something fit: another Python, one card fewer, a newer driver."""
    out = [_for_a_coming_card(target)] if newer_than_the_tables(target.capabilities) else []
    if target.python and runnable(_but(target, python=None)):
        build = runnable(_but(target, python=None))[0]
        out.append(
            t(
                "unknown: Python {python} is newer than this version of the doctor, which knows wheels up to {newest}. Try the newest torch, {torch}+{tag}; or take Python {newest}",
                torch=build.torch,
                tag=build.tag,
                python=target.python,
                newest=newest_python(),
            )
            if _minor(target.python) > _minor(newest_python())
            else t(
                "with another Python: torch {torch}+{tag} runs here, and has no wheels for Python {python}",
                torch=build.torch,
                tag=build.tag,
                python=target.python,
            )
        )
    for name in dict.fromkeys(target.cards) if len(set(target.capabilities)) > 1 else ():
        rest = tuple(one for one in target.capabilities if one != capability_named(name))
        if rest and runnable(_but(target, capabilities=rest)):
            out.append(
                t(
                    "without {card}: hide it with CUDA_VISIBLE_DEVICES, the other cards have a build in common",
                    card=name,
                )
            )
    newer = best_torch_builds(None, target.capabilities, python=target.python)
    if newer and not out:
        floor = minimum_driver(newer[-1].cuda, target.windows) or "?"
        out.append(
            t(
                "with a newer driver: the oldest build for these cards is CUDA {cuda}, which needs driver {floor}",
                cuda=newer[-1].cuda,
                floor=floor,
            )
        )
    return out or [t("no torch build in the table runs on this driver and these cards together")]


def newest_python() -> str:
    """Return the newest Python that a release in the table has wheels for."""
    return max((str(row["python_max"]) for row in load("torch_wheels")["release"]), key=_minor)


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _for_a_coming_card(target: Target) -> Text:
    card = newer_than_the_tables(target.capabilities)
    build = likeliest_build(target.driver, target.driver_cuda, target.python, target.windows)
    return t(
        "unknown: compute capability {card} is newer than this version of the doctor, which knows no build with code for it. The newest torch is the likeliest: {what}; `python -c 'import torch; print(torch.cuda.get_arch_list())'` then shows what it holds",
        card=card,
        what=f"torch=={build.torch}{index_url(build.cuda)}" if build else "torch",
    )


def _but(target: Target, **changes: object) -> Target:
    return msgspec.structs.replace(target, **changes)
