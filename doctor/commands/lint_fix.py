"""``doctor lint --fix``: the rewrites shown as a difference, asked for, written down and made. No verb of its own."""

from __future__ import annotations

import argparse
import difflib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from doctor.commands import CommandError, Exit, complain
from doctor.language import say
from runner.strings import printable, shown
from runner.text import t

if TYPE_CHECKING:
    from doctor.lint.rewrites import Proposal
    from doctor.model import Snapshot

BOM = "\ufeff"


@dataclass(frozen=True)
class Changed:
    """One file to be written."""

    path: Path
    raw: bytes
    """What it held when it was judged."""
    text: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help=say("rewrite what is safe to rewrite: shown first, asked for, undoable"))  # fmt: skip
    parser.add_argument("--diff", action="store_true", help=say("only print the rewrites as a patch; nothing is written"))  # fmt: skip
    parser.add_argument("--yes", action="store_true", help=say("with --fix: without asking"))
    parser.add_argument("--unsafe", action="store_true", help=say("with --fix --yes or --diff: also the rewrites that may change what the script does"))  # fmt: skip


def is_asked_for(namespace: argparse.Namespace) -> bool:
    """Return whether scripts are to be rewritten.

    Raises:
        CommandError: options that stand alone, or libcst is missing.
    """
    from doctor.lint.rewrites import has_libcst

    asked = bool(namespace.fix or namespace.diff)
    if not asked and (namespace.yes or namespace.unsafe):
        raise CommandError(t("--yes and --unsafe go with --fix"), Exit.USAGE)
    if asked and not has_libcst():
        raise CommandError(t("Rewriting needs the [lint] extra: pip install 'rundoctor[lint]'. `doctor lint` without --fix works without it."), Exit.USAGE)  # fmt: skip
    return asked


def print_patch(namespace: argparse.Namespace, paths: list[Path], snapshot: Snapshot) -> int:
    """Print what would be rewritten as one patch on stdout; exit 1 when there is any."""
    made, left = 0, 0
    for path in paths:
        if (read := _read(path)) is None:
            continue
        found = _rewritten(read[1], path, snapshot, namespace.unsafe, None)
        made, left = made + len(found[1]), left + found[2]
        _show_diff(path, read[1], found[0], sys.stdout)
    complain(
        t(
            "rewrites: {count}; left out, as they may change what a script does (--unsafe takes them in): {left}",
            count=made,
            left=left,
        )
    )
    return Exit.FOUND if made else Exit.OK


def rewrite(namespace: argparse.Namespace, paths: list[Path], snapshot: Snapshot) -> list[Path]:
    """Show, ask for and make the rewrites of ``paths``, as one change of the journal; return the files written.

    Raises:
        CommandError: the journal cannot be written, or a change of before is half done.
    """
    out = sys.stderr if namespace.json or namespace.sarif else sys.stdout
    asks = not namespace.yes and sys.stdin.isatty() and out.isatty()
    changed = [one for path in paths if (one := _decided(namespace, path, snapshot, asks, out))]
    if not changed:
        print(say("nothing to rewrite"), file=out)
    elif not (asks or namespace.yes):
        complain(t("Nothing was changed: --yes does it, in a terminal it is asked for."))
    else:
        _write(changed, may_ask=asks)
        return [one.path for one in changed]
    return []


def _decided(
    namespace: argparse.Namespace, path: Path, snapshot: Snapshot, asks: bool, out: TextIO
) -> Changed | None:
    """Show one file's rewrites and return what is to be written; None: nothing."""
    if (read := _read(path)) is None:
        return None
    raw, source = read
    text, made, left = _rewritten(source, path, snapshot, namespace.unsafe and not asks, None)
    if made:
        _list(path, made, out)
        _show_diff(path, source, text, out)
        if asks and not _yes(say(t("rewrite {file} so? [y/N] ", file=shown(str(path))))):
            text = source
    if asks and left:
        text = _rewritten(text, path, snapshot, True, out)[0]
    elif left:
        complain(t("{file}: left out, as they may change what the script does: {left} rewrites. A terminal asks for each, --unsafe does them all.", file=str(path), left=left))  # fmt: skip
    mark = BOM if raw.startswith(BOM.encode()) else ""
    return Changed(path, raw, mark + text) if text != source else None


def _read(path: Path) -> tuple[bytes, str] | None:
    """Return a script's bytes and text; None where it is not to be rewritten, which is said."""
    if path.suffix == ".ipynb":
        complain(t("{file} is a notebook: it is judged, not rewritten", file=str(path)))
        return None
    if not path.is_file():
        complain(t("{file} is no file that can be written: it is judged, not rewritten", file=str(path)))
        return None
    raw = path.read_bytes()
    try:
        return raw, raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        complain(
            t("{file} is not UTF-8: it is judged, not rewritten. Save it as UTF-8 first.", file=str(path))
        )
        return None


def _rewritten(
    source: str, path: Path, snapshot: Snapshot, unsafe: bool, ask_on: TextIO | None
) -> tuple[str, tuple[Proposal, ...], int]:
    """Return the text, what was rewritten, and how many rewrites may change what the script does."""
    from doctor import service
    from doctor.lint.rewrites import NotRewritable

    def wanted(one: Proposal) -> bool:
        if ask_on is None:
            return one.safe or unsafe
        return not one.safe and _wants(path, one, ask_on)

    try:
        found = service.rewrite_script(source, str(path), snapshot, wanted)
    except NotRewritable as error:
        complain(
            t("{file} is not rewritten, it could not be read: {error}", file=str(path), error=str(error))
        )
        return source, (), 0
    return found.source, found.made, sum(not one.safe for one in found.left)


def _wants(path: Path, one: Proposal, out: TextIO) -> bool:
    """Show one rewrite that may change what the script does, and ask for it."""
    _list(path, (one,), out)
    _show_diff(path, one.before, one.after, out)
    return _yes(say("do it? [y/N] "))


def _list(path: Path, made: tuple[Proposal, ...], out: TextIO) -> None:
    for one in made:
        print(shown(f"{path}:{one.line} [{one.id}] {say(one.title)}"), file=out)
        if one.risk is not None:
            print("    " + shown(say(t("may not be what you want: {why}", why=say(one.risk)))), file=out)


def _show_diff(path: Path, before: str, after: str, out: TextIO) -> None:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(path), str(path))
    for line in lines:
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        out.write(f"{shown(whole.rstrip())}\n" if out.isatty() else whole)


def _yes(question: str) -> bool:
    from doctor.commands.fix_dialog import ask

    return ask(question) in ("y", "yes")


def _write(changed: list[Changed], may_ask: bool) -> None:
    from doctor import service
    from doctor.commands.fix_dialog import repair, say_outcome, teller, waiting
    from doctor.journal import JournalError
    from doctor.lint.rewrites import as_fix

    fix = as_fix({printable(str(one.path.absolute())): one.text for one in changed})
    try:
        with service.change_machine(waiting) as journal:
            _refuse_what_moved(changed)
            for half in journal.half_done():
                repair(journal, half, may_ask)
            applied = service.apply_fix(journal, fix, lambda number, step: True, teller)
    except JournalError as error:
        raise CommandError(error.text) from None
    say_outcome(applied)
    if applied.outcome != "done":
        raise CommandError(applied.error or t("nothing was rewritten"))


def _refuse_what_moved(changed: list[Changed]) -> None:
    """A file that was saved while the question stood is not overwritten."""
    for one in changed:
        if one.path.read_bytes() != one.raw:
            raise CommandError(t("{file} was changed meanwhile; nothing was done to it", file=str(one.path)))
