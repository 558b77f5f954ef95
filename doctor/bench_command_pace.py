"""How fast one run of a command was, by its own log, and how much memory it held."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from doctor.probes.process_tree import tree_of
from doctor.prove import last_words
from doctor.trainer_pid import read_mark
from runner.child.memory_guard import status_bytes
from runner.events import read_events
from runner.rundir import RunDir
from runner.text import Text, t

LEAST_STEPS = 5
WORTH_STEPS, WORTH_S = 30, 15.0
"""So many steps over so long a time are enough of a run: more would prove little more."""
LAST_S = 2.0
"""A log is read a moment after it was written."""


class Paced(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one run was: ``pace`` in steps a second, or in runs a second where its log told no steps."""

    pace: float
    by_steps: bool
    steps: int = 0
    worth_s: float | None = None
    """From its start until there were steps enough; None: there never were."""
    losses: dict[int, float] = {}
    """By step, as its log told them."""
    peak_bytes: int = 0
    """The most that one of its processes held; 0: it was not seen."""


def pace_of(run: RunDir, stopped: bool) -> Paced | Text:
    """Return how fast a run was by its own events; a sentence where it failed or told too little."""
    steps: list[tuple[int, float]] = []
    finished: dict[str, object] = {}
    losses: dict[int, float] = {}
    begun = 0.0
    for path in sorted(run.events.glob("*.jsonl")):
        for event, _ in read_events(path):
            begun = min(begun or event.t, event.t)
            if event.kind == "step" and event.step:
                steps.append((event.step, event.t))
                if isinstance(loss := event.data.get("loss"), (int, float)):
                    losses[event.step] = float(loss)
            elif event.kind == "run-finished" and event.source == "log":
                finished = event.data
    if not stopped and finished.get("exit_code") != 0:
        return t("the command ended with status {code}: {words}", code=str(finished.get("exit_code", "?")), words=last_words(run))  # fmt: skip
    steps.sort(key=lambda one: one[1])
    kept = steps[len(steps) // 10 :]
    if len(kept) >= LEAST_STEPS and kept[-1][0] > kept[0][0] and kept[-1][1] > kept[0][1]:
        pace = (kept[-1][0] - kept[0][0]) / (kept[-1][1] - kept[0][1])
        return Paced(
            pace=pace, by_steps=True, steps=kept[-1][0], losses=losses, worth_s=_worth_s(steps, begun)
        )
    seconds = finished.get("seconds")
    if stopped:
        return t("it did not end in its time, and its log told {steps} {steps:step|steps}: too few to compare. --run-seconds gives it more; a line "
                 "such as \"step 10/100 loss 0.5\" for each step is what is read", steps=len(steps))  # fmt: skip
    if not isinstance(seconds, (int, float)) or seconds <= 0:
        return t("how long the command ran could not be read")
    return Paced(pace=1 / float(seconds), by_steps=False)


def _worth_s(steps: list[tuple[int, float]], begun: float) -> float | None:
    return next((at - begun + LAST_S for step, at in steps if step - steps[0][0] >= WORTH_STEPS and at - steps[0][1] >= WORTH_S), None)  # fmt: skip


def memory_of(run: RunDir) -> int:
    """Return the most bytes that one of the command's processes has held so far, as the kernel counts it; 0: none is seen."""
    mark = read_mark(run.trainer_pid)
    return max((_high_water(pid) for pid in tree_of(mark.pid)), default=0) if mark else 0


def _high_water(pid: int) -> int:
    with suppress(OSError, LookupError):  # it ended meanwhile, or this kernel keeps no such mark
        return status_bytes("VmHWM", pid)
    return 0
