"""A verdict and the open alerts in words: one line for a screen, rows for a report."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.language import say
from runner.alerts import Alert
from runner.strings import printable
from runner.text import Text, t
from runner.verdict import Verdict


def verdict_line(verdict: Verdict) -> str:
    """Return the verdict in one sentence, with what to try where there is something."""
    sentence = _said(verdict.sentence)
    if verdict.advice is None:
        return sentence
    return say(t("{verdict}. Try: {advice}", verdict=sentence, advice=_said(verdict.advice)))


def evidence_lines(verdict: Verdict) -> list[str]:
    return [_said(text) for text in verdict.evidence]


def alert_lines(alerts: Sequence[Alert]) -> list[str]:
    return [_said(alert.text) for alert in alerts]


def verdict_rows(verdict: Verdict) -> list[list[str]]:
    """Return the verdict as rows of a table: what it is, what to try, what was seen."""
    rows = [[say("where the time goes"), _said(verdict.sentence)]]
    if verdict.advice is not None:
        rows.append([say("try"), _said(verdict.advice)])
    return rows + [[say("seen"), line] for line in evidence_lines(verdict)]


def _said(text: Text) -> str:
    return printable(say(text))
