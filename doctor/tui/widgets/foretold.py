"""The first steps' peak of memory, foretold and measured, where the trainer told it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes, indent
from doctor.tui.view import RunView
from doctor.tui.widgets.panel_rows import LABEL_WIDTH, label_row, unknown
from doctor.tui.words import one_line
from runner.events import number
from runner.text import t


def foretold_rows(view: RunView, device: str, width: int) -> Iterator[Styled]:
    """Yield the rows of a run on ``device`` (``cuda`` ``cpu``); a run on another has none."""
    memory = view.memory
    measured, predicted = number(memory.get("measured_bytes")), number(memory.get("predicted_bytes"))
    if memory.get("device") != device or measured is None:
        return
    words = [say(t("{size} of tensors", size=human_bytes(measured)))]
    if predicted is not None:
        words.append(say(t("foretold {size}", size=human_bytes(predicted))))
    worst = number(memory.get("worst_bytes"))
    if worst is not None:
        words.append(say(t("longest samples {size}", size=human_bytes(worst))))
    is_parted = memory.get("parted") is True
    for index, line in enumerate(indent(" · ".join(words), width - LABEL_WIDTH, "", "")):
        yield label_row(say("step's peak") if index == 0 else "", line, "yellow" if is_parted else "")
    if memory.get("why") is not None:
        why = one_line(memory["why"])
        yield from unknown(say(t("the step's peak could not be foretold: {why}", why=why)), width)
