"""The four panes of a wide screen share its height by what they have to say."""

from __future__ import annotations

import pytest

from doctor.tui.pane_heights import Heights, heights


@pytest.mark.parametrize(
    ("room", "machine", "stacks", "log", "expected"),
    [
        (40, 33, 8, 3, Heights(31, 34, 9, 6)),
        (40, 33, 8, 60, Heights(31, 34, 9, 6)),
        (40, 10, 8, 60, Heights(31, 11, 9, 29)),
        (40, 5, 3, 3, Heights(34, 6, 6, 34)),
        (40, 80, 80, 3, Heights(22, 34, 18, 6)),
        (12, 30, 30, 30, Heights(6, 6, 6, 6)),
        (3, 30, 30, 30, Heights(1, 1, 6, 6)),
    ],
    ids=["one card fits whole", "a long log waits for the machine", "a short machine leaves the log the rest",
         "little to say", "much to say: the curves keep their share", "low", "lower than anything"],
)  # fmt: skip
def test_height_goes_where_it_is_needed(
    room: int, machine: int, stacks: int, log: int, expected: Heights
) -> None:
    assert heights(room, machine, stacks, log) == expected
