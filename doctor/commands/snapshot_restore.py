"""``doctor snapshot restore``: a snapshot as an environment again. No verb of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

if TYPE_CHECKING:
    from doctor.restore_commands import Options
    from doctor.snapshots.nearest import Nearest
    from doctor.snapshots.restore_plan import RestorePlan
    from doctor.snapshots.verify import Verification


def configure(verbs: Any) -> list[argparse.ArgumentParser]:
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
    restore.add_argument("--untested", action="store_true", help=say("also one that comes with the doctor and that nobody has restored yet"))  # fmt: skip
    restore.add_argument("--nearest", action="store_true", help=say("where the exact set cannot be had or does not run here: the nearest set that does, each difference named"))  # fmt: skip
    restore.add_argument("--project", metavar="DIR", help=say("also make the changes to the code since its commit, in this working tree of that commit"))  # fmt: skip
    restore.add_argument("--anyway", action="store_true", help=say("even where this machine cannot run it"))
    restore.add_argument("--json", action="store_true", help=say("the result as JSON"))
    return [restore]


def run_restore(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.snapshots.restore_plan import RestoreError

    try:
        plan = service.plan_restore(namespace.file, namespace.torch_index)
        python = service.restore_python(plan, namespace.python)
        options = service.restore_options(namespace.yes_to, namespace.find_links, namespace.no_index, namespace.installer, namespace.untested)  # fmt: skip
        nearest = _nearest(python, options, namespace) if namespace.nearest else None
        if nearest is not None:
            plan = service.plan_nearest(nearest, namespace.torch_index)
        _show(plan, python, options, namespace)
        if namespace.dry_run:
            return Exit.OK
        _may_begin(plan, nearest, options, namespace)
        return _restore(plan, nearest, python, options, namespace)
    except RestoreError as error:
        raise CommandError(error.text) from None


def _nearest(python: Path, options: Options, namespace: argparse.Namespace) -> Nearest:
    """Ask the indexes, and say what would be another."""
    from doctor import service
    from doctor.render import layout
    from doctor.render.restore_lines import change_lines

    found = service.nearest_set(namespace.file, python, options, namespace.torch_index, _tell)
    out = sys.stdout if namespace.dry_run else sys.stderr
    print("\n".join(change_lines(found.changes, layout.columns(out))), file=out)
    return found


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
    if plan.untested is not None:
        print(say("Untested, restored with --untested only:"), say(plan.untested), file=out)


def _may_begin(
    plan: RestorePlan, nearest: Nearest | None, options: Options, namespace: argparse.Namespace
) -> None:
    """Raise CommandError or RestoreError unless plan, machine and code allow it and the person said yes."""
    from doctor import service
    from runner.text import t

    service.may_restore(plan, options)
    if namespace.project:
        service.check_project(namespace.file, Path(namespace.project))
    subject = nearest.snapshot if nearest else namespace.file
    if not namespace.anyway and (obstacles := service.unfit_here(subject)):
        for one in obstacles:
            complain(one.why)
            if one.change is not None:
                complain(one.change)
        raise CommandError(t("this machine cannot take the snapshot as it is: --nearest looks for the nearest set that runs, --anyway restores it all the same"))  # fmt: skip
    if namespace.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(t("nobody is there to be asked: --yes restores, --dry-run only shows"), Exit.USAGE)
    if input(say("Restore it? [y/N] ")).strip().lower() not in ("y", "yes"):
        raise CommandError(t("nothing was done"))


def _restore(
    plan: RestorePlan, nearest: Nearest | None, python: Path, options: Options, namespace: argparse.Namespace
) -> int:
    from doctor import service
    from doctor.render.structured import record_as_json
    from runner.text import t

    folder = Path(namespace.venv)
    changes = nearest.changes if nearest else ()
    try:
        found = service.restore_snapshot(namespace.file, plan, folder, python, options, _tell, changes)
    except KeyboardInterrupt:
        complain(t("stopped; the same command goes on where it was, or remove {folder}", folder=str(folder)))
        raise
    if namespace.json:
        print(record_as_json(found))
    else:
        print(folder / "bin" / "activate")
        _print_verified(found, namespace)
    if namespace.project:
        _print_project(namespace)
    return Exit.FOUND if found.differs else Exit.COULD_NOT_LOOK if found.incomplete else Exit.OK


def _print_verified(found: Verification, namespace: argparse.Namespace) -> None:
    from doctor import service
    from doctor.render import layout
    from doctor.render.restore_lines import chosen_lines
    from doctor.render.snapshot_compare import verification_lines
    from runner.text import t

    lines = verification_lines(found, layout.columns(sys.stdout), layout.wants_colour(sys.stdout))
    print("\n".join([*lines, *chosen_lines(found)]))
    if names := service.credentials_named(namespace.file):
        text = t("Set there and not kept, set them again: {names}", names=", ".join(names))
        print(say(text), file=sys.stderr)


def _print_project(namespace: argparse.Namespace) -> None:
    from doctor import service
    from doctor.render import layout
    from doctor.render.restore_lines import project_lines

    done = service.restore_project(namespace.file, Path(namespace.project))
    out = sys.stderr if namespace.json else sys.stdout
    print("\n".join(project_lines(done, layout.columns(out))), file=out)
