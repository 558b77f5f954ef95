"""``doctor explain [FILE|-]``: a traceback or a log, explained against this machine (or a recorded one)."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.commands.reading import Tail
    from doctor.explain import Explained, Explanation
    from doctor.explain.frames import Raised

HINT_AFTER_S = 3.0
"""When a pipe that has not ended is said to be waited for."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help=say("the log or traceback; - or nothing: standard input"),
    )
    parser.add_argument(
        "--facts",
        metavar="FILE",
        type=Path,
        help=say("hold it against a recorded machine instead of this one"),
    )
    parser.add_argument(
        "--script",
        metavar="FILE",
        help=say("the training script that gave the text: look for the cause in it too"),
    )
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    parser.add_argument(
        "--no-machine", action="store_true", help=say("only say what the text means; read no machine")
    )
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands.check import load_or_examine

    tail = _read(namespace.file)
    snapshot = None if namespace.no_machine else load_or_examine(namespace.facts, namespace.python)
    explanation = service.explain(tail.text, snapshot, _script(namespace.script, snapshot is not None))
    explanation = _with_places(explanation, tail)
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(explanation), indent=1).decode())
    else:
        print("\n".join(_lines(explanation)))
    return Exit.OK if explanation.known else Exit.FOUND


def _script(name: str | None, has_machine: bool) -> tuple[str, str] | None:
    from runner.text import t

    if name is None:
        return None
    if not has_machine:
        text = t("--script is judged by the versions installed: leave --no-machine out")
        raise CommandError(text, Exit.USAGE)
    from doctor.commands.reading import script_or_complaint

    return script_or_complaint(name), name


def _read(name: str) -> Tail:
    from doctor.commands.reading import read_tail
    from doctor.explain import TEXT_LIMIT_BYTES
    from runner.text import t

    try:
        if name != "-":
            with open(name, "rb") as file:
                tail = read_tail(file, TEXT_LIMIT_BYTES)
        else:
            with _hint():
                tail = read_tail(sys.stdin.buffer, TEXT_LIMIT_BYTES)
    except OSError as error:
        raise CommandError(
            t("cannot read {file}: {error}", file=name, error=error.strerror or str(error)), Exit.USAGE
        ) from None
    if not tail.text.strip() and name == "-":
        raise CommandError(t("nothing came on stdin: there is no text to explain"), Exit.USAGE)
    if not tail.text.strip():
        raise CommandError(t("{file} is empty: there is no text to explain", file=name), Exit.USAGE)
    return tail


@contextmanager
def _hint() -> Iterator[None]:
    """Say what is waited for: at once in a terminal, and of a pipe (``tail -f log |``) that does not end soon."""
    words = say("Paste the error, then Ctrl-D:")
    if not sys.stdin.isatty():
        words = say("Still reading; Ctrl-C explains what has come so far.")
    waiting = threading.Timer(0 if sys.stdin.isatty() else HINT_AFTER_S, print, [words], {"file": sys.stderr})
    if sys.stderr.isatty():
        waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


def _with_places(explanation: Explanation, tail: Tail) -> Explanation:
    """Number lines as the file does; from the end (-1 is the last) where what stands before was not counted."""
    import msgspec

    replace = msgspec.structs.replace
    shift = tail.lines_before
    if shift is None:
        shift = -tail.text.count("\n") - (not tail.text.endswith("\n")) - 1
    known = tuple(
        replace(item, match=replace(item.match, line_number=item.match.line_number + shift))
        for item in explanation.known
    )
    return replace(explanation, known=known)


def _place(number: int) -> str:
    from runner.text import t

    if number > 0:
        return say(t("line {number}: ", number=number))
    return say(t("line {number} from the end: ", number=-number))


def _lines(explanation: Explanation) -> Iterator[str]:
    from doctor.render.layout import columns, indent
    from doctor.render.text import printable_text

    width = columns(sys.stdout)
    if not explanation.known:
        yield say("Unknown: none of the failures that this doctor knows is in the text.")
        if explanation.last_error:
            yield from indent(printable_text(explanation.last_error), width, "  ", "  ")
        if explanation.raised is not None:
            yield from _raised(explanation.raised, width)
        yield say("`doctor check` says what is wrong with the machine itself.")
        return
    for index, item in enumerate(explanation.known):
        if index:
            yield ""
        yield from indent(
            printable_text(item.match.line),
            width,
            _place(item.match.line_number),
            "  ",
        )
        yield from indent(printable_text(say(item.match.meaning)), width, "  ", "  ")
        if item.match.advice is not None:
            yield from indent(printable_text(say(item.match.advice)), width, "  → ", "    ")
        yield from _against_machine(item, width)


def _raised(raised: Raised, width: int) -> Iterator[str]:
    """Say where to look, when what happened is not known."""
    from doctor.render.layout import indent
    from doctor.render.text import printable_text
    from runner.text import t

    if not raised.library:
        where = t("It was raised in your own code: {place}.", place=raised.place)
    elif raised.own:
        where = t(
            "It was raised inside {library} ({place}); the last line of your own code before it is {own}.",
            library=raised.library, place=raised.place, own=raised.own,
        )  # fmt: skip
    else:
        where = t("It was raised inside {library} ({place}).", library=raised.library, place=raised.place)
    yield from indent(printable_text(say(where)), width, "  ", "  ")
    if raised.library:
        advice = t(
            "If the same line worked before, a version has changed: `python -m pip check`, then the release notes of {library}; else look at what your line passes.",
            library=raised.library,
        )
        yield from indent(printable_text(say(advice)), width, "  → ", "    ")


def _against_machine(item: Explained, width: int) -> Iterator[str]:
    from doctor.render.layout import indent
    from doctor.render.text import level_word, printable_text
    from runner.text import t

    for finding in item.confirmed:
        words = say(
            t("Confirmed here: {title} [{id}]", title=printable_text(say(finding.title)), id=finding.id)
        )
        yield from indent(f"{level_word(finding.level)}  {words}", width, "  ", "      ")
        if finding.advice is not None:
            yield from indent(
                printable_text(say(finding.advice)), width, "      → ", "        ", commands=True
            )
    if item.refuted and not item.confirmed:
        yield from indent(
            say(t("Looked for here, and not found: {ids}", ids=", ".join(item.refuted))), width, "  ", "    "
        )
    if item.in_script:
        where = t(
            "It may stand in the script: `doctor lint FILE`, or --script FILE here ({ids})",
            ids=", ".join(item.in_script),
        )
        yield from indent(say(where), width, "  ", "    ")
    if item.untold:
        told = t("Not looked at, as --no-machine asks: {ids}", ids=", ".join(item.untold))
        yield from indent(say(told), width, "  ", "    ")
    if item.open:
        yield from indent(
            say(t("Could not be looked at here: {ids}", ids=", ".join(item.open))), width, "  ", "    "
        )
