"""``doctor recommend``: which torch for this driver and these cards, with its mates and the commands to install it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.strings import shown

if TYPE_CHECKING:
    from doctor.recommend import Recommendation

NAME_LIMIT = 80
SECTIONS = ("host", "driver", "gpus", "python", "packages", "torch")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--driver", metavar="VERSION", help=say("a driver version in place of this machine's")
    )
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        action="append",
        default=[],
        help=say("a card in place of this machine's; may be given again"),
    )
    parser.add_argument("--target-python", metavar="VERSION", help=say("the Python that is to run it: 3.12"))
    parser.add_argument("--facts", metavar="FILE", type=Path, help=say("recommend for a recorded machine"))
    parser.add_argument(
        "--python",
        metavar="PATH|VERSION",
        help=say("the interpreter or environment to examine, or the version that is to run it: 3.12"),
    )
    parser.add_argument(
        "--mirrors", action="store_true", help=say("ask mirrors in China, now, whether they have this build")
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=say("as JSON"))
    form.add_argument(
        "--torch-args", action="store_true", help=say("only what follows `pip install`, for scripts")
    )
    form.add_argument(
        "--transformers-for",
        metavar="TORCH",
        help=say("only the transformers requirement that goes with a torch version"),
    )


def run(namespace: argparse.Namespace) -> int:
    _take_python_as_version(namespace)
    _refuse_nonsense(namespace)
    _refuse_two_machines(namespace)
    if namespace.transformers_for:
        return _transformers(namespace)
    recommendation = _recommendation(namespace)
    if namespace.mirrors and recommendation.best is not None:
        from doctor import service

        recommendation = service.with_mirrors(recommendation)
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(recommendation), indent=1).decode())
    elif namespace.torch_args:
        print(recommendation.commands.get("pip", "").partition(" install ")[2])
    else:
        print("\n".join(shown(line) for line in _lines(recommendation)))
    if recommendation.target.unread:
        return Exit.COULD_NOT_LOOK
    return Exit.OK if recommendation.commands else Exit.FOUND


_PYTHON_VERSION = re.compile(r"\d\.\d{1,2}(\.\d+)?", re.ASCII)


def _take_python_as_version(namespace: argparse.Namespace) -> None:
    """``--python 3.10`` says what is to run it, where no file is called so."""
    named = namespace.python
    if (
        named
        and namespace.target_python is None
        and _PYTHON_VERSION.fullmatch(named)
        and not Path(named).exists()
    ):
        namespace.target_python, namespace.python = named, None


def _refuse_two_machines(namespace: argparse.Namespace) -> None:
    """Refuse options of which one would be passed over in silence.

    Raises:
        CommandError: --driver or --gpu describe a machine, and another one is named as well.
    """
    from runner.text import t

    if namespace.driver is None and not namespace.gpu:
        return
    for option, value in (("--python", namespace.python), ("--facts", namespace.facts)):
        if value is not None:
            text = t(
                "--driver and --gpu describe a machine, {option} {value} names another: leave one of them out (a Python version: --python 3.12)",
                option=option,
                value=str(value),
            )
            raise CommandError(text, Exit.USAGE)


def _refuse_nonsense(namespace: argparse.Namespace) -> None:
    """Refuse an option that is no version (an empty variable, a word).

    Raises:
        CommandError: it names the option and shows what one looks like.
    """
    from runner.text import t

    for option, value, pattern, example in (
        ("--driver", namespace.driver, r"\d{3}(\.\d+){0,3}", "550.54.15"),
        ("--target-python", namespace.target_python, r"\d\.\d{1,2}(\.\d+)?", "3.12"),
        ("--transformers-for", namespace.transformers_for, r"\d+\.\d+(\.\d+)?([.+a-z]\S*)?", "2.6.0"),
    ):
        if value is not None and not re.fullmatch(pattern, value, re.ASCII):
            text = t(
                "{option} wants a version such as {example}, not '{value}'",
                option=option,
                example=example,
                value=value,
            )
            raise CommandError(text, Exit.USAGE)


def _transformers(namespace: argparse.Namespace) -> int:
    from doctor import service
    from runner.text import t

    requirement = service.transformers_for(namespace.transformers_for, namespace.target_python)
    if requirement is None:
        raise CommandError(
            t(
                "no transformers release in the table goes with torch {torch}",
                torch=namespace.transformers_for,
            )
        )
    print(requirement)
    return Exit.OK


def _recommendation(namespace: argparse.Namespace) -> Recommendation:
    from doctor import service
    from doctor.commands.check import load_or_examine
    from runner.text import t

    if namespace.driver is not None or namespace.gpu:
        recommendation, unknown = service.recommend_for(
            namespace.driver, namespace.gpu, namespace.target_python
        )
        if unknown:
            text = t(
                "{names}: not in the table of cards. Write it as nvidia-smi -L does, or its compute capability: --gpu 6.1",
                names=", ".join(unknown),
            )
            raise CommandError(text, Exit.USAGE)
        return recommendation
    snapshot = load_or_examine(namespace.facts, namespace.python, SECTIONS)
    python = snapshot.facts.python.value
    folders = (python.search_path or ()) if python else ()
    if namespace.target_python is None and any("/pypy3." in folder for folder in folders):
        text = t("{python} is PyPy: torch is published for CPython only. Make an environment with CPython: `doctor env create`", python=(python and python.executable) or "python")  # fmt: skip
        raise CommandError(text, Exit.FOUND)
    return service.recommend(snapshot, namespace.target_python)


def _lines(recommendation: Recommendation) -> Iterator[str]:
    from doctor.render.layout import columns, indent
    from runner.text import t

    width, target, best = columns(sys.stdout), recommendation.target, recommendation.best
    what = " · ".join(
        part
        for part in (
            _cards(target.cards),
            say(t("driver {version}", version=target.driver)) if target.driver else "",
            f"Python {target.python}" if target.python else "",
        )
        if part
    )
    nobody = say("a machine that could not be read") if target.unread else say("no NVIDIA GPU")
    yield from indent(say(t("For: {what}", what=what or nobody)), width, "", "  ")
    yield from _unread_lines(recommendation, width)
    if best is not None:
        yield say(t("Best: torch {torch} for CUDA {cuda}", torch=best.torch, cuda=best.cuda))
    for reason in recommendation.reasons:
        yield from indent(say(reason), width, "  - ", "    ")
    mates = [
        f"{name} {version}"
        for name, version in (
            ("torchvision", recommendation.torchvision),
            ("torchaudio", recommendation.torchaudio),
        )
        if version
    ]
    mates += [recommendation.transformers] if recommendation.transformers else []
    if mates:
        yield say(t("With it: {mates}", mates=", ".join(mates)))
    for tool, command in recommendation.commands.items():
        yield f"  {tool + ':':<7}{command}"
    yield from _mirror_lines(recommendation, width)
    others = [f"{build.torch}+{build.tag}" for build in recommendation.builds if build != best]
    if others:
        yield from indent(say(t("Also run here: {builds}", builds=", ".join(others))), width, "", "  ")
    if recommendation.ways_out:
        yield say("Nothing in the table runs on all of this. What would:")
        for way in recommendation.ways_out:
            yield from indent(say(way), width, "  - ", "    ")


def _mirror_lines(recommendation: Recommendation, width: int) -> Iterator[str]:
    """One line a mirror, asked just now: what to append to the command, or why not."""
    from doctor.render.layout import indent
    from runner.text import t

    if recommendation.mirrors:
        yield say("Mirrors, asked just now:")
    for one in recommendation.mirrors:
        words = (
            t("{name}: in place of any --index-url above: {option}", name=one.name, option=one.option)
            if one.why is None
            else t("{name}: {why}", name=one.name, why=say(one.why))
        )
        yield from indent(say(words), width, "  - ", "    ")


def _cards(names: tuple[str, ...]) -> str:
    """Return ``8 x NVIDIA H100``: each name once; a card that does not answer has none."""
    whole = [shown(name)[:NAME_LIMIT] for name in names if name]
    counts = {name: whole.count(name) for name in whole}
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())


def _unread_lines(recommendation: Recommendation, width: int) -> Iterator[str]:
    from doctor.render.layout import indent
    from runner.text import t

    unread = recommendation.target.unread
    if why := unread.get("driver"):
        words = t("The driver could not be read: {why}", why=say(why))
        yield from indent(say(words), width, "  ", "    ")
    elif why := unread.get("gpus"):
        words = t("The cards could not be read, the driver alone decides: {why}", why=say(why))
        yield from indent(say(words), width, "  ", "    ")
    if unread:
        yield "  " + say("Name what it has: doctor recommend --driver VERSION --gpu NAME")
