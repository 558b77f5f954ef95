"""Ranks whose torchrun was killed: the kernel tells them, they agree, save and leave, and whoever stands for them waits for that.

Nobody would see them train on, and the next start would meet them on their cards.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from runner.parent_end import get_at_parents_end
from runner.rank_record import RankLeft, read_ranks

POLL_S = 0.1


def stop_with_parent() -> None:
    """Have this process asked to stop when whoever started it ends, however it ends."""
    get_at_parents_end(signal.SIGTERM)


def orphans(run_path: Path) -> list[RankLeft]:
    """Return the ranks of this machine that are still there. A number that somebody else's process has by now is none."""
    return [one for one in read_ranks(run_path) if _is_of(one.pid, run_path)]


def _is_of(pid: int, run_path: Path) -> bool:
    # python\0-u\0RUN/code/runner/__main__.py\0RUN\0        of one that has ended and is still in the table: nothing
    try:
        return os.fsencode(run_path) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def wait_for_orphans(run_path: Path, look: Callable[[], None], most_s: float) -> None:
    """Wait until no rank is there any more; what is still there after ``most_s`` is killed. ``look`` is called meanwhile."""
    end = time.monotonic() + most_s
    while there := orphans(run_path):
        look()
        if time.monotonic() > end:
            for one in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
        time.sleep(POLL_S)
