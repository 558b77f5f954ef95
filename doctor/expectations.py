"""What a run was expected to take: memory of a card, and the operations of a token, from its plan. For holding against what it takes."""

from __future__ import annotations

from typing import Any

import msgspec

from doctor.model import Snapshot
from doctor.tables.gpus import row_of
from runner.rundir import RunDir
from runner.text import Text, t


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: what could not be worked out, and the reason."""

    memory_low_bytes: int | None = None
    memory_peak_bytes: int | None = None
    """Of one card, as ``doctor plan`` predicts it."""
    flops_per_token: float | None = None
    """Of a whole update: forward and backward, each once. What recomputation repeats is no work of the model."""
    why: Text | None = None


def expected_of(run: RunDir) -> Expected:
    """Return what a run was expected to take. Reads the run directory and the model's configuration; never raises for them."""
    from doctor.launch import LaunchError
    from doctor.machine import BadSnapshot, load_snapshot
    from doctor.model_config import NoConfig
    from runner.model_shapes import UnknownArchitecture
    from runner.plan import PlanError, decode_plan

    try:
        plan, snapshot = decode_plan(run.plan.read_bytes()), load_snapshot(run.snapshot)
    except PlanError as error:
        return Expected(why=error.problem)
    except (OSError, BadSnapshot) as error:
        return Expected(why=t("the run's plan or snapshot could not be read: {error}", error=str(error)))
    low, peak = _memory(snapshot)
    try:
        return Expected(memory_low_bytes=low, memory_peak_bytes=peak, flops_per_token=_flops(plan, snapshot))
    except (NoConfig, LaunchError) as error:
        why = error.text
    except UnknownArchitecture as error:
        why = error.problem
    return Expected(memory_low_bytes=low, memory_peak_bytes=peak, why=why)


def _memory(snapshot: Snapshot) -> tuple[int | None, int | None]:
    workload = snapshot.facts.workload.value
    return (workload.memory_needed_low_bytes, workload.memory_needed_bytes) if workload else (None, None)


def _flops(plan: Any, snapshot: Snapshot) -> float:
    from doctor.profile_step import config_of_plan, request_of_plan
    from doctor.roofline import model_flops
    from runner.estimate_parts import tokens
    from runner.model_shapes import shape_of

    request = request_of_plan(plan, config_of_plan(plan, snapshot))
    shape = shape_of(request.config, request.task, request.num_labels)
    return model_flops(request, shape) / tokens(request)


def mfu(
    expected: Expected, tokens_per_s: float | None, cards: list[dict[str, Any]], precision: str
) -> float | Text:
    """Return the model FLOPs utilisation, 0 to 1 (Chowdhery et al. 2022): the model's operations a second over what the
    cards could do, tokens of padding not counted; or why it cannot be told."""
    if not cards:
        return t("no GPU sample yet, or none here")
    if precision not in ("bf16", "fp16"):
        return t("only for bf16 and fp16: the table has the tensor cores' 16-bit rate")
    if tokens_per_s is None:
        return t("the run tells no tokens")
    if expected.flops_per_token is None:
        return expected.why or t("the model's operations are not known")
    rates = [float(row["tflops"]) if (row := row_of(str(card.get("name") or ""))) else 0.0 for card in cards]
    if not all(rates):
        return t(
            "the rate of {name} is not in the table", name=str(cards[rates.index(0.0)].get("name") or "?")
        )
    return expected.flops_per_token * tokens_per_s / (sum(rates) * 1e12)
