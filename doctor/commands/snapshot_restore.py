"""``doctor snapshot convert|restore``: a snapshot as another tool's file, or as an environment again. No verb of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

if TYPE_CHECKING:
    from doctor.restore_commands import Options
    from doctor.snapshots.restore_plan import RestorePlan

FORMATS = ("requirements", "pylock", "conda", "dockerfile", "apptainer", "cyclonedx", "markdown", "patch")
"""Those of doctor.snapshots.formats, named here so that --help imports nothing."""


def configure(verbs: Any) -> list[argparse.ArgumentParser]:
    convert = verbs.add_parser(
        "convert", help=say("write it in another tool's format, and say what that loses")
    )
    convert.add_argument("file", metavar="FILE", help=say("a snapshot file, a run, `here`, or a name from `doctor snapshot list`"))  # fmt: skip
    convert.add_argument("--format", choices=FORMATS, required=True, help=say("which format"))
    convert.add_argument("-o", "--output", metavar="FILE", help=say("where to (default: it is printed)"))
    convert.add_argument("--force", action="store_true", help=say("overwrite a file that is there"))
    restore = verbs.add_parser("restore", help=say("make its environment again in a new folder, then compare it by content"))  # fmt: skip
    restore.add_argument("file", metavar="FILE", help=say("a snapshot file, a run, or a name from `doctor snapshot list`"))  # fmt: skip
    restore.add_argument("--venv", metavar="DIR", required=True, help=say("the folder to make; it must not be there yet"))  # fmt: skip
    restore.add_argument("--dry-run", action="store_true", help=say("show every command and do nothing"))
    restore.add_argument("--yes", "-y", action="store_true", help=say("do not ask"))
    restore.add_argument(
        "--yes-to", metavar="WHAT", action="append", choices=("sdists", "vcs", "urls"), default=[],
        help=say("allow what runs or fetches a stranger's code: sdists, vcs, urls (repeatable)"),
    )  # fmt: skip
    restore.add_argument("--python", metavar="PATH", help=say("the interpreter to make it with (default: one of the same minor version is looked for)"))  # fmt: skip
    restore.add_argument("--torch-index", metavar="URL", help=say("where builds for a CUDA version are, in place of download.pytorch.org/whl"))  # fmt: skip
    restore.add_argument("--find-links", metavar="DIR", action="append", default=[], help=say("a folder of wheels to look in, too"))  # fmt: skip
    restore.add_argument("--no-index", action="store_true", help=say("only wheels from --find-links"))
    restore.add_argument("--installer", choices=("pip", "uv"), help=say("which installer (default: uv where it asks the same indexes as pip)"))  # fmt: skip
    restore.add_argument("--anyway", action="store_true", help=say("even where this machine cannot run it"))
    restore.add_argument("--json", action="store_true", help=say("the result as JSON"))
    resolve = verbs.add_parser(
        "resolve", help=say("ask the indexes for each wheel's address and digest (network)")
    )
    resolve.add_argument(
        "file", metavar="FILE", help=say("a snapshot file, or a name from `doctor snapshot list`")
    )
    resolve.add_argument(
        "-o", "--output", metavar="FILE", help=say("where to (default: NAME-resolved.json here)")
    )
    resolve.add_argument("--force", action="store_true", help=say("overwrite a file that is there"))
    return [convert, restore, resolve]


def run_convert(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.snapshots.formats import FormatError

    try:
        rendered = service.convert_snapshot(namespace.file, namespace.format)
    except FormatError as error:
        for reason in error.reasons[:20]:
            complain(reason)
        raise CommandError(error.text) from None
    if namespace.output and namespace.output != "-":
        service.write_text(rendered.text, Path(namespace.output), namespace.force)
        print(namespace.output)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(rendered.text.encode("utf-8", "surrogateescape"))
    if rendered.lost:
        print(say("Not in it:"), file=sys.stderr)
    for text in rendered.lost:
        print(f"  {say(text)}", file=sys.stderr)
    return Exit.OK


def run_resolve(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.resolve import ResolveError
    from runner.text import t

    try:
        path, found = service.resolve_snapshot(namespace.file, namespace.output, namespace.force)
    except ResolveError as error:
        raise CommandError(error.text) from None
    print(path)
    for name, why in found.open.items():
        complain(t("{name}: {why}", name=name, why=say(why)))
    summary = t("{proven} files proven by their METADATA, {by_name} by name alone, {open} open", proven=found.proven, by_name=len(found.by_name), open=len(found.open))  # fmt: skip
    print(say(summary), file=sys.stderr)
    return Exit.FOUND if found.open else Exit.OK


def run_restore(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.snapshots.restore_plan import RestoreError

    try:
        plan = service.plan_restore(namespace.file, namespace.torch_index)
        python = service.restore_python(plan, namespace.python)
        options = service.restore_options(namespace.yes_to, namespace.find_links, namespace.no_index, namespace.installer)  # fmt: skip
        _show(plan, python, options, namespace)
        if namespace.dry_run:
            return Exit.OK
        _may_begin(plan, options, namespace)
        return _restore(plan, python, options, namespace)
    except RestoreError as error:
        raise CommandError(error.text) from None


def _show(plan: RestorePlan, python: Path, options: Options, namespace: argparse.Namespace) -> None:
    from doctor import service
    from doctor.render import layout
    from doctor.render.snapshot_compare import plan_lines

    out = sys.stdout if namespace.dry_run else sys.stderr
    commands = service.restore_commands(plan, Path(namespace.venv).absolute(), python, options)
    print("\n".join(plan_lines(plan, commands, layout.columns(out))), file=out)
    if waiting := plan.unconsented(options.consents):
        words = " ".join(f"--yes-to {one}" for one in waiting)
        print(say("Runs or fetches more than wheels of your indexes; to allow it:"), words, file=out)


def _may_begin(plan: RestorePlan, options: Options, namespace: argparse.Namespace) -> None:
    """Raise CommandError unless the machine can take it and the person said yes."""
    from doctor import service
    from doctor.snapshots.restore_plan import RestoreError
    from runner.text import t

    if waiting := plan.unconsented(options.consents):
        flags = " ".join(f"--yes-to {one}" for one in waiting)
        raise RestoreError(t("this snapshot wants more than wheels from your indexes; allow it with {flags}", flags=flags))  # fmt: skip
    if not namespace.anyway and (obstacles := service.unfit_here(namespace.file)):
        for one in obstacles:
            complain(one.why)
            if one.change is not None:
                complain(one.change)
        raise CommandError(t("this machine cannot take the snapshot; --anyway restores it all the same"))
    if namespace.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(t("nobody is there to be asked: --yes restores, --dry-run only shows"), Exit.USAGE)
    if input(say("Restore it? [y/N] ")).strip().lower() not in ("y", "yes"):
        raise CommandError(t("nothing was done"))


def _restore(plan: RestorePlan, python: Path, options: Options, namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render import layout
    from doctor.render.snapshot_compare import verification_lines
    from doctor.render.structured import record_as_json
    from runner.text import t

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    folder = Path(namespace.venv)
    try:
        found = service.restore_snapshot(namespace.file, plan, folder, python, options, tell)
    except KeyboardInterrupt:
        complain(t("stopped; the same command goes on where it was, or remove {folder}", folder=str(folder)))
        raise
    if namespace.json:
        print(record_as_json(found))
    else:
        print(folder / "bin" / "activate")
        print(
            "\n".join(verification_lines(found, layout.columns(sys.stdout), layout.wants_colour(sys.stdout)))
        )
        if names := service.credentials_named(namespace.file):
            text = t("Set there and not kept, set them again: {names}", names=", ".join(names))
            print(say(text), file=sys.stderr)
    return Exit.FOUND if found.differs else Exit.COULD_NOT_LOOK if found.incomplete else Exit.OK
