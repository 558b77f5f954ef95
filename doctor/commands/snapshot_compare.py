"""``doctor snapshot diff|verify|check``: two environments held against each other. No verb of its own."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from doctor.commands import Exit
from doctor.language import say


def configure(verbs: Any) -> list[argparse.ArgumentParser]:
    diff = verbs.add_parser("diff", help=say("what differs between two environments, and whether the result will be the same"))  # fmt: skip
    for name in ("a", "b"):
        diff.add_argument(name, metavar=name.upper(), help=say("a snapshot file, a run, a name from `doctor snapshot list`, or `here`"))  # fmt: skip
    diff.add_argument(
        "--all", action="store_true", help=say("differences without effect on the numbers, too")
    )
    verify = verbs.add_parser("verify", help=say("is this environment, byte for byte, the one in the file?"))
    verify.add_argument("file", metavar="FILE", help=say("a snapshot file, a run, or a name from `doctor snapshot list`"))  # fmt: skip
    verify.add_argument(
        "--level", choices=("versions", "record", "files", "proof"), default="record",
        help=say("how deep: versions, digests over what was installed (default), every file read again, or also the proof's steps trained again"),
    )  # fmt: skip
    verify.add_argument("--proof-of", metavar="RUN|PROFILE", help=say("what to train for --level proof (default: the run that FILE is)"))  # fmt: skip
    check = verbs.add_parser("check", help=say("can another machine take this environment, and what would have to change?"))  # fmt: skip
    check.add_argument("file", metavar="FILE", help=say("a snapshot file, a run, or a name from `doctor snapshot list`"))  # fmt: skip
    check.add_argument("--target", metavar="OTHER", help=say("that machine: a snapshot file, or `here`"))
    check.add_argument("--gpu", metavar="NAME", action="append", help=say('a card of that machine, by its name: "RTX 4090" (repeatable)'))  # fmt: skip
    check.add_argument("--driver", metavar="VERSION", help=say("its driver: 535, or 535.183.01"))
    check.add_argument("--python", metavar="VERSION", help=say("its Python: 3.11"))
    check.add_argument("--glibc", metavar="VERSION", help=say("its C library: 2.31"))
    for verb in (diff, verify):
        verb.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    for verb in (diff, verify, check):
        verb.add_argument("--json", action="store_true", help=say("as JSON"))
    return [diff, verify, check]


def run_diff(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render.snapshot_compare import diff_lines

    found = service.diff_snapshots(namespace.a, namespace.b, namespace.python)
    _print(namespace, found, diff_lines, namespace.all)
    return Exit.FOUND if found.verdict != "same-bits" else Exit.OK if found.complete else Exit.COULD_NOT_LOOK


def run_verify(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render.restore_lines import chosen_lines, proof_lines
    from doctor.render.snapshot_compare import verification_lines

    tell = _progress if sys.stderr.isatty() else None
    found = service.verify_snapshot(
        namespace.file, namespace.level, namespace.python, tell, namespace.proof_of, lambda text: print(say(text), file=sys.stderr)
    )  # fmt: skip
    _print(namespace, found, verification_lines)
    if not namespace.json:
        print("".join(f"{line}\n" for line in [*chosen_lines(found), *proof_lines(found)]), end="")
    return Exit.FOUND if found.differs else Exit.COULD_NOT_LOOK if found.incomplete else Exit.OK


def run_check(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands import CommandError
    from doctor.render.snapshot_compare import fit_lines
    from runner.text import t

    described = (namespace.driver, namespace.gpu, namespace.python, namespace.glibc)
    if namespace.target and any(described):
        raise CommandError(t("name the machine by --target, or describe it by --gpu, --driver, --python, --glibc: not both"), Exit.USAGE)  # fmt: skip
    if not namespace.target and not any(described):
        raise CommandError(t("which machine? --target OTHER.json, or --gpu NAME --driver VERSION --glibc VERSION"), Exit.USAGE)  # fmt: skip
    found = service.fit_snapshot(
        namespace.file,
        namespace.target,
        namespace.driver,
        namespace.gpu or (),
        namespace.python,
        namespace.glibc,
    )
    _print(namespace, found, fit_lines)
    return {"fits": Exit.OK, "does-not-fit": Exit.FOUND, "unknown": Exit.COULD_NOT_LOOK}[found.answer]


def _progress(package: str, done: int, total: int) -> None:
    print(
        f"\r\x1b[K{done + 1}/{total} {package}",
        end="" if done + 1 < total else "\n",
        file=sys.stderr,
        flush=True,
    )


def _print(namespace: argparse.Namespace, found: object, lines: Any, *more: object) -> None:
    from doctor.render import layout
    from doctor.render.structured import record_as_json

    if namespace.json:
        print(record_as_json(found))
    else:
        print("\n".join(lines(found, layout.columns(sys.stdout), layout.wants_colour(sys.stdout), *more)))
