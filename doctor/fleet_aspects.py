"""What the ranks of one job should have alike, one value each: how it is read from a machine's facts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from doctor.model import Facts, Level, Record, Text, t

_FAMILY = ("transformers", "accelerate", "deepspeed", "datasets", "tokenizers", "safetensors", "numpy", "peft", "flash-attn", "bitsandbytes")  # fmt: skip
"""Distributions whose version decides what a rank computes or sends."""


class Aspect(Record, frozen=True):
    """One thing that ranks of a job should have alike."""

    id: str
    level: Level
    section: str
    value: Callable[[Facts], str | None]
    """None: not known there. An empty string is a value: there is none."""
    title: Callable[[str], Text]
    """Of the values with who has them."""
    advice: Text | None = None


def _driver(facts: Facts) -> str | None:
    return facts.driver.value.version if facts.driver.value else None


def _torch(facts: Facts) -> str | None:
    return facts.torch.value.version if facts.torch.value else _absent(facts.torch.status)


def _nccl(facts: Facts) -> str | None:
    return facts.torch.value.nccl_version if facts.torch.value else None


def _absent(status: str) -> str | None:
    return "" if status == "absent" else None


def _python(facts: Facts) -> str | None:
    version = facts.python.value.version if facts.python.value else None
    return ".".join(version.split(".")[:2]) if version else None


def _cards(facts: Facts) -> str | None:
    if facts.gpus.value is None:
        return _absent(facts.gpus.status)
    counted = Counter(gpu.name for gpu in facts.gpus.value.items)
    return " + ".join(f"{count} x {name}" for name, count in sorted(counted.items()))


def _commit(facts: Facts) -> str | None:
    git = facts.provenance.value.git if facts.provenance.value else None
    if git is None or git.commit is None:
        return None
    return git.commit[:12] + ("+" if git.dirty else "")


def _infiniband(facts: Facts) -> str | None:
    devices = facts.host.value.infiniband_devices if facts.host.value else None
    return None if devices is None else ("InfiniBand" if devices else "")


def _glibc(facts: Facts) -> str | None:
    return facts.host.value.glibc if facts.host.value else None


def _family(facts: Facts) -> str | None:
    packages = facts.packages.value
    if packages is None or not packages.complete:
        return None
    return " + ".join(f"{name} {packages.version(name)}" for name in _FAMILY if packages.version(name))


ASPECTS: tuple[Aspect, ...] = (
    Aspect(id="fleet-torch-differs", level="fail", section="torch", value=_torch,
           title=lambda values: t("torch is not the same everywhere: {values}", values=values),
           advice=t("install one build on all of them; `doctor snapshot export` on a good one and `doctor snapshot restore` on the others does that")),
    Aspect(id="fleet-nccl-differs", level="warn", section="torch", value=_nccl,
           title=lambda values: t("NCCL is not the same everywhere: {values}", values=values),
           advice=t("ranks with different NCCL releases fail or hang at the first collective; install one torch build on all")),
    Aspect(id="fleet-cards-differ", level="warn", section="gpus", value=_cards,
           title=lambda values: t("the cards are not the same everywhere: {values}", values=values),
           advice=t("every step waits for the slowest card, and the smallest memory decides the batch")),
    Aspect(id="fleet-code-differs", level="warn", section="provenance", value=_commit,
           title=lambda values: t("the code is not the same everywhere: {values}", values=values),
           advice=t("check out one commit on all of them (a + means changes that are not committed)")),
    Aspect(id="fleet-packages-differ", level="warn", section="packages", value=_family,
           title=lambda values: t("packages that ranks compute with are not the same everywhere: {values}", values=values),
           advice=t("install one set on all of them, or put the environment on a disk that all of them see")),
    Aspect(id="fleet-python-differs", level="warn", section="python", value=_python,
           title=lambda values: t("Python is not the same everywhere: {values}", values=values)),
    Aspect(id="fleet-driver-differs", level="note", section="driver", value=_driver,
           title=lambda values: t("the driver is not the same everywhere: {values}", values=values)),
    Aspect(id="fleet-infiniband-differs", level="warn", section="host", value=_infiniband,
           title=lambda values: t("some see InfiniBand and some do not: {values}", values=values),
           advice=t("NCCL falls back to sockets for all of them; look at /dev/infiniband in the containers without")),
    Aspect(id="fleet-glibc-differs", level="note", section="host", value=_glibc,
           title=lambda values: t("glibc is not the same everywhere: {values}", values=values)),
)  # fmt: skip
