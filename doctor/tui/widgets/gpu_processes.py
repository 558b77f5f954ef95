"""The processes on the cards: those that are provably ours by name, others as what they are."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes
from doctor.tui.view import RunView
from doctor.tui.widgets.panel_rows import plain, unknown
from doctor.tui.words import one_line
from runner.events import number
from runner.strings import printable
from runner.text import t


def process_rows(view: RunView, width: int) -> Iterator[Styled]:
    """Yield the block."""
    processes = view.gpus.get("processes")
    if not isinstance(processes, list):
        why = one_line(view.gpus.get("processes_why")) or say("not sampled in this run")
        yield from unknown(say(t("processes on the GPU: {why}", why=why)), width)
        return
    yield Styled(say("Processes on the GPU"), "bold")
    if not processes:
        yield Styled(say("none"), "dim")
    for process in (one for one in processes if isinstance(one, dict)):
        used = human_bytes(number(process.get("used_bytes")))
        row = Styled.assemble(
            (f"{plain(process.get('gpu_index')):>2} ", "bold"), f"{plain(process.get('pid')):>8} {used:>8}  "
        )
        command = process.get("command")
        if command is None:
            row.append("? " + say("of someone outside this container"), "magenta")
        else:
            row.append(printable(str(command)))
        yield row
