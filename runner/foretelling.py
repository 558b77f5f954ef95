"""What a micro-batch of a plan takes by arithmetic, in the process that trains; or the reason why that is not known."""

from __future__ import annotations

from typing import Any

import msgspec

from runner.estimate import estimate
from runner.model_shapes import UnknownArchitecture
from runner.plan import Plan
from runner.step_request import Device, step_request
from runner.text import Text, t


class NotForetold(Exception):  # noqa: N818 - it is what it says
    """The arithmetic does not know such a run. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def foretold_bytes(
    plan: Plan, model: Any, samples: int, length: int, recomputes: bool | None = None, device: str = ""
) -> int:
    """Return the bytes of tensors that a micro-batch of ``samples`` x ``length`` tokens takes at its worst.

    ``recomputes``: activations, instead of what the profile says. ``device``: instead of the plan's.

    Raises:
        NotForetold: the architecture, or the way it is trained, is not known to the arithmetic.
    """
    unknown = _unknown(plan, model)
    if unknown is not None:
        raise NotForetold(unknown)
    where: Device = "cuda" if (device or plan.settings.device) == "cuda" else "cpu"
    labels = max(2, int(getattr(model.config, "num_labels", 2)))
    precision: Any = plan.settings.precision
    request = step_request(
        plan, model.config.to_dict(), labels, samples, length, where, precision, recomputes
    )
    if getattr(model.config, "_attn_implementation", "") == "eager":
        request = msgspec.structs.replace(request, attention="eager")
    try:
        return estimate(request).allocated_bytes
    except UnknownArchitecture as error:
        raise NotForetold(error.problem) from error


def _unknown(plan: Plan, model: Any) -> Text | None:
    if plan.settings.compile:
        return t("compiled code keeps what it likes: its memory is measured, not foretold")
    if not hasattr(getattr(model, "config", None), "to_dict"):
        return t("the model has no configuration: its memory is measured, not foretold")
    return None
