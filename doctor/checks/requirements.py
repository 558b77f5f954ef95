"""Checks on requirements: those of what is installed, and those that lie in the working directory. Pure.

Markers are evaluated for the *examined* interpreter and machine. What cannot be known of it leaves a requirement unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement

from doctor.checks import check, evidence
from doctor.checks.versions import installed, parse, pip, within
from doctor.model import (
    Distribution,
    Finding,
    Host,
    Packages,
    Python,
    Reading,
    t,
)

CORE = (
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "datasets",
    "peft",
    "safetensors",
    "huggingface-hub",
)
"""What a training run imports: a broken requirement of these is said, of others only counted."""


ABSENT = "not installed"


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def marker_environment(python: Python | None, host: Host | None) -> dict[str, str]:
    """Return what is known of the examined interpreter under the names of PEP 508; what is unknown is left out."""
    known: dict[str, str] = {"extra": ""}
    version = parse(python.version if python else None)
    if version and python and python.version:
        known |= {"python_version": f"{version.major}.{version.minor}", "implementation_name": "cpython"}
        known |= {"platform_python_implementation": "CPython"}
        if python.version.count(".") >= 2:
            known |= {"python_full_version": python.version, "implementation_version": python.version}
    if host and not host.wheel_platform:
        known |= {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    if host and host.arch:
        known["platform_machine"] = host.arch
    return known


def applies(marker: Marker | None, known: dict[str, str]) -> bool | None:
    """Return whether ``marker`` holds on the examined machine; None when it asks for something unknown."""
    if marker is None:
        return True
    text = str(marker)
    asked = {
        name
        for name in (
            "python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system",
            "platform_version", "platform_machine", "platform_python_implementation", "implementation_name",
            "implementation_version",
        )
        if name in text
    }  # fmt: skip
    if not asked <= set(known):
        return None
    return marker.evaluate(
        dict(known)
    )  # every name it asks for is given, so nothing comes from our own machine


# torch==1.13.1+cu117 --extra-index-url https://... | tqdm  # a bar
_OPTIONS = re.compile(r"\s+(?:#|--?[A-Za-z]).*$")


def read(line: str) -> Requirement | None:
    try:
        return Requirement(_OPTIONS.sub("", line).strip())
    except InvalidRequirement:
        return None


# filelock | tokenizers (>=0.22,<0.24) | httpx[http2]<1.0,>=0.23 ; python_version < "3.12"
_PLAIN = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?\s*([<>=!~][^;()]*)?\)?\s*(?:;.*)?")


def _is_met(line: str, versions: dict[str, str]) -> bool:
    """Whether ``line`` is met whatever its marker says. Nearly every one is, and parsing each costs too much."""
    match = _PLAIN.fullmatch(line)
    if match is None or normal(match[1]) not in versions:
        return False
    have = versions[normal(match[1])]
    return not (have and match[2]) or within(have, match[2].strip()) is not False


def declared(item: Distribution, known: dict[str, str], versions: dict[str, str]) -> Iterator[Requirement]:
    """Yield the requirements of ``item`` that certainly apply here and are not met; those of extras do not apply."""
    for line in item.requires_dist or ():
        if "extra" in line.partition(";")[2] or _is_met(line, versions):
            continue
        requirement = read(line)
        if requirement and "extra" not in str(requirement.marker) and applies(requirement.marker, known):
            yield requirement


_MATES = ("torchvision", "torchaudio", "xformers")
# Judged by a check of their own.
_ELSEWHERE = (
    "triton",
    "cuda-toolkit",
    "cuda-bindings",
    "cuda-pathfinder",
    "setuptools",
    "pip",
    "wheel",
)
_CHECKED_BY_TRANSFORMERS = ("tokenizers", "huggingface-hub", "numpy", "safetensors", "regex", "requests", "tqdm", "filelock", "packaging")  # fmt: skip


@check("declared-requirement-not-met")
def requirements_of_the_installed_are_met(
    packages: Packages, python: Reading[Python], host: Reading[Host]
) -> Iterator[Finding]:
    """Are the requirements that installed packages declare met (what ``pip check`` asks)?"""
    known = marker_environment(python.value, host.value)
    first = {item.name: item for item in reversed(packages.items)}
    versions = {name: item.version for name, item in first.items()}
    of_others = []
    for item in packages.items:
        if first[item.name] is not item:
            continue
        for requirement in declared(item, known, versions):
            name = normal(requirement.name)
            if name in _ELSEWHERE or name.startswith("nvidia-"):
                continue
            if name == "torch" and item.name in _MATES:
                continue
            if item.name == "transformers" and name in _CHECKED_BY_TRANSFORMERS and packages.get(name):
                continue
            trouble = _trouble(packages, name, requirement)
            pins_torch = name == "torch" and "==" in str(requirement.specifier)
            serious = trouble == ABSENT or _below_its_floor(packages, name, requirement)
            if trouble and ((item.name in CORE and serious) or pins_torch):
                yield _unmet(packages, python, item, requirement, trouble)
            elif trouble:
                of_others.append(
                    f"{item.name} {item.version}: {requirement.name}{requirement.specifier} ({trouble})"
                )
    if of_others:
        yield Finding(
            id="declared-requirement-not-met",
            level="note",
            subject=f"{len(of_others)}",
            title=t(
                "{count} {count:requirement|requirements} of other packages {count:is|are} not met, as pip check would list; often harmless: {first}",
                count=len(of_others),
                first="; ".join(of_others[:3]),
            ),
            evidence=evidence(packages__complete=packages.complete),
            advice=t(
                "See the list with {pip} check; change something only if one of these packages fails.",
                pip=pip(python),
            ),
        )


def _trouble(packages: Packages, name: str, requirement: Requirement) -> str:
    have = packages.version(name)
    if have:
        return have if within(have, str(requirement.specifier)) is False else ""
    return ABSENT if packages.is_missing(name) and packages.complete else ""


def _below_its_floor(packages: Packages, name: str, requirement: Requirement) -> bool:
    """Whether a lower bound or an exact pin is missed; a mere upper bound is often only caution."""
    have = packages.version(name)
    floors = [str(one) for one in requirement.specifier if one.operator in (">=", ">", "==", "~=", "===")]
    return any(within(have, one) is False for one in floors)


def _unmet(
    packages: Packages, python: Reading[Python], item: Distribution, requirement: Requirement, trouble: str
) -> Finding:
    wanted = f"{requirement.name}{requirement.specifier}"
    return Finding(
        id="declared-requirement-not-met",
        level="warn",
        subject=normal(requirement.name),
        title=t(
            "{name} {version} needs {wanted}, which is not installed",
            name=item.name,
            version=item.version,
            wanted=wanted,
        )
        if trouble == ABSENT
        else t(
            "{name} {version} needs {wanted}, {have} is installed",
            name=item.name,
            version=item.version,
            wanted=wanted,
            have=trouble,
        ),
        evidence=installed(packages, item.name, normal(requirement.name)),
        advice=t('{pip} install "{wanted}"', pip=pip(python), wanted=wanted),
    )
