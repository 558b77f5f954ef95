"""Labels: the names in one, and the classes of a whole survey in the order of their ids. Pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

from runner.inputs import InputError
from runner.profile import TEXT_ONLY, Profile
from runner.rows import Label
from runner.text import printable, t

if TYPE_CHECKING:
    from runner.survey import Survey

DROPPED, TRAIN, EVAL = 0, 1, 2
"""What becomes of a row."""


def label_names(label: Label) -> list[str]:
    """Return the class names of a label; ``a|b`` and a JSON list are two of them."""
    if label is None:
        return []
    return list(label) if isinstance(label, list) else [label]


def find_classes(profile: Profile, survey: Survey) -> list[str]:
    """Return the classes in the order of their ids (numbers by value, else by name); none for regression.

    Raises:
        InputError: one class only, or a label outside the profile's list, or a held-out class never trained
        on.
    """
    if profile.model.task in TEXT_ONLY:
        return []
    if profile.model.task == "regression":
        _check_numbers(survey)
        return []
    seen: dict[str, Counter[str]] = {part: Counter() for part in ("train", "eval")}
    for part in seen:
        for row, fate in enumerate(survey.fate[part]):
            if fate != DROPPED:
                seen[part].update(label_names(survey.labels[part][row]))
    classes = profile.data.labels or sorted(seen["train"], key=_class_order)
    for part, names in seen.items():
        unknown = sorted(set(names) - set(classes))
        if unknown:
            shown = ", ".join(printable(name) for name in unknown[:5])
            known = ", ".join(printable(name) for name in classes[:20])
            raise InputError(
                t(
                    "data.{part}: unknown label(s) {labels}; known are {known}",
                    part=part,
                    labels=shown,
                    known=known,
                )
            )
    if len(classes) < 2 and profile.model.task == "classification":
        only = printable(classes[0]) if classes else "-"
        raise InputError(t("data.label: every row has the label {label}: nothing to learn", label=only))
    return classes


def _check_numbers(survey: Survey) -> None:
    for part, row in itertools.chain(survey.rows_with(TRAIN), survey.rows_with(EVAL)):
        label = survey.labels[part][row]
        try:
            good = math.isfinite(float(str(label)))
        except ValueError:
            good = False
        if not good:
            shown = printable(str(label))[:40]
            raise InputError(
                t("data.{part}, row {row}: the label {label} is not a number, as regression wants",
                  part=part, row=row, label=shown)
            )  # fmt: skip


def _class_order(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
