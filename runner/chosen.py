"""Rows handed on, each time the same: those of one fate, in their order; left off soon after somebody asks to stop."""

from __future__ import annotations

from collections.abc import Iterator

from runner.inputs import InputError
from runner.labels import TRAIN
from runner.plan import Plan
from runner.profile import DataSection
from runner.rows import ReadingNotes, Row, as_tagged
from runner.seen import RowDigest
from runner.signals import Stopped, StopRequest
from runner.sources import source_rows
from runner.survey import Source, Survey
from runner.text import t

LOOK_EVERY_ROWS = 512


def heeding(stop: StopRequest) -> Source:
    """Return the source of all rows, which raises :class:`Stopped` between two of them where that is asked for."""

    def rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
        for number, row in enumerate(source_rows(data, part, notes)):
            if number % LOOK_EVERY_ROWS == 0 and stop:
                raise Stopped
            yield row

    return rows


def chosen_rows(plan: Plan, survey: Survey, fate: int, stop: StopRequest) -> Iterator[tuple[int, Row]]:
    """Yield ``(source row, row)`` of one fate; source rows of separate held-out files count from 0 again.

    Raises:
        InputError: they are not those that were surveyed.
        Stopped: when asked to stop meanwhile.
    """
    for part in ("train", "eval"):
        if fate not in survey.fate[part]:
            continue
        digest = RowDigest()
        for number, row in enumerate(heeding(stop)(plan.profile.data, part, ReadingNotes())):
            digest.add(repr(row))
            if number < len(survey.fate[part]) and survey.fate[part][number] == fate:
                yield number, as_tagged(row) if survey.tagged else row
        if digest != survey.digests[part]:
            raise InputError(t("data.{part}: the rows were not the same when they were read again; "
                               "they must come in one order, without chance", part=part))  # fmt: skip


def training_texts(plan: Plan, survey: Survey, stop: StopRequest) -> Iterator[str]:
    for _, row in chosen_rows(plan, survey, TRAIN, stop):
        yield row.text
        if row.pair:
            yield row.pair
