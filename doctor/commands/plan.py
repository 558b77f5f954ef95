"""``doctor plan``: will this run fit this GPU, which GPU would fit it, which batch."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit
from doctor.commands.planned_step import (
    DEVICE_SECTIONS,
    SECTIONS,
    add_machine,
    add_step,
    add_subject,
    count,
    examined,
    planned_step,
)
from doctor.language import say

if TYPE_CHECKING:
    from doctor.card_prices import Prices
    from doctor.measuring import Measured
    from doctor.memory_plan import MemoryPlan
    from doctor.model_step import Step
    from doctor.named_card import NamedCard
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

    cards, card_name = _asked(namespace)
    options = _options(namespace, card_name)
    snapshot = examined(namespace.python, namespace.facts, _sections(namespace, card_name))
    if namespace.measure:
        options = service.options_here(options, snapshot)
    count = _count(cards, service.visible_card_count(snapshot))

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
    from doctor import service
    from doctor.memory_troubles import CannotMeasure, NoTrace
    from runner.model_shapes import UnknownArchitecture

    try:
        yield
    except UnknownArchitecture as error:
        floor = service.least_memory(step.found)
        words = [say(text) for text in (error.problem, floor) if text is not None]
        raise CommandError(" ".join(words), Exit.COULD_NOT_LOOK) from None
    except (NoTrace, CannotMeasure) as error:
        raise CommandError(error.text, Exit.COULD_NOT_LOOK) from None


def _options(namespace: argparse.Namespace, card_name: str) -> PlanOptions:
    from doctor.plan_options import DEFAULT_SAMPLES, PlanOptions

    prices = _prices(namespace.price)
    named = _named(card_name)
    return PlanOptions(
        exact=namespace.exact,
        card=named.state if named else None,
        all_cards=namespace.gpus == "all" or prices is not None,
        priced_only=prices is not None and namespace.gpus != "all",
        samples=namespace.samples or DEFAULT_SAMPLES,
        prices=prices.by_card if prices else {},
        currency=prices.currency if prices else "",
        on_cpu=namespace.cpu,
        memory_limit_bytes=namespace.memory_limit,
        recorded=namespace.facts is not None,
        notes=named.notes if named else (),
    )


def _sections(namespace: argparse.Namespace, card_name: str) -> tuple[str, ...]:
    """Return what of this machine the answer rests on: of a named card and a model's arithmetic nothing does."""
    from doctor import service

    if namespace.profile or namespace.exact or namespace.measure:
        return SECTIONS
    if card_name:
        return ()
    return SECTIONS if service.has_measurements() else DEVICE_SECTIONS


def _prices(text: str) -> Prices | None:
    if not text.strip():
        return None
    from doctor.card_prices import BadPrice, parse_prices

    try:
        found = parse_prices(text)
    except BadPrice as error:
        raise CommandError(error.text, Exit.USAGE) from None
    return found if found.by_card else None


def _named(card_name: str) -> NamedCard | None:
    if not card_name:
        return None
    from doctor.named_card import UnknownCard, named_card

    try:
        return named_card(card_name)
    except UnknownCard as error:
        raise CommandError(error.text, Exit.USAGE) from None


def _asked(namespace: argparse.Namespace) -> tuple[str, str]:
    """Return how many cards are asked for (a number, ``gpu`` or ``all``), and the name of the card; empty: the one here.

    ``--gpus "RTX 4090"`` and ``--gpus 8xH100`` name a card too.
    """
    cards, name = namespace.gpus.strip(), (namespace.gpu or "").strip()
    if not (cards in ("all", "gpu") or cards.isdecimal()):
        several = re.fullmatch(r"(\d+) ?[x*×] ?(.*[a-z].*)", cards, re.IGNORECASE)
        cards, given = (several[1], several[2]) if several else ("1", cards)
        if name:
            raise CommandError(say("--gpus names a card and --gpu another: name it once"), Exit.USAGE)
        name = given
    if name and (namespace.cpu or namespace.measure):
        raise CommandError(say("--cpu and --measure are about this machine, --gpu is about a card by its name: one of them"), Exit.USAGE)  # fmt: skip
    return cards, name


def _count(cards: str, here: int) -> int:
    """Return how many cards train together; ``gpu``: every one of the ``here``."""
    if cards == "all":
        return 1
    if cards == "gpu":
        return max(1, here)
    if int(cards) < 1:
        raise CommandError(
            say("--gpus takes a number of cards, gpu (all that are here), or all (the table of every card)"),
            Exit.USAGE,
        )
    return int(cards)


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
