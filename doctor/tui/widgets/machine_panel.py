"""GPUs, host and step time as the sampler saw them; what it could not read stands there with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.tui.view import RunView
from doctor.tui.widgets.gpu_panel import gpu_rows
from doctor.tui.widgets.host_panel import host_rows
from doctor.tui.widgets.panel_rows import bar_row
from doctor.tui.widgets.rank_rows import rank_rows
from runner.part_names import part_name
from runner.strings import printable


def machine_rows(view: RunView, width: int) -> list[Styled]:
    """Return the panel's rows; long ones are cut by the panel."""
    cards, others = (
        gpu_rows(view, width),
        (rank_rows(view, width), _split(view, width), host_rows(view, width)),
    )
    blocks = [list(rows) for rows in ((cards, *others) if _needs_card(view) else (*others, cards))]
    return [row for block in blocks if block for row in (*block, Styled())][:-1]


def _needs_card(view: RunView) -> bool:
    """Return whether the run trains on a card, or there is one; a run on the CPU is about something else."""
    return bool(view.gpus.get("gpus")) or not str(view.started.get("device") or "").startswith("cpu")


def _split(view: RunView, width: int) -> Iterator[Styled]:
    total = sum(view.split_seconds.values())
    if total <= 0:
        return
    yield Styled(say("Where the time goes"), "bold")
    for name, seconds in sorted(view.split_seconds.items(), key=lambda pair: -pair[1]):
        share = seconds / total
        yield bar_row(say(printable(part_name(name))), f"{share:.0%}", share, width)
