"""``doctor prove``: train the first steps twice in fresh processes and say whether every bit is the same."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.proofs import Parting
    from doctor.prove import Proved


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="RUN|PROFILE", help=say("a run (its proof is kept in RUN/proof.json), or a profile")
    )
    parser.add_argument(
        "--steps", type=int, default=5, metavar="N",
        help=say("how many steps are trained and compared (default: 5)"),
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="overrides",
        help=say("change one value of the profile; may be given again"),
    )  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that trains"))
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython
    from runner.plan import PlanError
    from runner.profile import ProfileError

    if namespace.steps < 1:
        raise CommandError(say("--steps takes a number from 1 up"), Exit.USAGE)
    try:
        proved = service.prove(
            namespace.name, namespace.steps, namespace.python, namespace.overrides,
            lambda text: print(say(text), file=sys.stderr, flush=True),
        )  # fmt: skip
    except ProfileError as error:
        raise CommandError("\n  ".join([error.source, *map(say, error.problems)]), Exit.USAGE) from None
    except PlanError as error:
        raise CommandError(error.problem, Exit.USAGE) from None
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text) from None
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(proved), indent=1).decode())
    else:
        print("\n".join(lines(proved)))
    return Exit.OK if proved.parting is None and proved.earlier_parting is None else Exit.FOUND


def lines(proved: Proved) -> Iterator[str]:
    """Yield the verdict: the level reached, the hash, and where two starts parted."""
    from doctor.proofs import level_words, place_differences

    record = proved.record
    yield say(
        t("{words} ({steps} {steps:step|steps})", words=say(level_words(record.level)), steps=record.steps)
    )
    if proved.parting is not None:
        yield from parting_lines(proved.parting)
        return
    yield say(t("proof: sha256:{hash}", hash=record.sha256))
    if proved.earlier is None:
        return
    earlier = proved.earlier
    if proved.earlier_parting is None:
        yield say(t("The same as the proof of {time}.", time=earlier.made_at))
        return
    yield say(t("Not the same as the proof of {time}, which is kept:", time=earlier.made_at))
    yield from parting_lines(proved.earlier_parting)
    names = place_differences(earlier.place, record.place)
    if names:
        yield say(t("  What differs between the two places: {names}", names=", ".join(names)))


def parting_lines(parting: Parting) -> Iterator[str]:
    from doctor.proofs import stage_words
    from runner.strings import printable

    yield say(
        t(
            "  The first difference is in step {step}, in {stage}.",
            step=parting.window + 1,
            stage=say(stage_words(parting.stage)),
        )
    )
    if parting.names:
        names = ", ".join(map(printable, parting.names))
        yield say(t("  {count} differ there, first: {names}", count=parting.count, names=names))
    if any(parting.losses) and parting.losses[0] != parting.losses[1]:
        first, second = (float.fromhex(text) for text in parting.losses)
        yield say(t("  loss: {first} and {second}", first=f"{first:.9g}", second=f"{second:.9g}"))
