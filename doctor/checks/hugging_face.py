"""Checks on transformers and its neighbours: the floors and ranges that decide whether it can be imported. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from doctor.checks import check, evidence
from doctor.checks.versions import below, install, installed, minor, public, torch_version, within
from doctor.model import (
    Data,
    Environment,
    Finding,
    Incident,
    Level,
    Packages,
    Python,
    Reading,
    Torch,
    Workload,
    ok,
    t,
)
from doctor.tables import load


def _minors() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = load("transformers")["minor"]
    return rows


def row_of(version: str) -> dict[str, Any] | None:
    """Return the table's row of the minor that ``version`` belongs to; None when the table does not know that minor."""
    return next((row for row in _minors() if minor(row["version"]) == minor(version)), None)


def torch_floor(version: str) -> tuple[str, bool]:
    """Return the oldest torch that transformers ``version`` accepts, and whether that release itself is in the table.

    A release newer than the table asks for at least what the newest known one does. Empty: no floor.
    """
    row = row_of(version)
    if row:
        return row["torch_runtime_min"], True
    newest = _minors()[-1]
    return (newest["torch_runtime_min"], False) if below(newest["version"], public(version)) else ("", True)


def newest_for_torch(torch: str) -> str | None:
    """Return the bound (``<5.1``) below which transformers accepts ``torch``; None when every release does."""
    breaks = load("transformers")["import_breaks"]
    for row in _minors():
        floors = [row["torch_runtime_min"]]
        floors += [one["torch_min"] for one in breaks if within(row["version"], one["transformers"])]
        if any(floor and below(torch, floor) for floor in floors):
            return f"<{minor(row['version'])}"
    return None


@check("transformers-torch-too-old")
def transformers_accepts_torch(
    packages: Packages, torch: Reading[Torch], python: Reading[Python]
) -> Iterator[Finding]:
    """Is the installed torch new enough for the installed transformers?"""
    transformers, found = packages.version("transformers"), torch_version(torch, ok(packages))
    if not transformers or not found:
        return
    stated = torch.value.transformers_minimum if torch.value else None
    floor, known = (stated, True) if stated else torch_floor(transformers)
    proof = installed(packages, "transformers") + evidence(
        torch__version=found, torch__transformers_minimum=stated
    )
    if floor and below(found, floor):
        bound = newest_for_torch(found)
        yield Finding(
            id="transformers-torch-too-old",
            level="fail" if known else "warn",
            subject="transformers",
            title=t(
                "transformers {transformers} needs torch {floor} or newer, torch is {torch}: it switches PyTorch off and finds no model class",
                transformers=transformers,
                floor=floor,
                torch=found,
            ),
            evidence=proof,
            advice=t(
                "Take a transformers that accepts this torch: {command} (or another torch, at least {floor}, of a build that the driver runs).",
                command=install(python, f"transformers{bound or ''}", torch=found),
                floor=floor,
            ),
            cause_of=("torch-load-blocked-by-transformers",),
        )
        return
    for row in load("transformers")["import_breaks"]:
        if within(transformers, row["transformers"]) and below(found, row["torch_min"]):
            yield Finding(
                id="transformers-torch-too-old",
                level="fail",
                subject="transformers",
                title=t(
                    "transformers {transformers} does not import with torch {torch} although its metadata allows it: it uses {what}, which came with torch {floor}",
                    transformers=transformers,
                    torch=found,
                    what=row["what"],
                    floor=row["torch_min"],
                ),
                evidence=proof,
                advice=t(
                    "Take an earlier transformers: {command} (or torch {floor} or newer).",
                    command=install(
                        python, f"transformers<{row['transformers'].split(',')[0][2:]}", torch=found
                    ),
                    floor=row["torch_min"],
                ),
            )


# Due to a serious vulnerability issue in `torch.load` ... See ... CVE-2025-32434
_REFUSES = re.compile(
    r"CVE-2025-32434|serious vulnerability issue in .?torch\.load|upgrade torch to at least v2\.6"
)


def _unpickles(workload: Workload | None, data: Data | None, incident: Incident | None) -> bool:
    """Whether a pickled file is certainly to be loaded: named by the run, lying there, or refused in a log."""
    resumes = bool(
        workload and (workload.training_args.get("resume_from_checkpoint") or "resumes" in workload.features)
    )
    lies_there = any(
        file.kind == "checkpoint" and file.path.endswith((".bin", "optimizer.pt"))
        for file in (data.files if data else ())
    )
    return (
        resumes
        or lies_there
        or any(_REFUSES.search(line) for line in (incident.log_lines if incident else ()))
    )


def _only_safetensors(data: Data | None) -> bool:
    weights = [file.path for file in (data.files if data else ()) if file.kind == "checkpoint"]
    return bool(weights) and all(path.endswith(".safetensors") for path in weights)


@check("torch-load-blocked-by-transformers")
def transformers_loads_pickled_weights(
    packages: Packages,
    torch: Reading[Torch],
    python: Reading[Python],
    workload: Reading[Workload],
    data: Reading[Data],
    incident: Reading[Incident],
) -> Iterator[Finding]:
    """Will transformers refuse to load .bin weights and to resume checkpoints with this torch?"""
    transformers, found = packages.version("transformers"), torch_version(torch, ok(packages))
    if not (transformers and found and within(transformers, ">=4.52") and below(found, "2.6")):
        return
    stated = torch.value.transformers_minimum if torch.value else None
    if below(found, stated or torch_floor(transformers)[0] or "0"):
        return  # PyTorch is switched off altogether: transformers-torch-too-old says so
    certain = _unpickles(workload.value, data.value, incident.value)
    yield Finding(
        id="torch-load-blocked-by-transformers",
        level="fail" if certain else "note" if _only_safetensors(data.value) else "warn",
        subject="transformers",
        title=t(
            "transformers {transformers} refuses .bin weights, and resuming a checkpoint, with torch {torch} (below 2.6, CVE-2025-32434)",
            transformers=transformers,
            torch=found,
        ),
        evidence=installed(packages, "transformers") + evidence(torch__version=found),
        advice=t(
            "Weights as safetensors load as before. Else torch 2.6 or newer, or {command}.",
            command=install(python, "transformers<4.52", torch=found),
        ),
    )


def _declared(packages: Packages, name: str) -> dict[str, str]:
    """Return dependency -> range from the distribution's own metadata; requirements of extras are left out."""
    item = packages.get(name)
    found: dict[str, str] = {}
    for line in (item.requires_dist if item else None) or ():
        if ";" in line:  # it has a marker, as most have: not worth parsing
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None and requirement.specifier:
            found[requirement.name.lower().replace("_", "-")] = str(requirement.specifier)
    return found


def _table_ranges(version: str) -> dict[str, tuple[str, Level]]:
    """Return dependency -> (range, level) from the table.

    Patches of one minor can differ in their pins: another patch than the table's counts as certain only where the
    neighbouring minors agree (see :func:`_neighbours_agree`).
    """
    row = row_of(version)
    if row is None:
        return {}
    level: Level = "fail" if public(version) == row["version"] else "warn"
    return {name: (row[name], level) for name in ("tokenizers", "huggingface-hub", "numpy") if row[name]}


def _neighbours_agree(version: str, name: str, installed_version: str) -> bool:
    rows = _minors()
    place = next(index for index, row in enumerate(rows) if minor(row["version"]) == minor(version))
    around = rows[max(0, place - 1) : place + 2]
    return all(within(installed_version, row[name]) is False for row in around)


@check("transformers-requirement-out-of-range")
def transformers_accepts_neighbours(
    packages: Packages, python: Reading[Python], torch: Reading[Torch]
) -> Iterator[Finding]:
    """Do tokenizers, huggingface-hub and the others that transformers checks on import lie in its ranges?"""
    transformers = packages.version("transformers")
    if not transformers:
        return
    declared = _declared(packages, "transformers")
    wanted: dict[str, tuple[str, Level]] = {name: (bounds, "fail") for name, bounds in declared.items()}
    if not declared:
        wanted = _table_ranges(transformers)
    for name, since in load("transformers")["checked_at_import"].items():
        bounds, level = wanted.get(name, ("", "fail"))
        have = packages.version(name)
        if not bounds or not have or below(transformers, since) or within(have, bounds) is not False:
            continue
        if level == "warn" and _neighbours_agree(transformers, name, have):
            level = "fail"
        yield Finding(
            id="transformers-requirement-out-of-range",
            level=level,
            subject=name,
            title=t(
                "transformers {transformers} wants {name} {bounds}, {have} is installed: importing transformers fails",
                transformers=transformers,
                name=name,
                bounds=bounds,
                have=have,
            ),
            evidence=installed(packages, "transformers", name),
            advice=t(
                "Install a version that fits: {command}",
                command=install(python, f"{name}{bounds}", torch=torch_version(torch, ok(packages))),
            ),
        )


_SCRIPTS_GONE = "Dataset scripts are no longer supported"


@check("datasets-refuses-loading-scripts")
def datasets_runs_loading_scripts(
    packages: Packages, python: Reading[Python], workload: Reading[Workload], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Does the installed datasets still run the loading scripts that older data sets ship?"""
    have = packages.version("datasets")
    refused = any(_SCRIPTS_GONE in line for line in (incident.value.log_lines if incident.value else ()))
    used = bool(workload.value and "datasets" in workload.value.imports)
    if have and within(have, ">=4") and (used or refused):
        yield Finding(
            id="datasets-refuses-loading-scripts",
            level="fail" if refused else "note",
            subject="datasets",
            title=t(
                "datasets {have} no longer runs loading scripts: data sets that ship one cannot be loaded",
                have=have,
            ),
            evidence=installed(packages, "datasets"),
            advice=t(
                "Only if you meet 'Dataset scripts are no longer supported': {command} with trust_remote_code=True, or a converted copy of the data.",
                command=install(python, "datasets<4"),
            ),
        )


@check("silent-defaults-of-transformers-5")
def transformers_5_reports_nowhere(packages: Packages, workload: Workload) -> Iterator[Finding]:
    """Does the run lean on a default that transformers 5 changed without a word?"""
    have, arguments = packages.version("transformers"), workload.training_args
    if have and within(have, ">=5.0") and arguments and "report_to" not in arguments:
        yield Finding(
            id="silent-defaults-of-transformers-5",
            level="note",
            subject="report_to",
            title=t(
                "transformers {have} reports to no tracker unless report_to says so (4.x reported to every one installed), and loads weights in the checkpoint's own dtype",
                have=have,
            ),
            evidence=installed(packages, "transformers"),
            advice=t(
                'Say what you want: report_to="tensorboard" (or "wandb"), and dtype=torch.float32 in from_pretrained.'
            ),
        )


@check("cache-variable-not-read")
def cache_variable_is_read(packages: Packages, environment: Environment) -> Iterator[Finding]:
    """Is the cache placed by a variable that the installed transformers still reads?"""
    have, folder = packages.version("transformers"), environment.get("TRANSFORMERS_CACHE")
    moved = any(environment.get(name) for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"))
    if folder and have and within(have, ">=5.0") and not moved:
        yield Finding(
            id="cache-variable-not-read",
            level="warn",
            subject="TRANSFORMERS_CACHE",
            title=t(
                "TRANSFORMERS_CACHE={folder} is not read by transformers {have}: models are downloaded again to the default place",
                folder=folder,
                have=have,
            ),
            evidence=(
                *installed(packages, "transformers"),
                *evidence(environment__variables__TRANSFORMERS_CACHE=folder),
            ),
            advice=t("export HF_HUB_CACHE={folder}", folder=folder),
        )
