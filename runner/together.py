"""Starts the processes of a run with torchrun and stands for them: for the outside this process is the trainer.

A stop signal goes to the ranks alone, so that they agree and save: torchrun itself would give them half a minute, and on one
machine it hears of none. How the run ended is what they left in ``ranks/``; where one is gone without a word, this process names it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from runner.events import EventWriter, read_events
from runner.interfaces import interface_to
from runner.meeting import Meeting, not_met, nowhere_to_meet
from runner.orphans import wait_for_orphans
from runner.plan import PlanError, decode_plan
from runner.rank_ends import aborted_as_lost, agree, first_to_fail, why_of
from runner.rank_env import TOGETHER
from runner.rank_record import RankLeft, ranks_folder, read_ranks
from runner.rank_watch import GRACE_S, Awaited, RankWatch
from runner.rundir import RunDir
from runner.signals import EXIT_SAVED, STOP_SIGNALS, StopRequest
from runner.start import Start as Start
from runner.start import start_of as start_of
from runner.text import Text, t

POLL_S = 0.1
# -c instead of -m: what lies in the working directory is not to be taken for torch's own modules. prctl(PR_SET_PDEATHSIG):
# where this process is killed, torchrun ends with it, and its ranks with that (runner.orphans). Over several machines it is
# asked to end them, for the store where ranks meet lies in the first one's torchrun, and is needed to save. Handlers instead of
# SIG_IGN, which the ranks would inherit.
TORCHRUN = (
    "import ctypes, signal, sys; ctypes.CDLL(None).prctl(1, {parent_ended}); "
    "[signal.signal(number, lambda *_: None) for number in {deaf_to}]; sys.path[:] = [p for p in sys.path if p]; "
    "from torch.distributed.run import main; main()"
)
ALONE = {"parent_ended": int(signal.SIGKILL), "deaf_to": [int(number) for number in STOP_SIGNALS]}
OVER_MACHINES: dict[str, Any] = {"parent_ended": int(signal.SIGTERM), "deaf_to": []}
OPTIONS_OF_TORCHRUN = "PET_"
"""What torchrun takes for its own options in variables, as platforms set them for jobs of theirs."""


def torchrun_argv(
    start: Start, run_path: str, script: str, flags: Sequence[str], timeout_s: int = 600
) -> list[str]:
    """Return the command that starts the ranks of this machine. ``timeout_s``: so long machines wait for each other."""
    if start.nnodes == 1:
        # Port 0: torchrun takes a free one itself. A container's host name often leads nowhere.
        where = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    else:
        host, _, port = start.master.rpartition(":")
        where = [f"--node-rank={start.node_rank}", f"--master-addr={host}", f"--master-port={port}",
                 f"--rdzv-conf=timeout={timeout_s}"]  # fmt: skip
    code = TORCHRUN.format(**(ALONE if start.nnodes == 1 else OVER_MACHINES))
    return [
        sys.executable, "-u", "-c", code, f"--nnodes={start.nnodes}", f"--nproc-per-node={start.nproc}", *where,
        "--max-restarts=0", f"--log-dir={ranks_folder(run_path) / 'torchrun'}", script, run_path, *flags,
    ]  # fmt: skip


def lead(run_path: str, together: Sequence[str], flags: Sequence[str], stop: StopRequest) -> int:
    """Start the ranks, hand stop signals on to them, and return the run's exit code."""
    run = RunDir(Path(run_path).absolute())
    try:
        start = start_of(together)
        plan = decode_plan(run.plan.read_bytes())
        threads, timeout_s = plan.settings.threads, plan.profile.parallel.timeout_s
    except (OSError, PlanError, ValueError) as error:
        sys.stderr.write(f"{run.path}: {error}\n")
        return 1
    for path in ranks_folder(run.path).glob("*.json"):
        path.unlink()
    ranks_folder(run.path).mkdir(exist_ok=True)
    run.events.mkdir(exist_ok=True)
    script = str(Path(__file__).with_name("__main__.py"))
    begun = time.monotonic()
    if start.node_rank:
        write_here(run, "run-started", world_size=start.world_size, node_rank=start.node_rank)
        here = t(
            "this is machine {node}: losses, checkpoints and the model are where rank 0 is",
            node=start.node_rank,
        )
        write_here(run, "note", level="info", text=msgspec.to_builtins(here))
    if (trouble := nowhere_to_meet(start)) is not None:
        write_end(run, 1, trouble, 0.0)
        return 1
    torchrun = subprocess.Popen(
        torchrun_argv(start, str(run.path), script, flags, timeout_s),
        env=environment(start, threads, os.environ),
    )
    watch = RankWatch(run.path, timeout_s, torchrun.pid)
    forwarder = Forwarder(run, stop)
    wait_for(torchrun, forwarder, watch, Meeting(run.path, start, timeout_s))
    wait_for_orphans(run.path, forwarder.look, timeout_s + GRACE_S)
    seconds = time.monotonic() - begun
    code, why = conclude(run, start, torchrun.returncode, watch.awaited, has_timed_out=seconds >= timeout_s)
    if start.node_rank or why is not None:
        write_end(run, code, why, seconds)
    return code


def wait_for(
    torchrun: subprocess.Popen[bytes], forwarder: Forwarder, watch: RankWatch, meet: Meeting
) -> None:
    """Wait for the ranks, or until one of them can be ended by nothing, or none ever begins."""
    while torchrun.poll() is None:
        forwarder.look()
        watch.look()
        if watch.gives_up or meet.is_in_vain():
            torchrun.kill()
        time.sleep(POLL_S)


def conclude(
    run: RunDir, start: Start, returncode: int, awaited: Sequence[Awaited], has_timed_out: bool = False
) -> tuple[int, Text | None]:
    """Return the run's exit code, and why it ended where rank 0 did not say it itself."""
    left = read_ranks(run.path)
    if len(left) == start.nproc and _is_orderly(left):
        return left[0].code or 0, None
    if awaited:
        left = aborted_as_lost(run, left)
    culprit = first_to_fail(left, start, awaited)
    if culprit is None:
        return 1, not_met(start, returncode, has_timed_out)
    if isinstance(culprit, RankLeft) and agree(run, left[0], culprit):
        return left[0].code or 1, None if left[0].rank == 0 else why_of(culprit, run)
    return 1, why_of(culprit, run)


def _is_orderly(left: Sequence[RankLeft]) -> bool:
    """Return whether all came to their end, or were stopped. Before there was anything to save one may have found the others gone."""
    first, *others = left
    stopped = first.code == EXIT_SAVED
    return first.code in (0, EXIT_SAVED) and all(
        one.code in (0, EXIT_SAVED) or (stopped and one.exchange == "closed") for one in others
    )


def write_here(run: RunDir, kind: str, **data: Any) -> None:
    """Write an event where rank 0 would, on a machine that does not have it."""
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0")
    try:
        writer.write(kind, None, **data)
    finally:
        writer.close()


def environment(start: Start, threads: int, environ: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Return the ranks' variables: each has its part of the cores; on one machine they meet over the loopback."""
    each = str(max(1, threads // start.nproc))
    found = {name: value for name, value in environ.items() if not name.startswith(OPTIONS_OF_TORCHRUN)}
    found |= {TOGETHER: str(start.world_size), "OMP_NUM_THREADS": each, "MKL_NUM_THREADS": each}
    found.setdefault(
        "TORCH_CPP_LOG_LEVEL", "ERROR"
    )  # DDP warns that it looks for what it did not find this time
    if start.nnodes == 1:
        found.setdefault("GLOO_SOCKET_IFNAME", "lo")
        # The ranks meet in rank 0, not in torchrun: they agree and save though it is killed.
        found["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        found["PET_SIGNALS_TO_HANDLE"] = "SIGQUIT"
    elif interface := interface_to(start.master.rpartition(":")[0]):
        found.setdefault("GLOO_SOCKET_IFNAME", interface)
    return found


class Forwarder:
    """Hands a stop signal on to every rank of this machine, once. One that was asked to stop by itself, and has left before it
    could agree with the others, takes them with it."""

    def __init__(self, run: RunDir, stop: StopRequest) -> None:
        self._run, self._stop = run, stop
        self._told: set[int] = set()

    def look(self) -> None:
        ranks = read_ranks(self._run.path)
        if not self._stop and all(one.code != EXIT_SAVED for one in ranks):
            return
        for left in ranks:
            if left.left_at is None and left.pid not in self._told:
                self._told.add(left.pid)
                send(left.pid, signal.SIGTERM)


def send(pid: int, number: int) -> None:
    """Send a signal to a rank that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def write_end(run: RunDir, code: int, why: Text | None, seconds: float) -> None:
    """Append the run's end to rank 0's events: that rank is gone by now, or on another machine, and nobody else writes there."""
    steps = max((event.step or 0 for event, _ in read_events(run.events / "trainer-0.jsonl")), default=0)
    words: dict[str, Any] = {}
    if why is not None:
        told = msgspec.to_builtins(why)
        words = {"error": str(why), "error_text": told}
        write_here(run, "note", level="fail", text=told)
        sys.stdout.write(f"fail: {why}\n")
    outcome = {0: "completed", EXIT_SAVED: "stopped"}.get(code, "failed")
    write_here(run, "run-finished", outcome=outcome, exit_code=code, steps=steps, seconds=seconds, **words)
