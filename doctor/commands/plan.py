"""``doctor plan``: will this run fit this GPU, which GPU would fit it, which batch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.memory_plan import MemoryPlan
    from doctor.model import Snapshot
    from doctor.planning import PlanOptions
    from runner.estimate import MemoryRequest

SECTIONS = ("host", "container", "gpus", "environment", "python", "packages", "torch")
PRECISIONS = ("fp32", "bf16", "fp16", "bf16-pure")
OPTIMIZERS = ("adamw", "adamw-foreach", "adamw-8bit", "adafactor", "sgd", "sgd-momentum")
TASKS = ("classification", "multi-label", "regression", "causal-lm", "masked-lm")
SHARDINGS = ("ddp", "zero1", "zero2", "zero3")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help=say("a shipped profile's name, or a profile's path"))  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help=say("instead of a profile: a model's name, its folder, or a config.json"))  # fmt: skip
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=say("change a value of the profile; may be given again"))  # fmt: skip
    step = parser.add_argument_group(say("the step (over a profile's own)"))
    step.add_argument("--task", choices=TASKS)
    step.add_argument("--labels", type=_count, metavar="N", help=say("classes of a classifier"))
    step.add_argument(
        "--batch", type=_count, metavar="N", help=say("micro-batch: samples a card sees at once")
    )
    step.add_argument("--seq", type=_count, metavar="N", help=say("tokens of the longest sample"))
    step.add_argument("--precision", choices=PRECISIONS, help=say("bf16, fp16: autocast over fp32 weights; bf16-pure: weights too"))  # fmt: skip
    step.add_argument("--optimizer", choices=OPTIMIZERS, help=say("adamw: the fused kernel; adamw-foreach: torch's default"))  # fmt: skip
    step.add_argument("--attention", choices=("sdpa", "eager"))
    step.add_argument("--checkpointing", action="store_true", help=say("gradient checkpointing"))
    step.add_argument("--accumulation", type=_count, metavar="N", help=say("micro-batches an update"))
    step.add_argument("--lora", type=_count, metavar="RANK", help=say("train adapters of this rank only"))
    step.add_argument(
        "--sharding", choices=SHARDINGS, help=say("with --gpus N: how the cards share; zero3 is FSDP")
    )
    step.add_argument("--offload", action="store_true", help=say("optimizer states in host memory"))
    parser.add_argument("--gpus", metavar="N|all", default="1", help=say("train on N cards; all: the table of every card"))  # fmt: skip
    parser.add_argument("--gpu-table", choices=("all",), help=argparse.SUPPRESS)
    parser.add_argument("--price", metavar="LIST", default="", help=say("prices an hour, for the table: \"RTX 4090=2.1,A100 80GB=7.5\""))  # fmt: skip
    parser.add_argument("--samples", type=_count, metavar="N", help=say("samples of an epoch, for the table (default: 25000)"))  # fmt: skip
    parser.add_argument("--exact", action="store_true", help=say("trace two steps of the model's own code in a child process"))  # fmt: skip
    parser.add_argument("--compare", action="store_true", help=say("show the formula and the table of the tutorials beside it"))  # fmt: skip
    parser.add_argument("--facts", metavar="FILE", type=Path, help=say("plan for a recorded machine"))
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(say("a whole number from 1 on"))
    return value


def run(namespace: argparse.Namespace) -> int:
    if bool(namespace.profile) == bool(namespace.model):
        raise CommandError(say("Name a profile, or a model with --model: one of them."), Exit.USAGE)
    from doctor.commands.check import load_or_examine

    snapshot = load_or_examine(namespace.facts, namespace.python, SECTIONS)
    request, plan = _planned(namespace, snapshot)
    if namespace.json:
        print(_json(plan, request, namespace.compare))
    else:
        _print(plan, request, namespace.compare)
    return Exit.FOUND if plan.fits is False else Exit.OK


def _planned(namespace: argparse.Namespace, snapshot: Snapshot) -> tuple[MemoryRequest, MemoryPlan]:
    """Ask the service, and turn each expected trouble into a sentence and an exit code."""
    from doctor import service
    from doctor.exact_memory import NoTrace
    from doctor.launch import LaunchError
    from doctor.model_config import NoConfig
    from runner.model_shapes import UnknownArchitecture
    from runner.profile import ProfileError

    options = _options(namespace)
    try:
        if namespace.model:
            found, request = service.model_request(namespace.model)
        else:
            found, request = service.profile_request(namespace.profile, namespace.set, snapshot)
        request = _changed(request, namespace)
        return request, service.plan_memory(found, request, snapshot, options)
    except ProfileError as error:
        raise CommandError("\n  ".join([error.source + ":", *map(say, error.problems)]), Exit.USAGE) from None
    except (LaunchError, NoConfig) as error:
        raise CommandError(error.text, Exit.USAGE) from None
    except UnknownArchitecture as error:
        raise CommandError(error.problem, Exit.COULD_NOT_LOOK) from None
    except NoTrace as error:
        raise CommandError(error.text, Exit.COULD_NOT_LOOK) from None


def _options(namespace: argparse.Namespace) -> PlanOptions:
    from doctor.card_choice import BadPrice, parse_prices
    from doctor.planning import DEFAULT_SAMPLES, PlanOptions

    try:
        prices = parse_prices(namespace.price)
    except BadPrice as error:
        raise CommandError(error.text, Exit.USAGE) from None
    return PlanOptions(
        exact=namespace.exact,
        all_cards=namespace.gpus == "all" or namespace.gpu_table == "all" or bool(prices),
        samples=namespace.samples or DEFAULT_SAMPLES,
        prices=prices,
    )


def _changed(request: MemoryRequest, namespace: argparse.Namespace) -> MemoryRequest:
    """Lay the options that were given over the request."""
    import msgspec

    given = {
        "task": namespace.task, "num_labels": namespace.labels, "batch_size": namespace.batch,
        "sequence_length": namespace.seq, "precision": namespace.precision, "optimizer": namespace.optimizer,
        "attention": namespace.attention, "accumulation": namespace.accumulation, "lora_rank": namespace.lora,
        "sharding": namespace.sharding, "gradient_checkpointing": namespace.checkpointing or None,
        "offload": namespace.offload or None, "cards": _cards(namespace.gpus),
    }  # fmt: skip
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(request, **changes)


def _cards(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise CommandError(say("--gpus takes a number of cards, or all"), Exit.USAGE)
    return int(text)


def _json(plan: MemoryPlan, request: MemoryRequest, with_comparison: bool) -> str:
    import msgspec

    tree: dict[str, Any] = msgspec.to_builtins(plan)
    if with_comparison:
        from doctor import service

        tree["comparison"] = msgspec.to_builtins(service.compare_formulas(request))
    return msgspec.json.format(msgspec.json.encode(tree), indent=1).decode()


def _print(plan: MemoryPlan, request: MemoryRequest, with_comparison: bool) -> None:
    from doctor.render.layout import columns
    from doctor.render.plan_text import comparison_lines, plan_lines

    width = columns(sys.stdout)
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    print("\n".join(plan_lines(plan, width, unicode)))
    if with_comparison:
        from doctor import service

        print("\n".join(["", *comparison_lines(service.compare_formulas(request), width)]))
