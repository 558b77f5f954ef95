"""The parser of the command line: every verb named, one verb's options loaded, its words in the reader's language."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from doctor.commands import VERBS
from doctor.language import TYPE_CHECKING, say

if TYPE_CHECKING:
    from typing import Any


def build_parser(verb: str | None, language: str, alone: bool = False) -> argparse.ArgumentParser:
    """Return the parser with every verb named and only ``verb``'s own options loaded (None: every verb's).

    ``alone``: ``verb`` is the first word, so no other can be meant and none is named.
    """
    from doctor import __version__

    _speak(language)
    parser = argparse.ArgumentParser(
        prog=_program_name(),
        description=say(
            "Run it the moment you are on a rented GPU machine. Without a verb, in a terminal: the full-screen view."
        ),
        formatter_class=_Layout,
    )
    parser.add_argument("--version", action="version", version=f"rundoctor {__version__}")
    parser.add_argument("--lang", choices=("en", "zh"), help="English / 简体中文")
    if verb in ("", None):
        from doctor.commands import view

        view.configure(parser)

    def made(**options: Any) -> object:
        """Making every verb's parser takes longer than all the rest: those that nobody asks for are a name only."""
        name = str(options["prog"]).rpartition(" ")[2]
        return argparse.ArgumentParser(**options) if verb in (None, name) else _NameOnly()

    verbs: Any = parser.add_subparsers(dest="verb", metavar="VERB", prog=parser.prog, parser_class=made)  # type: ignore[call-overload]
    for name in (verb,) if verb and alone else VERBS:
        line = VERBS[name][1 if language == "zh" else 0]
        sentence = line[:1].upper() + line[1:] + ("." if language == "en" else "。")
        sub = verbs.add_parser(name, help=line, description=sentence, formatter_class=_Layout)
        if verb in (None, name):
            sub.add_argument(
                "--lang", choices=("en", "zh"), default=argparse.SUPPRESS, help="English / 简体中文"
            )
            importlib.import_module(f"doctor.commands.{name}").configure(sub)
    return parser


class _NameOnly:
    """Stands for the parser of a verb that this command line does not hold."""


def _program_name() -> str:
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - pathlib is not needed for --help
    return name if name in ("doctor", "rundoctor") else "doctor"


class _Layout(argparse.HelpFormatter):
    """argparse's layout, with Chinese signs counted as the two columns that they take, and without textwrap's patterns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        if 2 * len(text) <= width:
            return [text]
        if not text.isascii():
            from doctor.render.layout import wrap

            return wrap(text, width)
        lines = [""]
        for word in text.split():
            if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
                lines.append(word)
            else:
                lines[-1] += f" {word}" if lines[-1] else word
        return lines

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in self._split_lines(text, width - len(indent)))


def _columns() -> int:
    """Return the terminal's width, or COLUMNS, or 80; shutil, which knows the same, brings the compression libraries."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


def _speak(language: str) -> None:
    """Make argparse's own words ours: by itself it asks the system's catalogue, by the environment's language."""
    if hasattr(argparse, "_"):
        words = _argparse_words() if language == "zh" else {}
        setattr(argparse, "_", lambda text: words.get(text, text))  # noqa: B010 - not declared, but there in every release


def _argparse_words() -> dict[str, str]:
    """Return what argparse says -> the same in the reader's language."""
    return {
        "usage: ": say("usage: "),
        "options": say("options"),
        "positional arguments": say("positional arguments"),
        "show this help message and exit": say("show this help message and exit"),
        "show program's version number and exit": say("show program's version number and exit"),
        "%(prog)s: error: %(message)s\n": say("%(prog)s: error: %(message)s\n"),
        "argument %(argument_name)s: %(message)s": say("argument %(argument_name)s: %(message)s"),
        "the following arguments are required: %s": say("the following arguments are required: %s"),
        "unrecognized arguments: %s": say("unrecognized arguments: %s"),
        "expected one argument": say("expected one argument"),
        "expected at least one argument": say("expected at least one argument"),
        "not allowed with argument %s": say("not allowed with argument %s"),
        "one of the arguments %s is required": say("one of the arguments %s is required"),
        "ignored explicit argument %r": say("ignored explicit argument %r"),
        "invalid %(type)s value: %(value)r": say("invalid %(type)s value: %(value)r"),
        "invalid choice: %(value)r (choose from %(choices)s)": say(
            "invalid choice: %(value)r (choose from %(choices)s)"
        ),
        "ambiguous option: %(option)s could match %(matches)s": say(
            "ambiguous option: %(option)s could match %(matches)s"
        ),
    }
