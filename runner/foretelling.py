"""What a micro-batch of a plan takes by arithmetic, in the process that trains; or the reason why that is not known."""

from __future__ import annotations

from typing import Any, Literal

from runner.estimate import MemoryRequest, estimate
from runner.model_shapes import UnknownArchitecture
from runner.plan import Plan
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
    profile, settings = plan.profile, plan.settings
    unknown = _unknown(plan, model)
    if unknown is not None:
        raise NotForetold(unknown)
    config, section = model.config, profile.model
    token_level = section.task == "token-classification"
    where: Literal["cuda", "cpu"] = "cuda" if (device or settings.device) == "cuda" else "cpu"
    request = MemoryRequest(
        config=config.to_dict(), task="classification" if token_level else section.task,
        num_labels=max(2, int(getattr(config, "num_labels", 2))), batch_size=samples, sequence_length=length,
        precision=settings.precision, optimizer="adamw" if settings.fused else "adamw-loop",  # type: ignore[arg-type]
        attention="eager" if getattr(config, "_attn_implementation", "") == "eager" else "auto",
        gradient_checkpointing=section.gradient_checkpointing if recomputes is None else recomputes,
        lora_rank=section.lora.rank if section.lora else 0,
        accumulation=max(1, profile.train.batch_size // samples), device=where,
        offload=settings.offload == "optimizer" and where == "cuda",
    )  # fmt: skip
    try:
        return estimate(request).allocated_bytes
    except UnknownArchitecture as error:
        raise NotForetold(error.problem) from error


def _unknown(plan: Plan, model: Any) -> Text | None:
    if plan.settings.compile:
        return t("compiled code keeps what it likes: its memory is measured, not foretold")
    if plan.profile.train.freeze:
        return t("some weights stand still: the memory of such a run is measured, not foretold")
    if not hasattr(getattr(model, "config", None), "to_dict"):
        return t("the model has no configuration: its memory is measured, not foretold")
    return None
