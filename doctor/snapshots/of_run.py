"""What a run was told and what it read, as part of a snapshot: settings, seeds, variables, data fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from doctor.model import DataFingerprint, KeptProof, Provenance, RunSettings, t
from doctor.probes.data_prints import fingerprint
from doctor.proof_file import read_record
from runner.plan import Plan, PlanError, decode_plan
from runner.rundir import RunDir

Scalar = str | int | float | bool | None


def run_provenance(known: Provenance, run: RunDir) -> Provenance:
    """Return ``known`` with the settings of ``run`` and fingerprints of its data; what cannot be read is said."""
    try:
        plan = decode_plan(run.plan.read_bytes())
    except (OSError, PlanError) as error:
        why = error.problem if isinstance(error, PlanError) else t("{path} could not be read: {error}", path=str(run.plan), error=error.strerror or "")  # fmt: skip
        return msgspec.structs.replace(known, unread={**known.unread, "run": why})
    settings = msgspec.structs.replace(settings_of(plan), proof=proof_of(run))
    return msgspec.structs.replace(known, run=settings, data=(*known.data, *_data_of(plan, run)))


def proof_of(run: RunDir) -> KeptProof | None:
    """Return what was proved of the run."""
    record = read_record(run.path / "proof.json")
    if record is None or record.level == "none":
        return None
    place = record.place
    return KeptProof(
        steps=record.steps, sha256=f"sha256:{record.sha256}", plan_sha256=f"sha256:{record.plan_digest}", made_at=record.made_at, level=record.level,
        device=place.device, driver=place.driver, torch=place.torch, threads=place.threads,
    )  # fmt: skip


def settings_of(plan: Plan) -> RunSettings:
    """Return what a plan told its run, flat: ``train.lr`` -> 3e-05."""
    return RunSettings(
        name=plan.name,
        plan_sha256=f"sha256:{plan.digest}" if plan.digest else "",
        profile=dict(flat(msgspec.to_builtins(plan.profile))),
        settings={**dict(flat(msgspec.to_builtins(plan.settings)))},
        seeds=plan.seeds,
        environment=plan.environment,
    )


def flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Scalar]]:
    """Return the leaves of nested tables under dotted names; a list as JSON."""
    rows: list[tuple[str, Scalar]] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            rows += flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            rows.append((f"{prefix}{key}", msgspec.json.encode(value).decode()))
        else:
            rows.append((f"{prefix}{key}", value))
    return rows


def _data_of(plan: Plan, run: RunDir) -> list[DataFingerprint]:
    data = plan.profile.data
    named = [*_listed(data.train), *_listed(data.eval)]
    found = [_address(name) if "://" in name else fingerprint(Path(name)) for name in named]
    return [*found, fingerprint(run.data)] if run.data.is_dir() else found


def _address(name: str) -> DataFingerprint:
    return DataFingerprint(path=name, why=t("it is an address: what is there now may be other data"))


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
