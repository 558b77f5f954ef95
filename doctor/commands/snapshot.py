"""``doctor snapshot``: the environment as a file. export, show, list; the other actions stand in files beside this one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from doctor.commands import CommandError, Exit, snapshot_compare, snapshot_convert, snapshot_restore
from doctor.language import say


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = verbs.add_parser("export", help=say("write this machine and its packages to a file, redacted"))
    export.add_argument(
        "-o", "--output", metavar="FILE", help=say("where to (default: a dated name here; - prints it)")
    )
    export.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    export.add_argument(
        "--from-run", metavar="RUN", help=say("the machine that a run was started on, not this one")
    )
    export.add_argument("--force", action="store_true", help=say("overwrite a file that is there"))
    export.add_argument(
        "--data",
        metavar="PATH",
        action="append",
        help=say("name this file or folder by its content, too (repeatable)"),
    )
    patch = export.add_mutually_exclusive_group()
    patch.add_argument(
        "--no-patch", dest="patch", action="store_const", const="leave-out", default="refuse",
        help=say("without the changes to your code since the last commit"),
    )  # fmt: skip
    patch.add_argument(
        "--patch-as-is", dest="patch", action="store_const", const="as-is",
        help=say("keep the changes even where they look like they hold a credential"),
    )  # fmt: skip
    export.add_argument(
        "--share",
        action="store_true",
        help=say("for strangers: without code, remotes, branches and file names"),
    )
    show = verbs.add_parser("show", help=say("what is in a snapshot file, on one screen"))
    show.add_argument(
        "file",
        metavar="FILE",
        help=say("a snapshot file, a run directory, or a name from `doctor snapshot list`"),
    )
    show.add_argument("--json", action="store_true", help=say("the whole file as JSON"))
    listing = verbs.add_parser("list", help=say("the known-good environments that come with the doctor"))
    listing.add_argument("--json", action="store_true", help=say("as JSON"))
    more = [
        *snapshot_compare.configure(verbs),
        *snapshot_convert.configure(verbs),
        *snapshot_restore.configure(verbs),
    ]
    for verb in (export, show, listing, *more):
        verb.add_argument(
            "--lang", choices=("en", "zh"), default=argparse.SUPPRESS, help="English / 简体中文"
        )


def run(namespace: argparse.Namespace) -> int:
    from doctor.machine import BadSnapshot
    from doctor.snapshots.capture import ExportError
    from runner.text import t

    actions = {
        "export": _export, "show": _show, "list": _list, "diff": snapshot_compare.run_diff, "verify": snapshot_compare.run_verify,
        "check": snapshot_compare.run_check, "convert": snapshot_convert.run_convert, "restore": snapshot_restore.run_restore,
        "resolve": snapshot_convert.run_resolve,
    }  # fmt: skip
    try:
        return actions[namespace.action](namespace)
    except ExportError as error:
        raise CommandError(error.text) from None
    except BadSnapshot as error:
        raise CommandError(error.text, Exit.USAGE) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        name = str(error.filename or getattr(namespace, "file", ""))
        text = t("cannot read {file}: {error}", file=name, error=error.strerror or str(error))
        raise CommandError(text, Exit.USAGE) from None


def _export(namespace: argparse.Namespace) -> int:
    from doctor import service

    written = service.export_snapshot(
        namespace.output, namespace.python, namespace.from_run, overwrite=namespace.force,
        data=namespace.data or (), patch=namespace.patch, share=namespace.share,
    )  # fmt: skip
    if isinstance(written, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(written)
    else:
        print(written)
        _say_what_is_in_it(written)
    return Exit.OK


def _say_what_is_in_it(written: Path) -> None:
    """A patch leaves the machine word for word: that is said where it happens."""
    from doctor import service
    from doctor.render.layout import human_bytes
    from runner.text import t

    size = service.patch_bytes_in(written)
    if size:
        text = t("your changes since the last commit are in it, word for word ({size}); --no-patch leaves them out", size=human_bytes(size))  # fmt: skip
        print(say(text), file=sys.stderr)


def _show(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.machine import encode_snapshot
    from doctor.render import layout

    path, snapshot = service.find_snapshot(namespace.file)
    if namespace.json:
        print(encode_snapshot(snapshot).decode("utf-8"), end="")
    else:
        print("\n".join(service.show_snapshot_lines(snapshot, str(path), layout.columns(sys.stdout))))
    return Exit.OK


def _list(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render import layout
    from doctor.render.restore_lines import known_lines
    from doctor.render.structured import record_as_json

    known = service.known_environments()
    if namespace.json:
        print("[" + ",\n".join(record_as_json(one) for one in known) + "]")
    elif known:
        print("\n".join(known_lines(known, layout.columns(sys.stdout), layout.wants_colour(sys.stdout))))
    else:
        print(say("No known-good snapshot comes with this version."))
    return Exit.OK
