"""The rental platforms of platforms.toml as records, and which one a set of markers shows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Literal

import msgspec

from doctor.tables import load

Confidence = Literal["verified", "mixed", "memory"]


class PlatformRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one platform is recognised. ``A+B`` in ``variables`` needs both names."""

    name: str
    title: str
    confidence: Confidence
    variables: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    hostname_prefix: str = ""
    weak_variables: tuple[str, ...] = ()
    weak_paths: tuple[str, ...] = ()
    gpu_count_variable: str = ""


class Disk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a platform promises of the disk at ``path``; None where it promises nothing that we know."""

    platform: str
    path: str
    role: Literal["system", "data", "container", "shared", "public"]
    speed: Literal["fast", "slow", "varies"]
    confidence: Confidence
    typical_bytes: int | None = None
    survives_stop: bool | None = None
    survives_release: bool | None = None
    in_saved_image: bool | None = None
    read_only: bool = False


class Hint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    platform: str
    id: str
    fact: str
    confidence: Confidence


@cache
def platforms() -> tuple[PlatformRow, ...]:
    """Return every platform, in the order in which the first recognised one wins."""
    return msgspec.convert(load("platforms")["platform"], tuple[PlatformRow, ...])


@cache
def disks(platform: str) -> tuple[Disk, ...]:
    """Return the disks of a platform; none for one that is not in the table."""
    rows = msgspec.convert(load("platforms")["disk"], tuple[Disk, ...])
    return tuple(row for row in rows if row.platform == platform)


@cache
def hints(platform: str) -> tuple[Hint, ...]:
    rows = msgspec.convert(load("platforms")["hint"], tuple[Hint, ...])
    return tuple(row for row in rows if row.platform == platform)


def disk_of(platform: str, path: str) -> Disk | None:
    """Return the disk of the platform that the absolute ``path`` lies on: the longest one above it."""
    above = [
        row for row in disks(platform) if path == row.path or path.startswith(row.path.rstrip("/") + "/")
    ]
    return max(above, key=lambda row: len(row.path), default=None)


def row_of(platform: str) -> PlatformRow | None:
    return next((row for row in platforms() if row.name == platform), None)


def recognise(
    variables: Collection[str], exists: Callable[[str], bool], hostname: str = ""
) -> tuple[PlatformRow, tuple[str, ...]] | None:
    """Return the first platform that a strong marker shows, with the markers seen; None: none recognised.

    ``variables`` are names that are set, ``exists`` says whether an absolute path is there. Weak markers are
    named as evidence but recognise nothing.
    """
    for row in platforms():
        strong = [name for name in row.variables if all(part in variables for part in name.split("+"))]
        strong += [path for path in row.paths if exists(path)]
        if row.hostname_prefix and hostname.startswith(row.hostname_prefix):
            strong.append(f"hostname {row.hostname_prefix}*")
        if strong:
            weak = [name for name in row.weak_variables if name in variables]
            weak += [path for path in row.weak_paths if exists(path)]
            return row, (*strong, *weak)
    return None
