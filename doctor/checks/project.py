"""Checks on what lies in the working directory and would act on the environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import Requirement

from doctor.checks import check, evidence
from doctor.checks.requirements import applies, marker_environment, normal, read
from doctor.checks.versions import parse, pip, public, ranges, torch_version, within
from doctor.model import (
    Environment,
    Evidence,
    Finding,
    Host,
    Packages,
    Project,
    Python,
    Reading,
    Text,
    Torch,
    t,
)
from doctor.tables import load


@check("requirements-would-replace-torch")
def project_keeps_the_torch(
    project: Project, torch: Torch, packages: Reading[Packages], python: Reading[Python], host: Reading[Host],
    environment: Reading[Environment],
) -> Iterator[Finding]:  # fmt: skip
    """Would installing the requirements in the working directory replace the torch that is installed?"""
    guard = environment.value.get("PIP_CONSTRAINT") if environment.value else None
    if guard and guard.endswith("/rundoctor/constraints.txt"):
        return  # our own guard (fixes/guard.py): pip refuses whatever would replace it
    known = marker_environment(python.value, host.value)
    have = torch.version or (packages.value.version("torch") if packages.value else None)
    parsed = parse(have)
    if not have or parsed is None:
        return
    for index, row in enumerate(project.requirements):
        requirement = read(row.line)
        if requirement is None or not applies(requirement.marker, known):
            continue
        wanted = _torch_it_brings(requirement)
        if wanted and within(have, wanted) is False:
            yield Finding(
                id="requirements-would-replace-torch",
                level="warn",
                subject=row.file or row.line,
                title=t(
                    "{line} in {file} would replace the installed torch {have} by {wanted}",
                    line=row.line.strip(),
                    file=row.file,
                    have=have,
                    wanted=f"torch{wanted}",
                ),
                evidence=(
                    Evidence(fact=f"project.requirements[{index}].line", value=row.line),
                    *evidence(torch__version=have),
                ),
                advice=t(
                    'Install the rest and keep this torch: take that line out, then echo "torch=={version}" > keep.txt and {pip} install -r {file} -c keep.txt',
                    version=public(have),
                    pip=pip(python),
                    file=row.file or "requirements.txt",
                ),
            )


def _torch_it_brings(requirement: Requirement) -> str | None:
    """Return the torch range that a requirement line asks for, itself or through an exact pin of a companion."""
    name, bounds = normal(requirement.name), str(requirement.specifier)
    if name == "torch":
        return bounds or None
    pins = [one.version for one in requirement.specifier if one.operator == "=="]
    if not pins:
        return None
    if name == "xformers":
        return next(
            (row["torch"] for row in load("extensions")["xformers"] if row["version"] == public(pins[0])),
            None,
        )
    if name == "torchvision":
        rows = load("torch_wheels")["release"]
        mates = [row["version"] for row in rows if row["torchvision"] == public(pins[0])]
        return f"=={mates[0]}" if len(mates) == 1 and within(pins[0], "<0.29.1") else None
    return None


@check("python-version-no-wheel")
def python_has_wheels(
    project: Project, python: Python, host: Reading[Host], torch: Reading[Torch], packages: Reading[Packages]
) -> Iterator[Finding]:
    """Do the pinned torch and transformers have wheels for this Python on this platform?"""
    version = parse(python.version)
    if version is None:
        return
    ours = f"{version.major}.{version.minor}"
    platform = (host.value.wheel_platform if host.value else None) or ""
    for index, row in enumerate(project.requirements):
        requirement = read(row.line)
        if requirement is None or not requirement.specifier:
            continue
        name = normal(requirement.name)
        have = (
            torch_version(torch, packages)
            if name == "torch"
            else packages.value.version(name)
            if packages.value
            else None
        )
        if have and within(have, str(requirement.specifier)):
            continue
        pythons = _pythons_of(name, str(requirement.specifier), platform, ours)
        if pythons:
            yield Finding(
                id="python-version-no-wheel",
                level="fail",
                subject=name,
                title=t(
                    "{line} has no wheel for Python {python} on {platform}; it has them for Python {pythons}",
                    line=row.line.strip(),
                    python=ours,
                    platform=platform or "Linux",
                    pythons=pythons,
                ),
                evidence=(
                    Evidence(fact=f"project.requirements[{index}].line", value=row.line),
                    *evidence(python__version=python.version, host__wheel_platform=platform or None),
                ),
                advice=_python_advice(name, ours, pythons, platform),
            )


def _pythons_of(name: str, bounds: str, platform: str, ours: str) -> str:
    """Return the Pythons that the releases within ``bounds`` have wheels for, when ours is none of them; else empty.

    Bounds that a release newer than the table could meet say nothing of a Python that is too new.
    """
    if name == "transformers":
        return _pythons_of_transformers(bounds, ours)
    field = {"torch": "version", "torchvision": "torchvision", "torchaudio": "torchaudio", "tokenizers": "version"}.get(name)  # fmt: skip
    if field is None:
        return ""
    plain = re.sub(
        r"\+[\w.]+", "", bounds
    )  # ==1.13.1+cu117: the build does not change for which Pythons there are wheels
    table = load("torch_wheels")["tokenizers" if name == "tokenizers" else "release"]
    rows = [row for row in table if row[field] and within(row[field], plain)]
    spans = [(row["python_min"], _newest_python(row, platform)) for row in rows]
    if not spans or any(_key(low) <= _key(ours) <= _key(high) for low, high in spans):
        return ""
    too_old = all(_key(ours) < _key(low) for low, _ in spans)
    if _open_above(bounds) and not too_old:
        return ""
    low, high = min((low for low, _ in spans), key=_key), max((high for _, high in spans), key=_key)
    return f"{low}+" if _open_above(bounds) else f"{low} - {high}"


def _newest_python(row: dict[str, str], platform: str) -> str:
    return (
        row.get("python_max_other", row["python_max"])
        if platform.startswith(("win", "macos"))
        else row["python_max"]
    )


def _pythons_of_transformers(bounds: str, ours: str) -> str:
    rows = [row for row in load("transformers")["minor"] if within(row["version"], bounds)]
    floors = {row["requires_python"] for row in rows if row["requires_python"]}
    if len(floors) != 1 or len(rows) == 0 or any(not row["requires_python"] for row in rows):
        return ""
    floor = floors.pop()
    return floor if within(f"{ours}.99", floor) is False else ""


def _open_above(bounds: str) -> bool:
    wanted = ranges(bounds)
    return wanted is not None and "9999.0" in wanted


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _python_advice(name: str, ours: str, pythons: str, platform: str) -> Text:
    rows = load("torch_wheels")["release"]
    fitting = [
        row["version"]
        for row in rows
        if _key(row["python_min"]) <= _key(ours) <= _key(_newest_python(row, platform))
    ]
    if name == "torch" and fitting:
        return t(
            "Make an environment with Python {pythons}, or take a torch that has wheels for Python {python}: {first} to {last}. It is not the network or the index.",
            pythons=pythons,
            python=ours,
            first=fitting[0],
            last=fitting[-1],
        )
    return t(
        "Make an environment with Python {pythons}. It is not the network or the index.", pythons=pythons
    )
