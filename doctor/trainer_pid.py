"""Whether a run's trainer still lives, and how it is asked to stop. A process is its pid *and* its start time.

A pid written by another host, after another boot or in another container says nothing here; then the answer is None.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from doctor.probes.process_tree import here, is_alive, read_stat
from runner.rundir import RunDir


@dataclass(frozen=True)
class ProcessMark:
    """What ``trainer.pid`` holds."""

    pid: int
    start_ticks: int
    hostname: str = ""
    boot_id: str = ""
    pid_namespace: str = ""

    @property
    def line(self) -> str:
        return f"{self.pid} {self.start_ticks} {self.hostname} {self.boot_id} {self.pid_namespace}\n"


def mark_of(pid: int) -> ProcessMark | None:
    """Return the mark of a process that runs now; None when there is none."""
    stat = read_stat(pid)
    return None if stat is None else ProcessMark(pid, stat.start_ticks, *here())


def write_mark(path: Path, mark: ProcessMark) -> None:
    """Write ``path`` whole or not at all. Raises OSError."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(mark.line, "ascii", "replace")
    temporary.replace(path)


def read_mark(path: Path) -> ProcessMark | None:
    """Return what ``trainer.pid`` says; None when it is not there or not such a file."""
    try:
        words = path.read_text("ascii", "replace").split()
        return ProcessMark(int(words[0]), int(words[1]), *words[2:5])
    except (OSError, ValueError, IndexError):
        return None


def lives(mark: ProcessMark) -> bool | None:
    """Return whether that process runs; None when nobody here can tell.

    Same boot and same PID namespace: looked up. Same host name but another boot: that boot is over, so it is gone.
    """
    hostname, boot_id, pid_namespace = here()
    if (mark.boot_id, mark.pid_namespace) == (boot_id, pid_namespace):
        return is_alive(mark.pid, mark.start_ticks)
    if mark.hostname == hostname and hostname != "localhost" and mark.boot_id not in ("", boot_id):
        return False
    return None


def trainer_alive(run: RunDir) -> bool | None:
    """Return whether the trainer of ``run`` runs; None when nobody here can tell (another host, or no pid file).

    A supervised command counts as running while its supervisor does: it may be started again, or be followed by a
    command.
    """
    if supervisor_alive(run):
        return True
    mark = read_mark(run.trainer_pid)
    return None if mark is None else lives(mark)


def supervisor_alive(run: RunDir) -> bool | None:
    """Return whether a command's supervisor runs; None when there is none, or nobody here can tell."""
    mark = read_mark(run.supervisor_pid)
    return None if mark is None else lives(mark)


def signal_trainer(run: RunDir, number: int = signal.SIGTERM) -> bool:
    """Send a signal to the trainer if it is proven to be that process; return whether it was sent.

    A supervised command's goes to its supervisor, which hands it on.

    Raises:
        PermissionError: it is another user's.
    """
    mark = read_mark(run.supervisor_pid if supervisor_alive(run) else run.trainer_pid)
    if mark is None:
        return False
    try:
        handle = os.pidfd_open(mark.pid)  # from here on the number cannot come to mean another process
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # a kernel before 5.3, or a sandbox without pidfd
        return _signal_by_number(mark, number)
    try:
        if not lives(mark):
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def _signal_by_number(mark: ProcessMark, number: int) -> bool:
    if not lives(mark):
        return False
    try:
        os.kill(mark.pid, number)
    except ProcessLookupError:
        return False
    return True


def is_written_here(run: RunDir) -> bool:
    """Return whether this host writes a run; a mark that names no host, or none at all, is taken for ours."""
    mark = read_mark(run.supervisor_pid) or read_mark(run.trainer_pid)
    return mark is None or not mark.hostname or mark.hostname == here()[0]
