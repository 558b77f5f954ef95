"""Checks on pairs of packages that pip accepts side by side and that fail together. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from doctor.checks import check, evidence
from doctor.checks.hugging_face import row_of
from doctor.checks.versions import below, install, installed, pip, torch_version, within
from doctor.model import Finding, Level, Packages, Python, Reading, Torch, Workload, ok, t
from doctor.tables import load


def _version(packages: Packages, torch: Reading[Torch], name: str) -> str | None:
    return torch_version(torch, ok(packages)) if name == "torch" else packages.version(name)


@check(
    "accelerate-transformers-mismatch", "peft-transformers-mismatch", "peft-accelerate-mismatch", "dependent-library-too-old"
)  # fmt: skip
def pairs_work_together(
    packages: Packages, torch: Reading[Torch], python: Reading[Python], workload: Reading[Workload]
) -> Iterator[Finding]:
    """Are two packages installed side by side that are known to fail together?"""
    said = set()
    for pair in load("companions")["pair"]:
        (a, a_bounds), (b, b_bounds) = pair["a"], pair["b"]
        a_have, b_have = _version(packages, torch, a), _version(packages, torch, b)
        if not (a_have and b_have and within(a_have, a_bounds) and within(b_have, b_bounds)):
            continue
        if frozenset((a, b)) in said:
            continue
        level = _level(pair, workload)
        said.add(frozenset((a, b)))
        yield Finding(
            id=pair["finding"],
            level=level,
            subject=b if pair["finding"].startswith("accelerate") else a,
            title=t(
                "{a} {a_have} does not work with {b} {b_have}: {raises}",
                a=a,
                a_have=a_have,
                b=b,
                b_have=b_have,
                raises=pair["raises"],
            ),
            evidence=installed(packages, a, b) + (evidence(torch__version=b_have) if b == "torch" else ()),
            advice=t(
                "Install a version that fits: {command}",
                command=install(python, *pair["mend"], torch=_version(packages, torch, "torch")),
            )
            if pair["mend"]
            else t("Do without {name}: {pip} uninstall {name}", name=a, pip=pip(python)),
        )
    if frozenset(("transformers", "accelerate")) not in said:
        yield from _accelerate_floor(packages, python)


def _level(pair: dict[str, Any], workload: Reading[Workload]) -> Level:
    """Return the pair's level; a pair that shows only with one training argument is a note until that is known."""
    level: Level = "warn" if pair["confidence"] == "memory" else pair["level"]
    if "when" in pair:
        value = workload.value.training_args.get(pair["when"]) if workload.value else None
        return level if isinstance(value, int) and value > 1 else "note"
    return level


def _accelerate_floor(packages: Packages, python: Reading[Python]) -> Iterator[Finding]:
    transformers, have = packages.version("transformers"), packages.version("accelerate")
    row = row_of(transformers) if transformers else None
    if not (row and have and row["accelerate_min"] and below(have, row["accelerate_min"])):
        return
    yield Finding(
        id="accelerate-transformers-mismatch",
        level="fail",
        subject="accelerate",
        title=t(
            "the Trainer of transformers {transformers} demands accelerate {floor} or newer, {have} is installed",
            transformers=transformers or "",
            floor=row["accelerate_min"],
            have=have,
        ),
        evidence=installed(packages, "transformers", "accelerate"),
        advice=t(
            "Install a version that fits: {command}",
            command=install(python, f"accelerate>={row['accelerate_min']}", torch=packages.version("torch")),
        ),
    )


@check("numpy2-torch-abi")
def torch_takes_numpy(
    packages: Packages, torch: Reading[Torch], python: Reading[Python]
) -> Iterator[Finding]:
    """Was the installed torch built for the installed numpy's major?"""
    found, numpy = torch_version(torch, ok(packages)), packages.version("numpy")
    if not (found and numpy and below(found, "2.3") and within(numpy, ">=2")):
        return
    yield Finding(
        id="numpy2-torch-abi",
        level="fail",
        subject="numpy",
        title=t(
            "torch {torch} was built for NumPy 1, numpy {numpy} is installed: tensor.numpy() and from_numpy fail (Numpy is not available)",
            torch=found,
            numpy=numpy,
        ),
        evidence=evidence(torch__version=found) + installed(packages, "numpy"),
        advice=t("Take a NumPy 1: {command}", command=install(python, "numpy<2", torch=found)),
    )
