"""The proof that a snapshot keeps of its run, repeated in this environment: the same steps trained once and compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable

from doctor.launch import LaunchError
from doctor.model import KeptProof, Snapshot, Text, t
from doctor.probes.target import BadPython
from doctor.prove import find_proof, proof_plan, trace_once
from doctor.snapshots.verify import ProofCheck
from runner.plan import PlanError
from runner.profile import ProfileError


def repeat_proof(
    reference: Snapshot, here: Snapshot, name: str, python: str, tell: Callable[[Text], None]
) -> ProofCheck:
    """Train the steps that ``reference`` keeps a proof of, as the run or profile ``name`` says, with ``python``."""
    provenance = reference.facts.provenance.value
    kept = provenance.run.proof if provenance and provenance.run else None
    if kept is None:
        return ProofCheck(why=t("the snapshot holds no proof: `doctor prove RUN`, then `doctor snapshot export --from-run RUN`"))  # fmt: skip
    try:
        plan, _, _ = find_proof(name, python, ())
    except (LaunchError, BadPython) as error:
        return _not_compared(kept, error.text)
    except (PlanError, ProfileError, OSError) as error:
        return _not_compared(kept, t("{name} has no plan that can be trained again: {error}", name=name, error=str(error)))  # fmt: skip
    if f"sha256:{plan.digest}" != kept.plan_sha256:
        return _not_compared(
            kept, t("{name} is not the run that was proved: its plan is another one", name=name)
        )
    tell(t("{steps} {steps:step|steps} are trained for the proof", steps=kept.steps))
    try:
        trace = trace_once(proof_plan(plan, kept.steps), here, python)
    except LaunchError as error:
        return _not_compared(kept, error.text)
    return ProofCheck(steps=kept.steps, expected=kept.sha256, found=f"sha256:{trace.sha256}")


def _not_compared(kept: KeptProof, why: Text) -> ProofCheck:
    return ProofCheck(steps=kept.steps, expected=kept.sha256, why=why)
