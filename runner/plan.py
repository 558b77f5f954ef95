"""A :class:`Profile` made into a :class:`Plan` for one machine: every choice settled, each with its reason.

Pure: the machine is handed in as :class:`MachineFacts`. The trainer reads ``plan.json`` and nothing else, so
a plan is complete, and two plans with one digest train the same numbers on the same machine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from runner.choices import MachineFacts, Settings, settle
from runner.decisions import Decision
from runner.profile import Profile
from runner.seeds import PURPOSES, seed_for
from runner.text import Text, t

__all__ = ["Decision", "MachineFacts", "Plan", "PlanError", "decode_plan", "encode_plan", "make_plan"]

SCHEMA = 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs to know. ``plan.json`` is this record."""

    schema: int = SCHEMA
    name: str
    made_at: str
    """ISO 8601, handed in by whoever makes the plan."""
    profile: Profile
    machine: MachineFacts
    settings: Settings
    decisions: tuple[Decision, ...]
    seeds: dict[str, int]
    """One a purpose, each hashed from the profile's seed: no purpose's draws shift another's."""
    environment: dict[str, str]
    """Variables that must be set before the interpreter starts."""
    digest: str = ""
    """SHA-256 of all of the above but ``made_at``."""

    @property
    def run_name_base(self) -> str:
        """The profile's name: what a run's directory name begins with."""
        return self.profile.run.name


class PlanError(ValueError):
    """A plan file that cannot be used; ``problem`` says why and what to do."""

    def __init__(self, problem: Text) -> None:
        self.problem = problem
        super().__init__(str(problem))


def make_plan(profile: Profile, machine: MachineFacts, now: str) -> Plan:
    """Settle every open choice of ``profile`` for ``machine``."""
    settings, decisions = settle(profile, machine)
    plan = Plan(
        name=profile.run.name,
        made_at=now,
        profile=profile,
        machine=machine,
        settings=settings,
        decisions=tuple(decisions),
        seeds={purpose: seed_for(profile.run.seed, purpose) for purpose in PURPOSES},
        environment=environment_of(profile, machine, settings),
    )
    # Through JSON once, so that what is read back (8 cores as 8.0) has the digest of what was written.
    plan = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    return msgspec.structs.replace(plan, digest=digest_of(plan))


def environment_of(profile: Profile, machine: MachineFacts, settings: Settings) -> dict[str, str]:
    """Return the variables that count only when set before Python starts: hash seed, threads, cuBLAS."""
    variables = {
        "PYTHONHASHSEED": str(seed_for(profile.run.seed, "python-hash") % 2**32),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(settings.threads),
        "MKL_NUM_THREADS": str(settings.threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    if settings.device == "cpu":
        # Rented cores are shared: a thread that spins while it waits takes time from the one it waits for.
        variables["OMP_WAIT_POLICY"] = "PASSIVE"
    if not (profile.model.hub or profile.data.hub):
        variables["HF_HUB_OFFLINE"] = "1"
    if settings.device == "cuda":
        # torch 2.9.x ignores expandable_segments under the new name, PYTORCH_ALLOC_CONF.
        variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        if profile.train.deterministic:
            variables["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    return variables


def digest_of(plan: Plan) -> str:
    """Return the SHA-256 of what decides the numbers: the whole plan without when it was made."""
    return _digest_of_tree(msgspec.json.decode(msgspec.json.encode(plan)))


def _digest_of_tree(tree: dict[str, Any]) -> str:
    """The digest is of the file as it was written, so that a plan outlives settings that came after it."""
    bare = {name: value for name, value in tree.items() if name not in ("made_at", "digest")}
    return hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()


def encode_plan(plan: Plan) -> bytes:
    """Return ``plan.json``."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"


def decode_plan(data: bytes | str) -> Plan:
    """Read ``plan.json``.

    Raises:
        PlanError: not a plan, of a newer schema, or changed since it was made.
    """
    try:
        raw: Any = msgspec.json.decode(data)
        if isinstance(raw, dict) and isinstance(raw.get("schema"), int) and raw["schema"] > SCHEMA:
            schema = raw["schema"]
            raise PlanError(
                t("plan.json has schema {schema}, newer than this runner: update rundoctor", schema=schema)
            )
        if isinstance(raw, dict) and raw.get("kind") == "command":
            raise PlanError(t("this run is a command of your own, not planned from a profile"))
        plan = msgspec.convert(raw, Plan)
    except msgspec.MsgspecError as error:
        raise PlanError(t("plan.json is not a plan: {why}", why=str(error))) from error
    if plan.digest != _digest_of_tree(raw):
        raise PlanError(
            t("plan.json was changed after it was made (its digest does not fit); make a new run")
        )
    return plan
