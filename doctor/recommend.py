"""Which torch for this driver and these cards, what goes with it, and the commands that install it. Pure."""

from __future__ import annotations

from doctor.checks.advice import TorchBuild
from doctor.checks.versions import below, index_url, within
from doctor.model import Record, Text, t
from doctor.recommend_target import Target, runnable, target_from, target_of
from doctor.recommend_ways import undriven, ways_out
from doctor.tables import load
from doctor.tables.drivers import minimum_driver

__all__ = [
    "MirrorAnswer",
    "Recommendation",
    "Target",
    "matching_transformers",
    "recommend",
    "target_from",
    "target_of",
]

OLDEST_SHOWN = 8
"""How many builds are listed at most."""


class MirrorAnswer(Record, frozen=True):
    """What one mirror said. ``why`` None: it has the build, and ``option`` is what pip takes."""

    name: str
    url: str
    option: str = ""
    """``--index-url URL`` or ``--find-links URL``."""
    why: Text | None = None
    took_ms: float | None = None


class Recommendation(Record, frozen=True):
    """``best`` None with cards: nothing fits, and ``ways_out`` says what would. Without either: see ``target.unread``."""

    target: Target
    best: TorchBuild | None = None
    reasons: tuple[Text, ...] = ()
    builds: tuple[TorchBuild, ...] = ()
    torchvision: str | None = None
    torchaudio: str | None = None
    transformers: str | None = None
    """Requirement: ``transformers==4.57.1``."""
    accelerate: str | None = None
    commands: dict[str, str] = {}
    """Tool (pip, uv, conda) -> command."""
    ways_out: tuple[Text, ...] = ()
    mirrors: tuple[MirrorAnswer, ...] = ()
    """What mirrors said of ``best``; empty: nobody asked them."""


def recommend(target: Target) -> Recommendation:
    """Return the builds that run on ``target``, the best of them with its mates, or the ways out when none does."""
    if target.driver is None and "driver" in target.unread:
        return Recommendation(target=target)
    if target.driver is None and not target.capabilities:
        return _without_gpu(target)
    not_driven = tuple(undriven(target))
    builds = () if not_driven else runnable(target, target.installed_torch)
    if not_driven:
        return Recommendation(target=target, ways_out=not_driven)
    if not builds:
        return Recommendation(target=target, ways_out=tuple(ways_out(target)))
    best = next((build for build in builds if build.native), builds[0])
    return _with_mates(target, best, builds)


def _with_mates(target: Target, best: TorchBuild, builds: tuple[TorchBuild, ...]) -> Recommendation:
    mates: dict[str, str] = next(
        (row for row in load("torch_wheels")["release"] if row["version"] == best.torch), {}
    )
    transformers = matching_transformers(best.torch, target.python)
    return Recommendation(
        target=target,
        best=best,
        reasons=tuple(_reasons(target, best)),
        builds=builds[:OLDEST_SHOWN],
        torchvision=mates.get("torchvision") or None,
        torchaudio=mates.get("torchaudio") or None,
        transformers=transformers,
        commands=_commands(target, best, mates.get("torchvision")),
    )


def _reasons(target: Target, best: TorchBuild) -> list[Text]:
    minimum = minimum_driver(best.cuda, target.windows) or "?"
    reasons = [
        t(
            "driver {driver} runs CUDA {cuda} (needs {minimum} or newer)",
            driver=target.driver,
            cuda=best.cuda,
            minimum=minimum,
        )
        if target.driver
        else t(
            "no driver was named: CUDA {cuda} needs {minimum} or newer; with an older one, say which: --driver VERSION",
            cuda=best.cuda,
            minimum=minimum,
        )
    ]
    if target.capabilities:
        cards = ", ".join(target.capabilities)
        reasons.append(
            t("the build carries code for compute capability {cards}", cards=cards)
            if best.native
            else t(
                "the build carries PTX that the driver compiles for {cards} at the first start", cards=cards
            )
        )
    if target.python:
        reasons.append(t("it has wheels for Python {python}", python=target.python))
    if target.installed_torch:
        reasons.append(t("it is the nearest to the installed {torch}", torch=target.installed_torch))
    return reasons


def _commands(target: Target, best: TorchBuild, torchvision: str | None) -> dict[str, str]:
    wanted = f"torch=={best.torch}" + (f" torchvision=={torchvision}" if torchvision else "")
    index = "" if best.on_pypi else index_url(best.cuda)
    commands = {"pip": f"python -m pip install {wanted}{index}", "uv": f"uv pip install {wanted}{index}"}
    if _conda_had(best.torch):
        commands["conda"] = (
            f"conda install pytorch=={best.torch} pytorch-cuda={best.cuda} -c pytorch -c nvidia"
        )
    return commands


def _conda_had(torch: str) -> bool:
    """The pytorch conda channel ended with 2.5; pytorch-cuda packages begin with 1.13."""
    return below(torch, "2.6") is True and below(torch, "1.13") is False


def matching_transformers(torch: str, python: str | None = None) -> str | None:
    """Return ``transformers==X`` for the newest release in the table that takes this torch and Python."""
    fitting = [
        row
        for row in load("transformers")["minor"]
        if (not row["torch_runtime_min"] or below(torch, row["torch_runtime_min"]) is False)
        and not any(
            within(row["version"], one["transformers"]) and below(torch, one["torch_min"])
            for one in load("transformers")["import_breaks"]
        )
        and (python is None or within(python, row["requires_python"]) is not False)
    ]
    return f"transformers=={fitting[-1]['version']}" if fitting else None


def _without_gpu(target: Target) -> Recommendation:
    rows = [
        row
        for row in load("torch_wheels")["release"]
        if target.python is None or _has_wheel(row, target.python)
    ]
    if not rows:
        return Recommendation(
            target=target,
            ways_out=(
                t("no torch release in the table has wheels for Python {python}", python=target.python or ""),
            ),
        )
    row = rows[-1]
    wanted = f"torch=={row['version']}" + (
        f" torchvision=={row['torchvision']}" if row.get("torchvision") else ""
    )
    index = index_url("")
    return Recommendation(
        target=target,
        reasons=(t("no NVIDIA driver here: the CPU build is small and enough"),),
        torchvision=row.get("torchvision"),
        transformers=matching_transformers(row["version"], target.python),
        commands={"pip": f"python -m pip install {wanted}{index}", "uv": f"uv pip install {wanted}{index}"},
    )


def _has_wheel(row: dict[str, str], python: str) -> bool:
    minor = ".".join(python.split(".")[:2])
    return below(minor, row["python_min"]) is False and below(row["python_max"], minor) is False
