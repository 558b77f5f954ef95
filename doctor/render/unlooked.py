"""What of a report is no finding: sections that could not be read, that nobody looked at, checks of ours that broke."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.language import say
from doctor.model import Report, t
from doctor.render.layout import indent, pad, paint
from doctor.render.section_names import listed, section_name
from runner.strings import shown

_MARGIN = " " * 9
ASKED_SEPARATELY = frozenset({"workload", "incident", "data", "deep", "provenance"})
"""Sections that a plain check does without; any other that nobody looked at is missing from a recorded machine."""
_OF_THE_CARDS = ("gpus", "gpu_processes")


def never_looked(report: Report) -> list[str]:
    """Return what a plain check reads and nobody looked at here (a recorded machine's holes), in words."""
    return [section_name(name) for name in report.not_looked if name not in ASKED_SEPARATELY]


def could_not_look(report: Report, width: int, colour: bool) -> Iterator[str]:
    """Yield what has no answer and why; of cards that a finding above already explains only how much."""
    explained = _OF_THE_CARDS if _cards_are_explained(report) else ()
    for item in report.unanswered:
        if item.section in explained:
            words = t(
                "because of the above, {section} could not be read: {count} {count:check has|checks have} no answer.",
                section=section_name(item.section),
                count=len(item.checks),
            )
        else:
            words = t(
                "{section} could not be read: {why}. {count} {count:check has|checks have} no answer.",
                section=section_name(item.section),
                why=say(item.why).rstrip(".。"),
                count=len(item.checks),
            )
        first, *rest = indent(shown(say(words)), width, "", _MARGIN)
        yield f"{paint(pad(say('unknown'), 7), 'unknown', colour)}  {first}"
        yield from rest
    for crashed in report.crashed:
        words = t("a check of ours broke, please report it: {what}", what=shown(crashed))
        yield from indent(say(words), width, "", _MARGIN)
    yield from (paint(line, "dim", colour) for line in _holes(report, explained, width))


def _cards_are_explained(report: Report) -> bool:
    return any(
        item.finding.level == "fail"
        and (item.finding.id == "gpus-not-readable" or "gpus-not-readable" in item.finding.cause_of)
        for item in report.diagnoses
    )


def _holes(report: Report, explained: tuple[str, ...], width: int) -> Iterator[str]:
    if missing := never_looked(report):
        words = say(t("nobody looked at: {names}; nothing is said of them", names=listed(missing)))
        yield from indent(shown(words), width, "", "  ")
    reasons = [
        f"{section_name(item.section)} ({say(item.why).rstrip('.。')})"
        for item in report.unread
        if item.section not in explained
    ]
    if reasons:
        words = say(t("could not look at: {names}", names="; ".join(reasons)))
        yield from indent(shown(words), width, "", "  ")
