"""Disks and where things lie on them. Each file system is asked in its own thread: a dead server costs only itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from doctor.model import Reading, Storage, Text, ok, t
from doctor.probes.gaps import Gaps
from doctor.probes.mountinfo import parse_mountinfo
from doctor.probes.mounts import Statvfs, ask_size, mount_record, mounts_that_matter
from doctor.probes.place_looks import Looked, look, place_record, wanted_places
from doctor.probes.places import Wanted
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

T = TypeVar("T")

ANSWER_DEADLINE_S = 1.0
"""For all file systems together; one that has not answered by then is reported as such."""


def probe(
    context: Context, statvfs: Statvfs = os.statvfs, deadline_s: float = ANSWER_DEADLINE_S
) -> Reading[Storage]:
    """Read the mounts that matter and the places of caches and output. Nothing is written, nothing is walked."""
    gaps = Gaps(context)
    lines = gaps.parse("mounts", "/proc/self/mountinfo", parse_mountinfo)
    if lines is None:
        return Reading(status="failed", why=gaps.reasons["mounts"], source="/proc/self/mountinfo")
    wanted = wanted_places(context)
    end = time.monotonic() + deadline_s
    looked = ask_all({item.name: look(context, item) for item in wanted}, end - deadline_s / 2)
    real = {item.name: looked[item.name].path if item.name in looked else item.path for item in wanted}
    chosen = mounts_that_matter(lines, list(real.values()))
    sizes = ask_all({line.path: ask_size(context, line, statvfs) for line in chosen}, end)
    storage = Storage(
        mounts=tuple(mount_record(context, line, sizes.get(line.path)) for line in chosen),
        places=tuple(place_record(item, looked.get(item.name), real[item.name], lines) for item in wanted),
        unread=_silent_places(wanted, looked),
    )
    return ok(storage, "/proc/self/mountinfo, statvfs")


def _silent_places(wanted: tuple[Wanted, ...], looked: dict[str, Looked]) -> dict[str, Text]:
    silent = [item.path for item in wanted if item.name not in looked]
    paths = printable(", ".join(dict.fromkeys(silent)))
    return {"places": t("no answer from the file system of {paths}", paths=paths)} if silent else {}


# ---------------------------------------------------------------------------------------- asking with a deadline
def ask_all(questions: dict[str, Callable[[], T]], end: float) -> dict[str, T]:
    """Ask every question in a thread of its own and return the answers had by ``end`` (monotonic seconds)."""
    answers: dict[str, T] = {}
    threads = [
        threading.Thread(target=_ask, args=(answers, *item), daemon=True) for item in questions.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(answers)


def _ask(answers: dict[str, T], name: str, question: Callable[[], T]) -> None:
    answers[name] = question()
