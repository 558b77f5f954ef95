"""Processes that hold a GPU or look like training. Stays quick on a machine with ten thousand of them."""

from __future__ import annotations

import os
import re
import time

from doctor.model import Process, Processes, Reading, Text, t
from doctor.probes import Context
from doctor.probes.device_nodes import existing_nodes
from doctor.probes.gaps import reason_of
from doctor.probes.proc_table import Seen, age_s, command, gpu_files, pids, see, uptime_s

OUR_CHILD = "/doctor/probes/nvml_child.py"
"""In the command line of our own question to NVML, which opens the cards' files and holds none of their memory."""
LIST_BUDGET_S = 1.5
"""For the names of all processes, newest first: ten thousand take a tenth of it on a quiet machine."""
BUDGET_S = 0.25
"""For looking into them, once their names are known: what may train is looked at first, however many others there are.

What neither reached is said, never taken for nothing."""
KEEP = 200

# Names as the kernel keeps them: python3.11, torchrun, pt_main_thread (torch renames its main thread), VLLM::EngineCor
_MAY_TRAIN = re.compile(
    r"python|^pt_|torch|accelerat|deepspeed|^ray|vllm|sglang|jupyter|ipython|llamafactory", re.I
)
# python train.py, python -m torch.distributed.run, accelerate launch sft.py, python -m ipykernel_launcher -f kernel-9.json
_TRAINS = re.compile(
    r"torchrun|torch\.distributed|accelerate|deepspeed|train|fine-?_?tun|\bsft\b|\bdpo\b|\blora\b|llamafactory|"
    r"ipykernel|vllm|sglang|^\[?ray::",
    re.I,
)


def probe(context: Context) -> Reading[Processes]:
    """Walk /proc once. A process that we may not look into is no error."""
    try:
        numbers = pids(context)
    except OSError as error:
        why = t("the processes in /proc could not be listed: {error}", error=reason_of(error))
        return Reading(status="failed", why=why, source="/proc")
    walk = _Walk(context)
    reached = walk.over(numbers)
    unread: dict[str, Text] = {}
    if reached < len(numbers):
        unread["items"] = t(
            "only {reached} of {all} processes were looked at", reached=reached, all=len(numbers)
        )
    if walk.closed:
        unread["gpu_files"] = t(
            "the open files of {count} {count:process|processes} of other users may not be listed: run as root to see them",
            count=walk.closed,
        )
    return Reading(status="ok", value=Processes(items=tuple(walk.found), unread=unread), source="/proc")


class _Walk:
    """One pass over the process table."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.has_gpu = bool(existing_nodes(context))
        self.uptime = uptime_s(context)
        self.found: list[Process] = []
        self.closed = 0
        """User processes whose open files we could not list, where there is a GPU they could hold."""

    def over(self, numbers: list[int]) -> int:
        """Look at ``numbers``, names that train first, then the newest, while there is time; return how many were done."""
        table, named = self._named(numbers)
        end = time.monotonic() + BUDGET_S
        for done, seen in enumerate(table):
            if time.monotonic() > end or len(self.found) >= KEEP:
                return named - (len(table) - done)
            self._look_at(seen)
        return named

    def _named(self, numbers: list[int]) -> tuple[list[Seen], int]:
        """Return the processes to look into, what may train first, and how many of ``numbers`` that is out of."""
        end = time.monotonic() + LIST_BUDGET_S
        table: list[Seen] = []
        named = 0
        for pid in reversed(numbers):
            if time.monotonic() > end:
                break
            named += 1
            seen = see(self.context, pid) if pid != os.getpid() else None
            if seen is not None and not seen.is_kernel_thread:
                table.append(seen)
        table.sort(key=lambda seen: not _MAY_TRAIN.search(seen.name))
        return table, named

    def _look_at(self, seen: Seen) -> None:
        files = gpu_files(self.context, seen.pid) if self.has_gpu else ()
        self.closed += files is None
        if files:
            line = command(self.context, seen)
            if OUR_CHILD not in line and seen.parent_pid != os.getpid():
                self._keep(seen, line, files)
        elif _MAY_TRAIN.search(seen.name):
            line = command(self.context, seen)
            if _TRAINS.search(line):
                self._keep(seen, line, ())

    def _keep(self, seen: Seen, line: str, files: tuple[str, ...]) -> None:
        self.found.append(
            Process(
                pid=seen.pid,
                parent_pid=seen.parent_pid,
                uid=seen.uid,
                command=line,
                state=seen.state,
                age_s=age_s(seen, self.uptime),
                rss_bytes=seen.rss_bytes,
                gpu_files=files,
                is_ours=None if seen.uid is None else seen.uid == os.getuid(),
                started_ticks=seen.start_ticks,
            )
        )
