"""Which TensorBoard event file a process writes: found by its open files, or by the process's number in the file's name."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from doctor.bounded_walk import PASSED_OVER, Bounds, Entry, walk
from doctor.probes.process_tree import read_stat

MARK = "tfevents"
SEARCH_FOR_S = 1.0
"""For all processes together: a job of many, or one that runs in /, is not to wait for its first screen."""
CLOCK_SLACK_S = 2.0
_SYSTEM = frozenset(("proc", "sys", "dev"))
"""Of a job that runs in /."""
# events.out.tfevents.1700000000.host.123.0 (torch, TensorFlow), ... .host.123 (tensorboardX)
_WRITER = re.compile(MARK + r"\.\d+\..+?\.(\d+)(?:\.\w+)?$")


def tensorboard_of(pids: Sequence[int]) -> Path | None:
    """Return the newest event file that one of these processes writes; None: none is found, or nobody may look.

    A writer that keeps its file open shows it among its descriptors; torch's opens it for each flush, and then the file's
    name has the process's number: it is looked for below the directory that the process runs in.
    """
    found = [path for pid in pids for path in _open_files(pid)]
    until = time.monotonic() + SEARCH_FOR_S
    for folder, writers in _folders_of(pids).items():
        found += _named_after(writers, folder, until)
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _open_files(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # it is gone, or another user's
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                path = Path(os.readlink(entry.path))  # noqa: PTH115 - no path to build on
                if MARK in path.name and path.is_file():
                    yield path


def _folders_of(pids: Sequence[int]) -> dict[Path, dict[int, float]]:
    """Return the directories that processes run in, each with their own numbers there and when each began."""
    folders: dict[Path, dict[int, float]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone, another user's, or a thread of the kernel
            Path(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115 - no path to build on
            folder = Path(f"/proc/{pid}/cwd").resolve(strict=True)
            folders.setdefault(folder, {})[number_inside(pid)] = _begun_at(pid)
    return folders


def _named_after(writers: dict[int, float], folder: Path, until: float) -> Iterator[Path]:
    """Yield event files of these processes below their directory, as far as the search may take."""

    def is_theirs(entry: Entry) -> bool:
        return _writer_of(entry.name) in writers

    bounds = Bounds(depth=6, entries=1_000_000, until=until, passed_over=PASSED_OVER | _SYSTEM)
    for path in walk(folder, is_theirs, bounds):
        begun = writers[_writer_of(path.name)]
        if path.stat().st_mtime >= begun - CLOCK_SLACK_S:  # an earlier process had this number too
            yield path


def _writer_of(name: str) -> int:
    """Return the number of the process in an event file's name; -1: it is none."""
    match = _WRITER.search(name)
    return int(match[1]) if match else -1


def _begun_at(pid: int) -> float:
    """Return when a process started, in seconds since the epoch; 0: it is gone."""
    stat = read_stat(pid)
    if stat is None:
        return 0.0
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


def number_inside(pid: int) -> int:
    """Return the number that a process has for itself: in a container it is another than ours outside."""
    # NSpid:  7649    12
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError:
        return pid
    numbers = status.partition("NSpid:")[2].partition("\n")[0].split()
    return int(numbers[-1]) if numbers else pid
