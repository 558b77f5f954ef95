"""How high the four panes of a wide screen are: each as much as it has to say, none so little that it says nothing."""

from __future__ import annotations

from typing import NamedTuple

BORDER = 1
"""The title's row."""
LEAST = 6
CURVES_SHARE, LOG_SHARE = 0.55, 0.5
"""The curves have at least, the log at most so much of the height while the other pane of its side has more to say."""


class Heights(NamedTuple):
    """Rows, titles counted; the left side holds curves over stacks, the right one the machine over the log."""

    curves: int
    machine: int
    stacks: int
    log: int


def heights(room: int, machine_rows: int, stacks_rows: int, log_rows: int) -> Heights:
    """Return the heights for ``room`` rows, from how many rows each pane has to show; the curves take what there is."""
    most = room - max(LEAST, round(room * CURVES_SHARE))
    stacks = min(max(LEAST, stacks_rows + BORDER), max(LEAST, most))
    log_wants = max(LEAST, log_rows + BORDER)
    left_by_machine = room - max(LEAST, machine_rows + BORDER)
    log = max(LEAST, min(log_wants, round(room * LOG_SHARE), max(left_by_machine, LEAST)))
    if left_by_machine > log:  # nobody else wants it
        log = left_by_machine
    return Heights(max(1, room - stacks), max(1, room - log), stacks, log)
