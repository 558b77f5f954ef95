"""What wheels ask of a machine: C library, architecture, Python; read from the tags that WHEEL kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from doctor.model import Distribution, Packages

# manylinux_2_28_x86_64   manylinux2014_x86_64   linux_x86_64   any   musllinux_1_2_x86_64   macosx_11_0_arm64   win_amd64
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)$")
_OLD = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_OLD_TAG = re.compile(r"(manylinux1|manylinux2010|manylinux2014)_(\w+)$")
_PYTHON = re.compile(r"cp(\d)(\d+)$")


class Need(NamedTuple):
    """What one wheel asks for; None: nothing, or its tags do not say."""

    glibc: tuple[int, int] | None
    arch: str | None
    python: str | None
    """``3.11`` where it runs on this minor only."""


def need_of(tags: Iterable[str]) -> Need:
    """Return what a wheel with ``tags`` asks for; of several tags each is enough, so the mildest counts."""
    parsed = [tag.split("-", 2) for tag in tags if tag.count("-") >= 2]
    floors = [_glibc(platform) for _, _, platform in parsed]
    known = [floor for floor in floors if floor is not None]
    arches = {_arch(platform) for _, _, platform in parsed}
    pythons = {_python(python, abi) for python, abi, _ in parsed}
    return Need(
        glibc=min(known) if known and len(known) == len(floors) else None,
        arch=arches.pop() if len(arches) == 1 else None,
        python=pythons.pop() if len(pythons) == 1 else None,
    )


def _glibc(platform: str) -> tuple[int, int] | None:
    if match := _GLIBC.match(platform):
        return int(match[1]), int(match[2])
    if match := _OLD_TAG.match(platform):
        return _OLD[match[1]]
    return None


def _arch(platform: str) -> str | None:
    for pattern in (_GLIBC, _OLD_TAG, re.compile(r"(?:musl)?linux_(?:\d+_\d+_)?(\w+)$")):
        if match := pattern.match(platform):
            return str(match[match.lastindex or 0])
    return None


def _python(python: str, abi: str) -> str | None:
    match = _PYTHON.match(python)
    return f"{match[1]}.{match[2]}" if match and abi not in ("abi3", "none") else None


def newest_glibc(packages: Packages) -> tuple[tuple[int, int] | None, list[str]]:
    """Return the newest C library that any package asks for, and which packages ask for it."""
    asked = {item.name: need.glibc for item, need in needs(packages) if need.glibc}
    newest = max(asked.values(), default=None)
    return newest, sorted(name for name, floor in asked.items() if floor == newest)


def needs(packages: Packages) -> Iterator[tuple[Distribution, Need]]:
    for item in packages.items:
        if item.wheel_tags:
            yield item, need_of(item.wheel_tags)


def wheel_file_name(item: Distribution, build: str) -> str | None:
    """Return the name of the file that was installed: ``torch-2.6.0-cp311-cp311-linux_x86_64.whl``; None: not known.

    Several tags are folded back as wheels fold them: ``py2.py3-none-any``.
    """
    parsed = [tag.split("-", 2) for tag in item.wheel_tags if tag.count("-") >= 2]
    if not parsed:
        return None
    columns = [".".join(dict.fromkeys(row[column] for row in parsed)) for column in range(3)]
    stem = re.sub(r"[-_.]+", "_", item.name)
    return "-".join([stem, item.version, *([build] if build else []), *columns]) + ".whl"
