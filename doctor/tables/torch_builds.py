"""torch_builds.toml as answers: what a build was compiled for, which cards run that, what is published. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from doctor.tables import load
from doctor.tables.drivers import number


class Release(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    month: str
    pypi_cuda: str
    cuda: tuple[str, ...]
    confidence: str


class Arch(msgspec.Struct, frozen=True, kw_only=True):
    torch: str
    """Minor: ``2.6``."""
    cuda: str
    sm: tuple[str, ...]
    ptx: tuple[str, ...]
    confidence: str

    @property
    def names(self) -> tuple[str, ...]:
        """As ``torch.cuda.get_arch_list()`` prints them."""
        return tuple(f"sm_{one}" for one in self.sm) + tuple(f"compute_{one}" for one in self.ptx)


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    torch: str
    cuda: str
    cudnn: str
    nccl: str
    confidence: str


@cache
def releases() -> tuple[Release, ...]:
    """Every release, newest first."""
    return msgspec.convert(load("torch_builds")["release"], tuple[Release, ...])


@cache
def _arches() -> tuple[Arch, ...]:
    return msgspec.convert(load("torch_builds")["arch"], tuple[Arch, ...])


@cache
def _pins() -> tuple[Pin, ...]:
    return msgspec.convert(load("torch_builds")["pin"], tuple[Pin, ...])


def public(version: str) -> str:
    """``2.6.0+cu124`` -> 2.6.0."""
    return version.partition("+")[0]


def minor(version: str) -> str:
    """``2.6.0+cu124`` -> 2.6."""
    return ".".join(public(version).split(".")[:2])


def is_official(version: str) -> bool:
    """Whether the version reads like a released wheel (``2.6.0``, ``2.6.0+cu124``), not a vendor's or a nightly."""
    return re.fullmatch(r"\d+\.\d+\.\d+(\+(cu\d+|cpu))?", version) is not None


def arch_of(version: str, cuda: str | None) -> Arch | None:
    """Return what the official build of ``version`` for ``cuda`` was compiled for; None when the table does not know."""
    if not cuda or not is_official(version):
        return None
    mine = minor(version)
    return next((row for row in _arches() if row.torch == mine and row.cuda == cuda), None)


def pin_of(version: str, cuda: str | None) -> Pin | None:
    """Return the cuDNN and NCCL that the official build brings; None when the table does not know."""
    if not cuda or not is_official(version):
        return None
    mine = minor(version)
    return next((row for row in _pins() if row.torch == mine and row.cuda == cuda), None)


def is_newer_than_table(version: str) -> bool:
    return number(minor(version)) > number(minor(releases()[0].version))


# Tegra and Jetson: binaries of another minor are not promised to run there.
_EXACT_ONLY = frozenset({"5.3", "6.2", "7.2", "8.7", "10.1", "11.0"})

# sm_90, sm_90a, sm_100f, compute_120
_NAME = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def runs_natively(arches: Iterable[str], capability: str) -> bool:
    """Return whether a binary in ``arches`` runs on ``capability`` (``8.9``).

    A binary runs on its own major from its own minor on; ``a`` only on exactly its own, ``f`` on its family.
    """
    major, least = number(capability)[:2]
    for name in arches:
        match = _NAME.fullmatch(name)
        if not match or match[1] != "sm" or int(match[2]) != major:
            continue
        exact = int(match[3]) == least
        if exact or (match[4] != "a" and capability not in _EXACT_ONLY and int(match[3]) <= least):
            return True
    return False


def runs_by_ptx(arches: Iterable[str], capability: str) -> bool:
    """Return whether the driver can compile intermediate code in ``arches`` for ``capability``."""
    matches = (_NAME.fullmatch(name) for name in arches)
    return any(
        match
        and match[1] == "compute"
        and not match[4]
        and (int(match[2]), int(match[3])) <= number(capability)[:2]
        for match in matches
    )


def lowest(arches: Iterable[str]) -> tuple[int, ...]:
    """Return the lowest capability among ``arches``; empty when no name is understood."""
    found = [(int(match[2]), int(match[3])) for match in map(_NAME.fullmatch, arches) if match]
    return min(found, default=())
