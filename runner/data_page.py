"""A profile's rows before any training: how many of each kind, what is odd about them, or why they cannot be trained on."""

from __future__ import annotations

from collections import Counter

import msgspec

from runner.inputs import InputError
from runner.labels import EVAL, TRAIN, label_names
from runner.profile import Profile
from runner.sources import source_rows
from runner.survey import Counts, Survey, survey_rows
from runner.survey_notes import survey_notes
from runner.text import Text, t


class ClassRows(msgspec.Struct, frozen=True, kw_only=True):
    """One class and its rows after duplicates, the split and the limits."""

    name: str
    train: int
    held_out: int


class DataNote(msgspec.Struct, frozen=True):
    level: str
    """``fail``: there will be no training; ``warn`` or ``info``."""
    text: Text


class DataPage(msgspec.Struct, frozen=True, kw_only=True):
    read: dict[str, Counts] = {}
    """Rows of the ``train`` and ``eval`` sources, as they were read."""
    train: int = 0
    held_out: int = 0
    classes: list[ClassRows] = []
    notes: list[DataNote] = []

    @property
    def can_train(self) -> bool:
        return all(note.level != "fail" for note in self.notes)


def data_page(profile: Profile) -> DataPage:
    """Read all rows as a run would before its first step. Texts are not kept, and nothing is written."""
    try:
        survey = survey_rows(profile, source_rows)
    except InputError as error:
        return DataPage(notes=[DataNote("fail", error.problem)])
    except ModuleNotFoundError as error:
        text = t("the package {package} is wanted to read this data and is not in this interpreter",
                 package=error.name or "-")  # fmt: skip
        return DataPage(notes=[DataNote("fail", text)])
    return DataPage(
        read=survey.counts,
        train=survey.count(TRAIN),
        held_out=survey.count(EVAL),
        classes=_classes(survey),
        notes=[DataNote(level, text) for level, text in survey_notes(survey)],
    )


def _classes(survey: Survey) -> list[ClassRows]:
    rows: dict[int, Counter[str]] = {TRAIN: Counter(), EVAL: Counter()}
    for fate, counted in rows.items():
        for part, row in survey.rows_with(fate):
            counted.update(label_names(survey.labels[part][row]))
    return [
        ClassRows(name=name, train=rows[TRAIN][name], held_out=rows[EVAL][name]) for name in survey.classes
    ]
