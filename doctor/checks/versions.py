"""Comparing versions as pip does, leniently: what cannot be read as a version is unknown, never older or newer."""

from __future__ import annotations

import shlex
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from doctor.model import Evidence, Packages, Python, Reading, Torch


@lru_cache(maxsize=4096)
def parse(text: str | None) -> Version | None:
    """Return ``text`` as a version; None when there is none or it is not one (a git hash, ``unknown``)."""
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


@lru_cache(maxsize=4096)
def ranges(text: str) -> SpecifierSet | None:
    """Return ``text`` (``>=0.21,<0.22``) as a set of versions; None when it is not one."""
    try:
        return SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return None


@lru_cache(maxsize=16384)
def within(version: str | None, bounds: str) -> bool | None:
    """Return whether ``version`` lies in ``bounds``; None when either cannot be read.

    A pre-release or an image builder's own version (``2.6.0a0+ecd3434604.nv25.01``) counts as the release it leads to,
    which is how the libraries themselves compare. A local part (``+cu124``) does not count unless ``bounds`` names one.
    """
    parsed, wanted = parse(version), ranges(bounds)
    if parsed is None or wanted is None:
        return None
    if parsed in wanted:
        return True
    return parsed.is_prerelease and Version(parsed.base_version) in wanted


def below(version: str | None, floor: str) -> bool | None:
    """Return whether ``version`` is older than ``floor``; None when either cannot be read."""
    parsed, least = parse(version), parse(floor)
    return None if parsed is None or least is None else Version(parsed.base_version) < least


def minor(version: str | None) -> str | None:
    """``2.6.0+cu124`` -> ``2.6``."""
    parsed = parse(version)
    return f"{parsed.major}.{parsed.minor}" if parsed else None


def public(version: str) -> str:
    """``2.6.0+cu124`` -> ``2.6.0``, which pip takes as met by either."""
    parsed = parse(version)
    return parsed.public if parsed else version


def local_cuda(version: str | None) -> str | None:
    """``0.20.1+cu124`` -> ``12.4``, ``+cpu`` -> empty; None when the version does not say."""
    tag = (version or "").partition("+")[2]
    if tag == "cpu":
        return ""
    digits = tag[2:].partition(".")[0]
    return (
        f"{digits[:-1]}.{digits[-1]}"
        if tag.startswith("cu") and digits.isdigit() and len(digits) > 1
        else None
    )


def major(version: str | None) -> str | None:
    """``12.4`` -> ``12``; None for None and for the empty string (no CUDA)."""
    return version.partition(".")[0] if version else None


def torch_version(torch: Reading[Torch], packages: Reading[Packages]) -> str | None:
    """Return the version of the torch that is imported, else of the one that is installed."""
    if torch.value and torch.value.version:
        return torch.value.version
    return packages.value.version("torch") if packages.value else None


def pip(python: Reading[Python]) -> str:
    """Return the pip command of the examined interpreter, to be pasted."""
    executable = python.value.executable if python.value else None
    return f"{shlex.quote(executable)} -m pip" if executable else "python -m pip"


def install(python: Reading[Python], *requirements: str, torch: str | None = None) -> str:
    """Return a pip command that installs ``requirements`` into the examined interpreter and keeps its torch."""
    frozen = (
        (f"torch=={public(torch)}",)
        if torch and not any(one.startswith("torch==") for one in requirements)
        else ()
    )
    return f"{pip(python)} install " + " ".join(shlex.quote(one) for one in (*requirements, *frozen))


def index_url(cuda: str | None) -> str:
    """Return the option that names the PyTorch index of a build (``12.4`` -> whl/cu124, empty -> whl/cpu)."""
    if cuda is None:
        return ""
    build = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    return f" --index-url https://download.pytorch.org/whl/{build}"


def installed(packages: Packages, *names: str) -> tuple[Evidence, ...]:
    """Return the evidence that ``names`` are installed, each with its version and its place in the facts."""
    rows = []
    for name in names:
        for index, item in enumerate(packages.items):
            if item.name == name:
                rows.append(Evidence(fact=f"packages.items[{index}].version", value=f"{name} {item.version}"))
                break
    return tuple(rows)
