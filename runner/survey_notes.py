"""What a person should know of the rows: left out, repeated, contradictory, also held out, odd files and labels. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runner.labels import EVAL, TRAIN, label_names
from runner.rows import ReadingNotes
from runner.survey import Counts, Survey
from runner.text import Text, printable, t

Note = tuple[str, Text]
"""``(level, sentence)``"""

LINES_OF_A_TEXT = 200
"""A row over more lines is likelier a quote that was closed late."""
GUESSED = ("cp1252", "latin-1")
"""Encodings that read nearly everything: that they read a file says little."""


def survey_notes(survey: Survey) -> Iterator[Note]:
    """Yield ``(level, sentence)`` for what a person should know of the rows."""
    for part, counts in survey.counts.items():
        yield from _row_notes(part, counts)
    yield from _file_notes(survey.notes)
    yield from _label_notes(survey)


def _row_notes(part: str, counts: Counts) -> Iterator[Note]:
    if counts.empty or counts.unlabelled:
        yield (
            "warn",
            t(
                "data.{part}: {empty} {empty:row|rows} without text and {unlabelled} without label are left out",
                part=part,
                empty=counts.empty,
                unlabelled=counts.unlabelled,
            ),
        )
    if counts.misaligned:
        yield (
            "warn",
            t(
                "data.{part}: {count} {count:row has|rows have} not as many tags as words and are left out",
                part=part,
                count=counts.misaligned,
            ),
        )
    if counts.duplicates:
        yield (
            "info",
            t(
                "data.{part}: {count} {count:row repeats|rows repeat} an earlier text",
                part=part,
                count=counts.duplicates,
            ),
        )
    if counts.contradictions:
        yield (
            "warn",
            t(
                "data.{part}: {count} of the repeated texts have another label than the first",
                part=part,
                count=counts.contradictions,
            ),
        )
    if counts.held_out_also_trained:
        yield (
            "warn",
            t(
                "{count} of {rows} held-out texts are also trained on: the accuracy will be too good",
                count=counts.held_out_also_trained,
                rows=counts.rows,
            ),
        )


def _file_notes(notes: ReadingNotes) -> Iterator[Note]:
    if notes.misshapen_rows:
        yield "warn", t("{count} {count:row|rows} did not have the columns of their header and {count:is|are} left out (the first: {place})",
                        count=notes.misshapen_rows, place=notes.misshapen_at)  # fmt: skip
    if notes.nul_characters:
        yield "warn", t("{count} zero {count:character|characters} in the texts {count:was|were} taken out (the first: {place}): was the file "
                        "damaged when a disk or a machine failed?", count=notes.nul_characters, place=notes.nul_at)  # fmt: skip
    if notes.most_lines > LINES_OF_A_TEXT:
        yield "warn", t("{place}: one text goes over {lines} lines: is a quote missing before it ends?",
                        place=notes.most_lines_at, lines=notes.most_lines)  # fmt: skip
    others = {name: count for name, count in notes.encodings.items() if name != "utf-8"}
    if others:
        shown = ", ".join(f"{name}: {count}" for name, count in sorted(others.items()))
        level = "warn" if any(name in others for name in GUESSED) else "info"
        yield level, t("not every file is UTF-8; read as {encodings}", encodings=shown)


def _label_notes(survey: Survey) -> Iterator[Note]:
    if not survey.classes:
        return
    trained, held_out = _labels_of(survey, TRAIN), _labels_of(survey, EVAL)
    untrained = [name for name in survey.classes if name not in trained]
    if untrained:
        shown = ", ".join(printable(name)[:40] for name in untrained[:5])
        yield "warn", t("no training row has the {count:label|labels} {labels}: {count:it|they} cannot be learnt",
                        count=len(untrained), labels=shown)  # fmt: skip
    if len(held_out) == 1 and len(survey.classes) > 1:
        yield "warn", t("every held-out row has the label {label}: the accuracy says little", label=printable(min(held_out))[:40])  # fmt: skip


def _labels_of(survey: Survey, fate: int) -> set[str]:
    return {name for part, row in survey.rows_with(fate) for name in label_names(survey.labels[part][row])}
