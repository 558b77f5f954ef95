"""Labels: the names in one, and the classes of a whole survey in the order of their ids. Pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from runner.inputs import InputError
from runner.profile import TEXT_ONLY, Profile
from runner.rows import Label
from runner.text import printable, t

if TYPE_CHECKING:
    from runner.survey import Survey

DROPPED, TRAIN, EVAL = 0, 1, 2
"""What becomes of a row."""

MOST_CLASSES_SHARE, FEW_CLASSES = 0.5, 20
"""With more classes than this share of the rows, and than a few, the column is hardly one of labels."""

Place = Callable[[str, int], str]
"""Where a source row of a part stands: ``file:line``."""


def label_names(label: Label) -> list[str]:
    """Return the class names of a label; a list holds several."""
    if label is None:
        return []
    return list(label) if isinstance(label, list) else [label]


def find_classes(profile: Profile, survey: Survey, place: Place) -> list[str]:
    """Return the classes in the order of their ids (numbers by value, else by name); none for regression.

    Raises:
        InputError: one class only, hardly two rows of one, a label outside the profile's list, or a held-out class
            never trained on.
    """
    if profile.model.task in TEXT_ONLY:
        return []
    if profile.model.task == "regression":
        _check_numbers(survey, place)
        return []
    seen: dict[str, Counter[str]] = {part: Counter() for part in ("train", "eval")}
    for part in seen:
        for row, fate in enumerate(survey.fate[part]):
            if fate != DROPPED:
                seen[part].update(label_names(survey.labels[part][row]))
    if not seen["train"]:
        raise InputError(t("data.label: no row has a label"))
    classes = profile.data.labels or sorted(seen["train"], key=_class_order)
    for part, names in seen.items():
        unknown = sorted(set(names) - set(classes))
        if unknown:
            shown = ", ".join(printable(name)[:40] for name in unknown[:5])
            known = ", ".join(printable(name)[:40] for name in classes[:20])
            first = place(part, first_with(survey, part, set(unknown)))
            raise InputError(t("data.{part}: unknown label(s) {labels}, first at {place}; known are {known}", part=part, labels=shown,
                               place=first, known=known))  # fmt: skip
    if len(classes) < 2 and profile.model.task == "classification":
        raise InputError(
            t(
                "data.label: every row has the label {label}: nothing to learn",
                label=printable(classes[0])[:40],
            )
        )
    different, rows = len(seen["train"]), sum(seen["train"].values())
    if profile.model.task == "classification" and different > max(FEW_CLASSES, MOST_CLASSES_SHARE * rows):
        raise InputError(t("data.label: {classes} different labels in {rows} {rows:row|rows}: is it the column of the labels?",
                           classes=different, rows=rows))  # fmt: skip
    return classes


def first_with(survey: Survey, part: str, names: Collection[str]) -> int:
    """Return the first source row of a part that counts and has one of these labels."""
    rows = enumerate(zip(survey.fate[part], survey.labels[part], strict=True))
    return next(
        row
        for row, (fate, label) in rows
        if fate != DROPPED and not set(names).isdisjoint(label_names(label))
    )


def _check_numbers(survey: Survey, place: Place) -> None:
    for part, row in itertools.chain(survey.rows_with(TRAIN), survey.rows_with(EVAL)):
        label = survey.labels[part][row]
        try:
            good = math.isfinite(float(str(label)))
        except ValueError:
            good = False
        if not good:
            shown = printable(str(label))[:40]
            raise InputError(
                t("data.{part}: {place}: the label {label} is not a number, as regression wants",
                  part=part, place=place(part, row), label=shown)
            )  # fmt: skip


def _class_order(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
