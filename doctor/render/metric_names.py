"""What an evaluation's metrics are called."""

from __future__ import annotations

from doctor.language import say
from runner.strings import printable
from runner.text import t

_NAMES = {"loss": t("evaluation loss"), "accuracy": t("accuracy")}
"""Others keep the name that the trainer gives them: f1_macro, pearson, a function of the user's own."""


def metric_name(name: object) -> str:
    return say(_NAMES[name]) if isinstance(name, str) and name in _NAMES else printable(str(name))
