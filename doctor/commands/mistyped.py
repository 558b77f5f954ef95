"""What was meant by a first word that is no verb: a verb close to it, or the verb that takes such a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.text import t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.text import Text

_SCRIPTS = (".py", ".ipynb")
_LOGS = (".log", ".out", ".err", ".txt")


def meant(word: str, verbs: Iterable[str]) -> Text:
    """Return the sentence that says that ``word`` is no verb, and what to type in its place."""
    if word.endswith(_SCRIPTS):
        return t("{word} is no verb: `doctor lint {word}` reads a script, `doctor run -- python {word}` runs it", word=word)  # fmt: skip
    if word.endswith(_LOGS):
        return t("{word} is no verb: `doctor explain {word}` explains a log", word=word)
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), list(verbs), n=1, cutoff=0.6)
    verb = _OTHER_WORDS.get(word.lower()) or (close[0] if close else None)
    if verb:
        return t("{word} is no verb: did you mean `doctor {verb}`? `doctor --help` lists them all", word=word, verb=verb)  # fmt: skip
    return t("{word} is no verb: `doctor --help` lists them all", word=word)


_OTHER_WORDS = {
    "diagnose": "check", "doctor": "check", "status": "check", "info": "check", "list": "runs", "ls": "runs", "ps": "runs",
    "train": "run", "start": "run", "resume": "run --resume last", "log": "explain", "why": "check --why ID", "ui": "--web",
    "gpu": "check", "install": "recommend", "torch": "recommend", "infer": "predict", "memory": "plan", "version": "--version",
}  # fmt: skip
