"""What an alert says to somebody far away: one or two lines, nothing that names this machine or its owner. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.language import say
from doctor.redact_secrets import without_secrets
from doctor.render.run_text import figure, status_word, words_of
from runner.alerts import Alert
from runner.events import number
from runner.state import RunState
from runner.strings import printable
from runner.text import t
from runner.verdict_case import Verdict

LONGEST = 600
"""Characters; chats take 2048 bytes, and a Chinese character is three."""
# /root/autodl-tmp/me/train.py -> .../train.py
_PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/:'\",;()]+)+/(?=[^\s/:'\",;()]+)")
ENDS = {
    "completed": ("finished", "info"), "stopped": ("finished", "info"), "interrupted": ("finished", "info"), "ended": ("finished", "info"),
    "failed": ("failed", "fail"), "non-finite": ("failed", "fail"), "lost": ("failed", "fail"),
}  # fmt: skip
"""A status at the end -> kind and level."""


@dataclass(frozen=True)
class Message:
    """One thing to be told."""

    kind: str
    level: str
    run: str
    text: str

    @property
    def is_end(self) -> bool:
        return self.kind in ("finished", "failed")


def message_of(alert: Alert, run: str, hidden: tuple[str, ...] = ()) -> Message:
    """Return an alert as a message; ``hidden`` are words (host names) that do not leave this machine."""
    return _message(alert.kind, alert.level, run, say(alert.text), hidden)


def stalled(run: str, hidden: tuple[str, ...] = ()) -> Message:
    return _message("stalled", "warn", run, say("stalled: the trainer has been silent for long"), hidden)


def hung(verdict: Verdict, run: str, hidden: tuple[str, ...] = ()) -> Message:
    return _message("hung", "fail", run, say(verdict.sentence), hidden)


def end_of(state: RunState, status: str, run: str, hidden: tuple[str, ...] = ()) -> Message:
    """Return how a run ended: its status, the last step and loss, the metrics, and an error's own line."""
    kind, level = ENDS.get(status, ("failed", "fail"))
    parts = [status_word(status)]
    if state.step:
        parts.append(say(t("step {step}/{total}", step=state.step, total=state.steps_total or "?")))
    loss = number(state.last.get("loss"))
    if loss is not None:
        parts.append(f"{say('loss')} {figure(loss)}")
    metrics = state.finished.get("metrics")
    pairs = metrics.items() if isinstance(metrics, dict) else ()
    names = {"loss": say("eval loss")}
    parts += [f"{names.get(name, name)} {figure(number(value))}" for name, value in pairs]
    error = words_of(state.finished.get("error") or _last_failure(state))
    line = next((line for line in reversed(error.splitlines()) if line.strip()), "")
    return _message(kind, level, run, "\n".join([" · ".join(parts), *filter(None, [line.strip()])]), hidden)


def _last_failure(state: RunState) -> object:
    failures = [note.data.get("text") for note in state.notes if note.data.get("level") == "fail"]
    return failures[-1] if failures else ""


def trial(run: str = "-") -> Message:
    return Message("test", "info", run, say("a test: alerts of your runs will arrive here"))


def with_held_back(message: Message, count: int) -> Message:
    """Return ``message`` with the word that others were not sent."""
    more = say(t("({count} more {count:was|were} held back)", count=count))
    return Message(message.kind, message.level, message.run, f"{message.text}\n{more}")


def _message(kind: str, level: str, run: str, text: str, hidden: tuple[str, ...]) -> Message:
    return Message(kind, level, clean(run, hidden), clean(text, hidden))


def clean(text: str, hidden: tuple[str, ...] = ()) -> str:
    """Return ``text`` without credentials, folders and the ``hidden`` words, and not too long for a chat."""
    text = _PATH.sub(".../", without_secrets(text))
    for word in filter(None, hidden):
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", "***", text)
    text = "\n".join(printable(line) for line in text.splitlines())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
