"""Checks on names and arguments that a run used and that the installed release does not have (any more). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from doctor.checks import check, evidence
from doctor.checks.versions import below, installed, within
from doctor.model import Finding, Incident, Packages, Reading, Workload, t
from doctor.tables import load
from doctor.tables.removed_names import removed_name

# ImportError: cannot import name 'AdamW' from 'transformers' (/env/.../__init__.py)
_CANNOT_IMPORT = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
# AttributeError: module 'transformers' has no attribute 'AdamW' | module 'numpy' has no attribute 'float'.
_NO_ATTRIBUTE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
# ModuleNotFoundError: No module named 'torch._six'
_NO_MODULE = re.compile(r"No module named '([\w.]+\.[\w.]+)'")


def _names_refused(incident: Incident) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of what a log says could not be imported or found."""
    for place, line in enumerate(incident.log_lines):
        if match := _CANNOT_IMPORT.search(line):
            yield place, f"{match[2]}.{match[1]}"
        elif match := _NO_ATTRIBUTE.search(line):
            yield place, f"{match[1]}.{match[2]}"
        elif match := _NO_MODULE.search(line):
            yield place, match[1]


def _of_a_group(name: str) -> dict[str, str] | None:
    row = removed_name(name)
    return row._asdict() if row and row.name == name else None


@check("removed-import")
def names_are_still_there(packages: Packages, incident: Incident) -> Iterator[Finding]:
    """Did the run fail for a name that the installed release no longer has?"""
    said: set[str] = set()
    for place, name in _names_refused(incident):
        row = next((row for row in load("api_changes")["name"] if name == row["name"]), None) or _of_a_group(
            name
        )
        distribution = name.partition(".")[0].replace("_", "-")
        have = packages.version(distribution)
        if row is None or name in said or not have or not row.get("gone") or below(have, row["gone"]):
            continue
        if row.get("back") and within(have, f">={row['back']}"):
            continue
        said.add(name)
        yield Finding(
            id="removed-import",
            level="fail",
            subject=name,
            title=t(
                "{name} is gone since {package} {gone}; {version} is installed.",
                name=name,
                package=distribution,
                gone=row["gone"],
                version=have,
            ),
            evidence=installed(packages, distribution)
            + evidence(**{f"incident__log_lines[{place}]": incident.log_lines[place][:160]}),
            advice=t("Use {use}.", use=row["use"]),
        )


# TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


@check("removed-argument")
def arguments_are_still_taken(
    packages: Packages, workload: Reading[Workload], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Was the run given TrainingArguments that the installed transformers no longer takes?"""
    have = packages.version("transformers")
    run = workload.value
    read_from_script = bool(run and run.source)  # a script's own lines are named by lint
    given = set(run.training_args) if run and not read_from_script else set()
    lines = incident.value.log_lines if incident.value else ()
    given |= {match[1] for line in lines if (match := _UNEXPECTED.search(line)) and not read_from_script}
    known = load("training_arguments")["training_arguments"]
    for name in sorted(given & set(known)):
        last = known[name][1]
        following = next((one for one in load("training_arguments")["releases"] if last and Version(one) > Version(last)), None)  # fmt: skip
        if not have or following is None or not within(have, f">={following}"):
            continue
        yield Finding(
            id="removed-argument",
            level="fail",
            subject=name,
            title=t(
                "{function} no longer takes {name} in transformers {version} (last seen in {last}).",
                function="TrainingArguments",
                name=name,
                version=have,
                last=last,
            ),
            evidence=installed(packages, "transformers"),
            advice=t("Write {name}.", name=_SUCCESSOR[name]) if name in _SUCCESSOR else t("Remove it."),
        )


_SUCCESSOR = {"evaluation_strategy": "eval_strategy", "no_cuda": "use_cpu", "per_gpu_train_batch_size": "per_device_train_batch_size", "per_gpu_eval_batch_size": "per_device_eval_batch_size", "adafactor": 'optim="adafactor"'}  # fmt: skip
