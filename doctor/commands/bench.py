"""``doctor bench``: what makes a profile's steps faster, or a command of your own, measured in interleaved pairs."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.bench_records import Comparison
    from runner.text import Text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s PROFILE [options] | [options] -- COMMAND ..."
    parser.add_argument("profile", nargs="?", metavar="PROFILE", help=say("a shipped profile's name, or a TOML file"))  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="overrides",
        help=say("change one value of the profile; may be given again"),
    )  # fmt: skip
    parser.add_argument("--levers", default="", metavar="A,B", help=say("only these: padding, bucketing, precision, fused, "
                        "checkpointing, workers, pinning, compile, attention, accumulation, packing; of a command: plain, threads, "
                        "waiting, tokenizers, hugepages, memory, arenas, tf32"))  # fmt: skip
    parser.add_argument("--try", action="append", default=[], metavar="NAME=VALUE", dest="tries", help=say("of a command: also this variable, such as one that your "
                        "script reads its workers from; may be given again"))  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N", help=say("steps of each short run (default: 8, or as many as take 4 s)"))  # fmt: skip
    parser.add_argument("--pairs", type=int, default=6, metavar="N", help=say("pairs of each setting (default: 6: fewer prove less)"))  # fmt: skip
    parser.add_argument("--minutes", type=float, default=20.0, metavar="M", help=say("for everything together (default: 20); what is done by then is shown"))  # fmt: skip
    parser.add_argument("--anew", action="store_true", help=say("measure all again: else what the same command measured in the last day is taken over"))  # fmt: skip
    parser.add_argument("--run-seconds", type=float, default=120.0, metavar="S", help=say("of a command: each run is stopped after so long (default: 120)"))  # fmt: skip
    parser.add_argument("--html", type=Path, metavar="FILE", help=say("write a page with a plot"))
    parser.add_argument("--write", type=Path, metavar="FILE", help=say("write the profile with what was proven faster"))  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that trains"))
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def run(namespace: argparse.Namespace) -> int:
    from doctor.bench_order import BenchError
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython
    from runner.profile import ProfileError

    _refuse(namespace)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the run under way ends with us
        signal.signal(number, _interrupt)
    try:
        found = _command(namespace) if namespace.command is not None else _profile(namespace)
        code = show(found, namespace)
        if namespace.write is not None:
            _write(namespace, found)
    except ProfileError as error:
        raise CommandError("\n  ".join([error.source, *map(say, error.problems)]), Exit.USAGE) from None
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text, Exit.USAGE) from None
    except BenchError as error:
        what = say("before, the usual tutorial's way, cannot be trained here:") if namespace.command is None else say("the command cannot be compared:")  # fmt: skip
        raise CommandError(f"{what}\n  {say(error.text)}") from None
    return code


def _interrupt(*_: object) -> None:
    """Interrupt once: who presses Ctrl-C twice still sees what was measured."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _refuse(namespace: argparse.Namespace) -> None:
    if (namespace.profile is None) == (namespace.command is None):
        raise CommandError(say("Name a profile, or a command of your own after --: one of them."), Exit.USAGE)
    if (
        (namespace.steps is not None and namespace.steps < 2)
        or namespace.pairs < 1
        or namespace.minutes <= 0
        or namespace.run_seconds <= 0
    ):
        raise CommandError(say("--steps takes a number from 2 up, --pairs from 1 up, --minutes and --run-seconds more than 0"), Exit.USAGE)  # fmt: skip
    if bad := [one for one in namespace.tries if not re.match(r"[A-Za-z_]\w*=", one)]:
        raise CommandError(t("--try {bad}: a variable is written NAME=VALUE", bad=bad[0]), Exit.USAGE)
    if namespace.tries and namespace.command is None:
        raise CommandError(
            say("--try is for commands: a profile's values are changed with --set"), Exit.USAGE
        )
    if namespace.write is not None and namespace.command is not None:
        raise CommandError(say("--write is for profiles"), Exit.USAGE)
    if namespace.write is not None and namespace.write.exists():
        raise CommandError(t("{path} is there already: give --write another name", path=str(namespace.write)), Exit.USAGE)  # fmt: skip
    for path in filter(
        None, (namespace.write, namespace.html)
    ):  # learned after half an hour, it costs half an hour
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise CommandError(t("{path} cannot be written: {folder} is no folder that takes files", path=str(path), folder=str(path.parent)), Exit.USAGE)  # fmt: skip


def _names(namespace: argparse.Namespace, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in namespace.levers.split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandError(t("--levers {unknown}: there are {known}", unknown=", ".join(unknown), known=", ".join(known)), Exit.USAGE)  # fmt: skip
    return names


def _profile(namespace: argparse.Namespace) -> Comparison:
    from doctor import service
    from doctor.bench_levers import NAMES
    from doctor.bench_runs import BenchOptions

    options = BenchOptions(steps=namespace.steps, pairs=namespace.pairs, minutes=namespace.minutes, levers=_names(namespace, NAMES), anew=namespace.anew)  # fmt: skip
    return service.bench(namespace.profile, namespace.overrides, options, namespace.python, _say)


def _command(namespace: argparse.Namespace) -> Comparison:
    from doctor import service
    from doctor.bench_command import NAMES, CommandBenchOptions

    options = CommandBenchOptions(
        pairs=namespace.pairs, minutes=namespace.minutes, run_s=namespace.run_seconds, levers=_names(namespace, NAMES), tries=tuple(namespace.tries)
    )  # fmt: skip
    return service.bench_command(namespace.command, options, namespace.python, _say)


def show(found: Comparison, namespace: argparse.Namespace) -> int:
    """Print a comparison, or write its page."""
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        from doctor.render.bench_text import bench_lines
        from doctor.render.layout import columns

        print("\n".join(bench_lines(found, min(80, columns(sys.stdout)))))
    if namespace.html is not None:
        from doctor import service
        from doctor.render.bench_page import bench_page

        service.write_text(bench_page(found), namespace.html, overwrite=True)
        print(say(t("page: {path}", path=str(namespace.html))), file=sys.stderr)
    return Exit.OK if any(row.speed is not None for row in found.rows) else Exit.FOUND


def _write(namespace: argparse.Namespace, found: Comparison) -> None:
    from doctor import service
    from doctor.bench_variants import CHANGED

    changed = next((row for row in found.rows if row.name == CHANGED), None)
    if not found.change:
        raise CommandError(say("nothing was proven faster that the profile does not do already, so no profile is written"))  # fmt: skip
    if changed is not None and changed.verdict in ("slower", "no proven difference"):
        raise CommandError(say("what was proven faster alone does not make this profile faster, so no profile is written"))  # fmt: skip
    service.write_changed(namespace.profile, namespace.overrides, found.change, namespace.write)
    print(say(t("profile: {path}", path=str(namespace.write))), file=sys.stderr)


def _say(text: Text) -> None:
    from doctor.render.layout import columns, indent

    lines = indent(say(text), columns(sys.stderr), "", "  ") if sys.stderr.isatty() else [say(text)]
    print("\n".join(lines), file=sys.stderr, flush=True)
