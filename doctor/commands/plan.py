"""``doctor plan``: will this run fit this GPU, which GPU would fit it, which batch."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit
from doctor.commands.planned_cards import asked_cards, card_count, options_of, sections_for
from doctor.commands.planned_step import (
    add_machine,
    add_step,
    add_subject,
    count,
    examined,
    planned_step,
    with_floor,
)
from doctor.language import say

if TYPE_CHECKING:
    from doctor.measuring import Measured
    from doctor.memory_plan import MemoryPlan
    from doctor.model_step import Step
    from doctor.plan_options import PlanOptions
    from doctor.tuning import Compared
    from runner.estimate import MemoryRequest

SHARDINGS = ("ddp", "zero1", "zero2", "zero3")


def configure(parser: argparse.ArgumentParser) -> None:
    add_subject(parser)
    step = add_step(parser)
    step.add_argument(
        "--batch", type=count, metavar="N", help=say("micro-batch: samples a card sees at once")
    )
    step.add_argument("--accumulation", type=count, metavar="N", help=say("micro-batches an update"))
    step.add_argument(
        "--sharding", choices=SHARDINGS, help=say("with --gpus N: how the cards share; zero3 is FSDP")
    )
    step.add_argument("--offload", action="store_true", help=say("optimizer states in host memory"))
    parser.add_argument("--gpu", metavar="CARD", help=say("hold it against this card in place of the one here: a name (RTX 4090) or a memory (24GB)"))  # fmt: skip
    parser.add_argument("--gpus", "--cards", "--nproc", metavar="N|gpu|all", default="1", help=say("train on N cards; gpu: all that are here; all: the table of every card"))  # fmt: skip
    parser.add_argument("--price", metavar="LIST", default="", help=say("prices an hour, for the table: \"RTX 4090=2.1,A100 80GB=7.5\", also \"¥2.1\" or \"$0.44\""))  # fmt: skip
    parser.add_argument("--samples", type=count, metavar="N", help=say("samples of an epoch, for the table (default: 25000)"))  # fmt: skip
    parser.add_argument("--exact", action="store_true", help=say("trace two steps of the model's own code in a child process"))  # fmt: skip
    parser.add_argument("--measure", action="store_true", help=say("run real steps at growing batch on this device, and correct the prediction by them"))  # fmt: skip
    parser.add_argument("--data", action="store_true", help=say("instead: read the profile's rows once, and say what is odd about them"))  # fmt: skip
    parser.add_argument("--compare", action="store_true", help=say("show the formula and the table of the tutorials beside it"))  # fmt: skip
    parser.add_argument("--facts", metavar="FILE", type=Path, help=say("plan for a recorded machine"))
    add_machine(parser)


def run(namespace: argparse.Namespace) -> int:
    if namespace.data:
        from doctor.commands import plan_data

        return plan_data.run(namespace)
    import msgspec

    from doctor import service

    cards, card_name = asked_cards(namespace)
    options = options_of(namespace, card_name)
    snapshot = examined(namespace.python, namespace.facts, sections_for(namespace, card_name))
    if namespace.measure:
        options = service.options_here(options, snapshot)
    count = card_count(cards, service.visible_card_count(snapshot))

    def step_of(wished: PlanOptions) -> Step:
        return planned_step(namespace, snapshot, wished, count)

    step = step_of(options)
    options = msgspec.structs.replace(
        options, by_profile=bool(namespace.profile), notes=(*options.notes, *step.notes)
    )
    compared: Compared | None = None
    with _troubles(step):
        if namespace.measure:
            told = _silent if namespace.json else _say_measured
            compared = service.measure_memory(step.request, snapshot, options, namespace.limit_seconds, told)
        measured = compared.measurement if compared else None
        plan = service.plan_memory(step.found, step.request, snapshot, options, measured)
        plan = service.with_cpu_here(plan, snapshot, options, step_of)
    if namespace.json:
        print(_json(plan, step.request, namespace.compare, compared))
    else:
        _print(plan, step.request, namespace.compare, compared)
    return Exit.FOUND if plan.fits is False or plan.obstacle else Exit.OK


@contextlib.contextmanager
def _troubles(step: Step) -> Iterator[None]:
    """Turn each expected trouble into a sentence and an exit code."""
    from doctor.memory_troubles import CannotMeasure, NoTrace
    from runner.model_shapes import UnknownArchitecture

    try:
        yield
    except UnknownArchitecture as error:
        raise CommandError(with_floor(error.problem, step.found.folder), Exit.COULD_NOT_LOOK) from None
    except (NoTrace, CannotMeasure) as error:
        raise CommandError(error.text, Exit.COULD_NOT_LOOK) from None


def _silent(_: Measured) -> None:
    """JSON is one document; what comes before it would break it."""


def _say_measured(measured: Measured) -> None:
    from doctor.render.measured_text import measured_line

    print(measured_line(measured), file=sys.stderr, flush=True)


def _json(plan: MemoryPlan, request: MemoryRequest, with_comparison: bool, compared: Compared | None) -> str:
    import msgspec

    tree: dict[str, Any] = msgspec.to_builtins(plan)
    if with_comparison:
        from doctor import service

        tree["comparison"] = msgspec.to_builtins(service.compare_formulas(request))
    if compared is not None:
        tree["measured"] = msgspec.to_builtins(compared, str_keys=True)
    return msgspec.json.format(msgspec.json.encode(tree), indent=1).decode()


def _print(plan: MemoryPlan, request: MemoryRequest, with_comparison: bool, compared: Compared | None) -> None:  # fmt: skip
    from doctor.render.cards_text import comparison_lines
    from doctor.render.layout import columns
    from doctor.render.plan_text import plan_lines

    width = columns(sys.stdout)
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    if compared is not None:
        from doctor.render.measured_text import compared_lines

        print("\n".join([*compared_lines(compared, width), ""]))
    print("\n".join(plan_lines(plan, width, unicode)))
    if with_comparison:
        from doctor import service

        print("\n".join(["", *comparison_lines(service.compare_formulas(request), width)]))
