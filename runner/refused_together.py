"""What a plan asks for that several processes cannot do together, each with the way out. Pure: it is asked before a start and,
by the trainer, again.
"""

from __future__ import annotations

from collections.abc import Iterator

from runner.plan import Plan
from runner.text import Text, t


def refused_together(plan: Plan, processes: int, strategy: str) -> Text | None:
    """Return the first thing that does not go with so many processes; ``strategy``: how they share, as far as it is settled."""
    return next(_refused(plan, processes, strategy), None)


def _refused(plan: Plan, processes: int, strategy: str) -> Iterator[Text]:
    wanted = plan.profile.parallel.processes
    if wanted and wanted != processes:
        yield _another_number(wanted, plan.profile.parallel.machines, processes)
    if processes == 1:
        if plan.settings.precision == "fp16" and plan.settings.offload != "none":
            yield t("train.precision = \"fp16\" with train.offload: in one process the loss scaler looks at gradients on the card; take "
                    "bf16 or fp32, or several processes")  # fmt: skip
        return
    if plan.profile.model.device_map != "none":
        yield t("model.device_map spreads one process over several cards; it does not go with several processes. "
                "Start without --nproc, or take it out")  # fmt: skip
    if strategy == "ddp" and plan.settings.offload == "parameters":
        yield t("train.offload = \"parameters\" does not go with copies of the model in several processes: take "
                "parallel.strategy = \"fsdp\", or one process")  # fmt: skip
    if processes > plan.profile.train.batch_size:
        yield t("{count} processes share an update of {batch} samples: some would have nothing to do. Take fewer "
                "processes or a larger train.batch_size", count=processes, batch=plan.profile.train.batch_size)  # fmt: skip
    if strategy == "deepspeed":
        yield from _by_deepspeed(plan)


def _another_number(wanted: int, machines: int, processes: int) -> Text:
    """A configuration file is for another number of processes than there are."""
    if machines > 1:
        return t("the configuration file is for {wanted} {wanted:process|processes} on {machines} {machines:machine|machines}, and {count} {count:was|were} started: on each machine "
                 "start with --nnodes {machines} --nproc {each} --rdzv HOST:PORT, or change it",
                 wanted=wanted, machines=machines, count=processes, each=wanted // machines)  # fmt: skip
    return t("parallel.processes (or a configuration file) says {wanted} {wanted:process|processes}, and {count} {count:was|were} started: "
             "start with --nproc {wanted} (all machines together), or change it", wanted=wanted, count=processes)  # fmt: skip


def _by_deepspeed(plan: Plan) -> Iterator[Text]:
    settings, stage = plan.settings, plan.profile.parallel.stage
    asked = {
        'train.compile (its exchange runs in hooks that a compiled graph leaves out; take parallel.strategy = "ddp", or leave '
        "it off)": bool(settings.compile),
        'train.freeze with until (without it, or parallel.strategy = "ddp")': any(
            rule.until is not None for rule in plan.profile.train.freeze
        ),
        'train.offload = "parameters" (with parallel.zero_stage = 3)': settings.offload == "parameters"
        and stage < 3,
    }
    found = [name for name, is_asked in asked.items() if is_asked]
    if found:
        yield t("{names}: not with parallel.strategy = \"deepspeed\" at ZeRO stage {stage}", names="; ".join(found), stage=stage)  # fmt: skip
