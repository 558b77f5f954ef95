"""What a torch is recommended for: a machine that was read, or one described by its driver and cards. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from doctor.checks.advice import TorchBuild, best_torch_builds, capabilities_of, is_windows_driver
from doctor.model import Record, Snapshot, Text, t
from doctor.tables import load
from doctor.tables.drivers import cuda_of_driver
from doctor.tables.gpus import capability_of, row_of


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
    found = {name: capability_named(name) for name in cards}
    capabilities = tuple(dict.fromkeys(value for value in found.values() if value))
    unknown = tuple(name for name, value in found.items() if not value)
    cuda = cuda_of_driver(driver) if driver else None
    return Target(
        driver=driver, driver_cuda=cuda, cards=tuple(cards), capabilities=capabilities, python=python
    ), unknown


# 6.1     sm_61     sm_120
_CAPABILITY = re.compile(r"([1-9]\d?\.\d)|sm_([1-9]\d?)(\d)", re.ASCII)


def capability_named(name: str) -> str:
    """Return a card's capability by its name, or the one that every card beginning with ``name`` has (``A100``).

    A capability itself (``6.1``, ``sm_61``) stands for any card of it.
    """
    if match := _CAPABILITY.fullmatch(name.strip()):
        return match[1] or f"{match[2]}.{match[3]}"
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


def runnable(target: Target, torch: str | None = None) -> tuple[TorchBuild, ...]:
    """Return the builds that run on ``target``, the nearest to ``torch`` first."""
    return best_torch_builds(
        target.driver, target.capabilities, torch,
        driver_cuda=target.driver_cuda, python=target.python, windows=target.windows,
    )  # fmt: skip
