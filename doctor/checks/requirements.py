"""Requirement lines and their markers, read for the examined interpreter. Pure; shared by the checks that ask of them.

Markers are evaluated for the *examined* interpreter and machine. What cannot be known of it leaves a requirement unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement

from doctor.checks.versions import parse, within
from doctor.model import Distribution, Host, Python


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
