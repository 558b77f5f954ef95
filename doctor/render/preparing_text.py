"""How far the rows of a run are tokenised, in words: before the first step it is all there is to see."""

from __future__ import annotations

from typing import Any

from doctor.language import say
from doctor.render.layout import human_seconds
from runner.events import amount, whole
from runner.text import t


def preparing_text(preparing: dict[str, Any]) -> str:
    """Return the newest ``preparing`` event as a sentence; empty: none came, or it is done."""
    done, total = whole(preparing.get("rows"), None), whole(preparing.get("rows_total"), None)
    if done is None or not total or done >= total:
        return ""
    rate, left = f"{amount(preparing.get('rows_per_s')) or 0:.0f}", amount(preparing.get("eta_seconds"))
    if left is None:
        return say(
            t("getting the rows ready: {done} of {total}, {rate} rows/s", done=done, total=total, rate=rate)
        )
    return say(t("getting the rows ready: {done} of {total}, {rate} rows/s, {left} left", done=done, total=total, rate=rate,
                 left=human_seconds(left)))  # fmt: skip
