"""Which torch for this driver and these cards, what goes with it, and the commands that install it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.checks.advice import (
    TorchBuild,
    best_torch_builds,
    capabilities_of,
    is_windows_driver,
    likeliest_build,
    newer_than_the_tables,
)
from doctor.checks.versions import below, index_url, within
from doctor.model import Record, Snapshot, Text, t
from doctor.tables import load
from doctor.tables.drivers import branch, cuda_of_driver, last_branch_for, minimum_driver
from doctor.tables.gpus import capability_of, row_of

OLDEST_SHOWN = 8
"""How many builds are listed at most."""


class Target(Record, frozen=True):
    """What a recommendation is for. ``driver`` None: no NVIDIA driver (a CPU machine)."""

    driver: str | None = None
    driver_cuda: str | None = None
    cards: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    python: str | None = None
    installed_torch: str | None = None
    windows: bool = False
    unread: dict[str, Text] = {}
    """Section (driver, gpus) -> why it could not be read: "none" is then no answer."""


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


def target_of(snapshot: Snapshot) -> Target:
    """Return what a machine asks for."""
    facts = snapshot.facts
    driver, gpus, python = facts.driver.value, facts.gpus, facts.python.value
    version = (driver.version or driver.kernel_module_version) if driver else None
    return Target(
        driver=version,
        driver_cuda=driver.cuda_version if driver else None,
        cards=tuple(gpu.name for gpu in gpus.value.items) if gpus.value else (),
        capabilities=capabilities_of(gpus),
        python=python.version if python else None,
        installed_torch=facts.torch.value.version if facts.torch.value else None,
        windows=is_windows_driver(facts.host),
        unread=dict(_unread(snapshot)),
    )


def _unread(snapshot: Snapshot) -> Iterator[tuple[str, Text]]:
    driver, gpus = snapshot.facts.driver, snapshot.facts.gpus
    version = driver.value and (driver.value.version or driver.value.kernel_module_version)
    if not version and driver.status != "absent":
        yield "driver", driver.why or gpus.why or _without_reason(driver.status)
    if gpus.status in ("failed", "skipped"):
        yield "gpus", gpus.why or _without_reason(gpus.status)


def _without_reason(status: str) -> Text:
    return t("nobody looked") if status == "skipped" else t("no reason is recorded")


def target_from(
    driver: str | None, cards: Sequence[str], python: str | None
) -> tuple[Target, tuple[str, ...]]:
    """Return the target that the options describe, and the card names that are not in the table."""
    found = {name: _capability(name) for name in cards}
    capabilities = tuple(dict.fromkeys(value for value in found.values() if value))
    unknown = tuple(name for name, value in found.items() if not value)
    cuda = cuda_of_driver(driver) if driver else None
    return Target(
        driver=driver, driver_cuda=cuda, cards=tuple(cards), capabilities=capabilities, python=python
    ), unknown


def _capability(name: str) -> str:
    """Return a card's capability by its name, or the one that every card beginning with ``name`` has (``A100``)."""
    if row_of(name) is not None:
        return capability_of(name)
    wanted = _bare(name)
    starts = (wanted, f"rtx{wanted}", f"gtx{wanted}") if wanted else ()
    rows = [row for row in load("gpus")["gpu"] if _bare(row["name"]).startswith(starts)]
    capabilities = {str(row["capability"]) for row in rows}
    return capabilities.pop() if len(capabilities) == 1 else ""


def _bare(name: str) -> str:
    """Return ``rtx4090`` for "NVIDIA GeForce RTX 4090", "RTX4090" and "rtx-4090"."""
    words = [word for word in name.lower().split() if word not in ("nvidia", "geforce", "tesla")]
    return "".join(character for word in words for character in word if character.isalnum())


def recommend(target: Target) -> Recommendation:
    """Return the builds that run on ``target``, the best of them with its mates, or the ways out when none does."""
    if target.driver is None and "driver" in target.unread:
        return Recommendation(target=target)
    if target.driver is None and not target.capabilities:
        return _without_gpu(target)
    undriven = tuple(_undriven(target))
    builds = () if undriven else _runnable(target, target.installed_torch)
    if undriven:
        return Recommendation(target=target, ways_out=undriven)
    if not builds:
        return Recommendation(target=target, ways_out=tuple(_ways_out(target)))
    best = next((build for build in builds if build.native), builds[0])
    return _with_mates(target, best, builds)


def _runnable(target: Target, torch: str | None = None) -> tuple[TorchBuild, ...]:
    return best_torch_builds(
        target.driver, target.capabilities, torch,
        driver_cuda=target.driver_cuda, python=target.python, windows=target.windows,
    )  # fmt: skip


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


def _undriven(target: Target) -> list[Text]:
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


def _ways_out(target: Target) -> list[Text]:
    """Say which single change would make something fit: another Python, one card fewer, a newer driver."""
    out = [_for_a_coming_card(target)] if newer_than_the_tables(target.capabilities) else []
    if target.python and _runnable(_but(target, python=None)):
        build = _runnable(_but(target, python=None))[0]
        out.append(
            t(
                "with another Python: torch {torch}+{tag} runs here, and has no wheels for Python {python}",
                torch=build.torch,
                tag=build.tag,
                python=target.python,
            )
        )
    for name in dict.fromkeys(target.cards) if len(set(target.capabilities)) > 1 else ():
        rest = tuple(one for one in target.capabilities if one != _capability(name))
        if rest and _runnable(_but(target, capabilities=rest)):
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


def _for_a_coming_card(target: Target) -> Text:
    card = newer_than_the_tables(target.capabilities)
    build = likeliest_build(target.driver, target.driver_cuda, target.python, target.windows)
    return t(
        "unknown: compute capability {card} is newer than this version of the doctor, which knows no build with code for it. The newest torch is the likeliest: {what}; `python -c 'import torch; print(torch.cuda.get_arch_list())'` then shows what it holds",
        card=card,
        what=f"torch=={build.torch}{index_url(build.cuda)}" if build else "torch",
    )


def _but(target: Target, **changes: object) -> Target:
    import msgspec

    return msgspec.structs.replace(target, **changes)
