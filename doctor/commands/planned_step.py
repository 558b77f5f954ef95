"""The step that ``plan`` and ``tune`` are about: a profile's or a model's, with what the command line changes in it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.model import Snapshot
    from doctor.model_step import Step
    from doctor.plan_options import PlanOptions
    from runner.estimate import MemoryRequest

DEVICE_SECTIONS = ("host", "container", "gpus", "environment")
SECTIONS = (*DEVICE_SECTIONS, "python", "packages", "torch")
"""With what a profile's own model, a child process, or what was measured here rests on."""
PRECISIONS = ("fp32", "bf16", "fp16", "bf16-pure")
OPTIMIZERS = ("adamw", "adamw-foreach", "adamw-8bit", "adafactor", "sgd", "sgd-momentum")
TASKS = ("classification", "multi-label", "regression", "causal-lm", "masked-lm")
_UNITS = {
    "": 1 << 20,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
}


def add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help=say("a shipped profile's name, or a profile's path"))  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help=say("instead of a profile: a model's name, its folder, or a config.json"))  # fmt: skip
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=say("change a value of the profile; may be given again"))  # fmt: skip


def add_step(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    step = parser.add_argument_group(say("the step (over a profile's own)"))
    step.add_argument("--task", choices=TASKS)
    step.add_argument("--labels", type=count, metavar="N", help=say("classes of a classifier"))
    step.add_argument("--seq", type=count, metavar="N", help=say("tokens of the longest sample"))
    step.add_argument("--precision", choices=PRECISIONS, help=say("bf16, fp16: autocast over fp32 weights; bf16-pure: weights too"))  # fmt: skip
    step.add_argument("--optimizer", choices=OPTIMIZERS, help=say("adamw: the fused kernel; adamw-foreach: torch's default"))  # fmt: skip
    step.add_argument("--attention", choices=("sdpa", "eager"))
    step.add_argument("--checkpointing", action="store_true", help=say("gradient checkpointing"))
    step.add_argument("--lora", type=count, metavar="RANK", help=say("train adapters of this rank only"))
    return step


def add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cpu", action="store_true", help=say("train on the CPU, in this machine's memory"))
    parser.add_argument("--memory-limit", type=memory, metavar="SIZE", help=say("as if the device had no more: 2GB, 800MB"))  # fmt: skip
    parser.add_argument("--limit-seconds", type=float, default=600.0, metavar="S", help=say("for all measured steps together (default: 600)"))  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(say("a whole number from 1 on"))
    return value


def memory(text: str) -> int:
    """Return bytes from ``2GB``, ``1.5g``, ``800MB`` or a number of MB."""
    match = re.fullmatch(r"([0-9.]+) ?([a-z]*)", text.strip().lower())  # 1.5 GB
    try:
        value = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    except (ValueError, KeyError):
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(say("a size, as in 2GB or 800MB"))
    return value


def planned_step(
    namespace: argparse.Namespace, snapshot: Snapshot, options: PlanOptions, cards: int = 1
) -> Step:
    """Return the model and the step that the command line means, of one of ``cards``. Raises CommandError."""
    if bool(namespace.profile) == bool(namespace.model):
        raise CommandError(say("Name a profile, or a model with --model: one of them."), Exit.USAGE)
    step = _of_profile(namespace, snapshot, options, cards) if namespace.profile else _of_model(namespace.model, snapshot, options, cards)  # fmt: skip
    return step._replace(request=_changed(step.request, namespace))


def _of_model(name: str, snapshot: Snapshot, options: PlanOptions, cards: int) -> Step:
    import msgspec

    from doctor import service
    from doctor.model_config import NoConfig

    try:
        step = service.model_step(name, snapshot, options)
    except NoConfig as error:
        raise CommandError(with_floor(error.text, error.folder), Exit.USAGE) from None
    return step._replace(request=msgspec.structs.replace(step.request, cards=cards))


def with_floor(problem: Text, folder: Path | None) -> str:
    """Return why a model's memory cannot be told, and what its weights say all the same."""
    from doctor import service

    floor = service.least_memory(folder) if folder else None
    return " ".join(say(text) for text in (problem, floor) if text is not None)


def _of_profile(namespace: argparse.Namespace, snapshot: Snapshot, options: PlanOptions, cards: int) -> Step:
    from doctor import service
    from doctor.model_config import NoConfig
    from doctor.start_errors import LaunchError
    from runner.profile import ProfileError

    try:
        return service.profile_step(namespace.profile, namespace.set, snapshot, options.on_cpu, cards)
    except ProfileError as error:
        raise CommandError("\n  ".join([error.source + ":", *map(say, error.problems)]), Exit.USAGE) from None
    except (LaunchError, NoConfig) as error:
        raise CommandError(_or_model(error.text, namespace.profile), Exit.USAGE) from None


def _or_model(problem: Text, name: str) -> str:
    """Return why a profile cannot be planned; a model's name in its place is told from a typing error."""
    from doctor import service

    if not service.knows_model(name):
        return say(problem)
    return say(t("{name} is a model and no profile: --model {name}", name=name))


def _changed(request: MemoryRequest, namespace: argparse.Namespace) -> MemoryRequest:
    """Lay the options that were given over the request; what ``tune`` does not have is left alone."""
    import msgspec

    names = {"task": "task", "labels": "num_labels", "batch": "batch_size", "seq": "sequence_length", "precision": "precision",
             "optimizer": "optimizer", "attention": "attention", "accumulation": "accumulation", "lora": "lora_rank",
             "sharding": "sharding", "checkpointing": "gradient_checkpointing", "offload": "offload"}  # fmt: skip
    given = {field: getattr(namespace, option, None) for option, field in names.items()}
    changes: dict[str, Any] = {field: value for field, value in given.items() if value not in (None, False)}
    return msgspec.structs.replace(request, **changes)


def examined(python: str | None, facts: Path | None, sections: tuple[str, ...] = SECTIONS) -> Snapshot:
    from doctor.commands.check import load_or_examine

    return load_or_examine(facts, python, sections)
