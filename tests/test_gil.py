"""How much of the time the GIL is held: from counts, and from real processes that hold it always, never, and in a side thread."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from doctor.gil import EVERY, gil_shares, is_due
from doctor.pyspy import Window, find_pyspy
from doctor.stacks import Frame, Stack

BUSY = "x = 0\nwhile True: x += 1"
ASLEEP = "import time\ntime.sleep(600)"
ASIDE = "import threading, time\ndef busy():\n    x = 0\n    while True: x += 1\nthreading.Thread(target=busy).start()\ntime.sleep(600)"


def stack(count: int, is_main: bool = True) -> Stack:
    return Stack((7,), 7 if is_main else 8, "" if is_main else "pin", (Frame("f", "x.py", 1),), count)


@pytest.mark.parametrize(
    ("stacks", "errors", "told"),
    [
        ([stack(49)], 0, (1.0, 1.0, 49)),
        ([], 0, (0.0, 0.0, 49)),
        ([stack(10), stack(15, is_main=False)], 0, (0.5102, 0.2041, 49)),
        ([stack(20)], 9, (0.5, 0.5, 40)),
        ([stack(60)], 0, (1.0, 1.0, 60)),
        ([stack(20), Stack((7, 9), 9, "", (Frame("f", "x.py", 1),), 30)], 0, (0.4082, 0.4082, 49)),
    ],
    ids=[
        "always",
        "never",
        "two-threads",
        "failed-looks-count-for-nothing",
        "more-than-planned",
        "a-worker-has-its-own",
    ],
)
def test_the_share_is_of_all_looks(stacks: list[Stack], errors: int, told: tuple[float, float, int]) -> None:
    assert tuple(gil_shares(7, stacks, errors, 5, 10).values()) == told


def test_few_or_mostly_failed_looks_tell_nothing() -> None:
    assert gil_shares(7, [stack(5)], 0, 5, 2) == {}
    assert gil_shares(7, [stack(5)], 40, 5, 10) == {}


def test_one_window_in_six_looks_at_the_gil() -> None:
    assert [is_due(n) for n in range(2 * EVERY)].count(True) == 2


@pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")
@pytest.mark.parametrize(
    ("program", "share", "main"),
    [(BUSY, (0.9, 1.0), (0.9, 1.0)), (ASLEEP, (0.0, 0.1), (0.0, 0.1)), (ASIDE, (0.9, 1.0), (0.0, 0.1))],
    ids=["busy", "asleep", "aside"],
)
def test_a_real_process_is_seen_to_hold_it(
    program: str, share: tuple[float, float], main: tuple[float, float]
) -> None:
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        time.sleep(1.0)
        window = Window(process.pid, 2, 20, gil_only=True)
        sample = window.wait()
    finally:
        process.kill()
        process.wait()
    told = gil_shares(process.pid, sample.stacks, sample.errors, 2, 20)
    assert share[0] <= told["gil_share"] <= share[1], (told, sample)
    assert main[0] <= told["gil_main_share"] <= main[1], (told, sample)
