"""What a person should know of the rows: left out, repeated, contradictory, also held out, encodings. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runner.survey import Survey
from runner.text import Text, t


def survey_notes(survey: Survey) -> Iterator[tuple[str, Text]]:
    """Yield ``(level, sentence)`` for what a person should know of the rows."""
    for part, counts in survey.counts.items():
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
    if survey.notes.misshapen_rows:
        yield (
            "warn",
            t(
                "{count} {count:row|rows} did not have the columns of their header and {count:is|are} left out",
                count=survey.notes.misshapen_rows,
            ),
        )
    others = {name: count for name, count in survey.notes.encodings.items() if name != "utf-8"}
    if others:
        shown = ", ".join(f"{name}: {count}" for name, count in sorted(others.items()))
        yield "info", t("not every file is UTF-8; read as {encodings}", encodings=shown)
