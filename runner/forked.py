"""What a forked child must not keep of the trainer: the files whose locks say that a trainer is at work.

A lock lasts as long as anybody has its file open, and the workers of a trainer that was killed live on for seconds: a
run that is continued at once would be refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def leave_to_this_process(*paths: Path) -> None:
    """Close ``paths``, wherever they are open, in every child that is forked from now on; programs started do not get
    them either."""
    ours = {(found.st_dev, found.st_ino) for found in _facts(paths)}
    for descriptor in _open_ones(ours):
        os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=lambda: _close(ours))


def _facts(paths: tuple[Path, ...]) -> Iterator[os.stat_result]:
    for path in paths:
        with suppress(OSError):  # a run started by hand has no lock of a launcher
            yield path.stat()


def _open_ones(ours: set[tuple[int, int]]) -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (pathlib would open it anew for each)
        with suppress(OSError):  # the descriptor of this very listing is gone by now
            facts = os.fstat(int(name))
            if (facts.st_dev, facts.st_ino) in ours:
                found.append(int(name))
    return found


def _close(ours: set[tuple[int, int]]) -> None:
    for descriptor in _open_ones(ours):
        os.close(descriptor)
