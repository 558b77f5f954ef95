"""Starts the processes of a run with torchrun and stands for them: for the outside this process is the trainer.

A stop signal goes to the ranks alone, so that they agree and save: torchrun itself would give them half a minute. How the
run ended is what they left in ``ranks/``; where one is gone without a word, this process names it.
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
from runner.plan import PlanError, decode_plan
from runner.rank_ends import aborted_as_lost, agree, first_to_fail, why_of
from runner.rank_env import TOGETHER
from runner.rank_record import RankLeft, ranks_folder, read_ranks
from runner.rank_watch import Awaited, RankWatch
from runner.rundir import RunDir
from runner.signals import EXIT_SAVED, StopRequest
from runner.start import Start as Start
from runner.start import start_of as start_of
from runner.text import Text, t

POLL_S = 0.1
# -c instead of -m: what lies in the working directory is not to be taken for torch's own modules. prctl(PR_SET_PDEATHSIG,
# SIGTERM): where this process is killed, torchrun ends its ranks, which save; nobody would see them train on.
TORCHRUN = (
    "import ctypes, sys; ctypes.CDLL(None).prctl(1, 15); sys.path[:] = [p for p in sys.path if p]; "
    "from torch.distributed.run import main; main()"
)


def torchrun_argv(start: Start, run_path: str, script: str, flags: Sequence[str]) -> list[str]:
    """Return the command that starts the ranks of this machine."""
    if start.nnodes == 1:
        # Port 0: torchrun takes a free one itself. A container's host name often leads nowhere.
        where = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    else:
        host, _, port = start.master.rpartition(":")
        where = [f"--node-rank={start.node_rank}", f"--master-addr={host}", f"--master-port={port}"]
    return [
        sys.executable, "-u", "-c", TORCHRUN, f"--nnodes={start.nnodes}", f"--nproc-per-node={start.nproc}", *where,
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
    torchrun = subprocess.Popen(
        torchrun_argv(start, str(run.path), script, flags), env=environment(start, threads, os.environ)
    )
    watch = RankWatch(run.path, timeout_s, torchrun.pid)
    wait_for(torchrun, Forwarder(run, stop), watch)
    code, why = conclude(run, start, torchrun.returncode, watch.awaited)
    if start.node_rank or why is not None:
        write_end(run, code, why, time.monotonic() - begun)
    return code


def wait_for(torchrun: subprocess.Popen[bytes], forwarder: Forwarder, watch: RankWatch) -> None:
    """Wait for the ranks, or until one of them can be ended by nothing."""
    while torchrun.poll() is None:
        forwarder.look()
        watch.look()
        if watch.gives_up:
            torchrun.kill()
        time.sleep(POLL_S)


def conclude(
    run: RunDir, start: Start, returncode: int, awaited: Sequence[Awaited]
) -> tuple[int, Text | None]:
    """Return the run's exit code, and why it ended where rank 0 did not say it itself."""
    left = read_ranks(run.path)
    if returncode == 0 and left and all(one.code in (0, EXIT_SAVED) for one in left):
        return left[0].code or 0, None
    if awaited:
        left = aborted_as_lost(run, left)
    culprit = first_to_fail(left, start, awaited)
    if culprit is None:
        return 1, t("the processes did not start: torchrun ended with status {code}, and its words are in trainer.log",
                    code=returncode)  # fmt: skip
    if isinstance(culprit, RankLeft) and agree(run, left[0], culprit):
        return left[0].code or 1, None if left[0].rank == 0 else why_of(culprit, run)
    return 1, why_of(culprit, run)


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
    found = {**environ, TOGETHER: str(start.world_size), "OMP_NUM_THREADS": each, "MKL_NUM_THREADS": each}
    found.setdefault(
        "TORCH_CPP_LOG_LEVEL", "ERROR"
    )  # DDP warns that it looks for what it did not find this time
    if start.nnodes == 1:
        found.setdefault("GLOO_SOCKET_IFNAME", "lo")
    elif interface := interface_to(start.master.rpartition(":")[0]):
        found.setdefault("GLOO_SOCKET_IFNAME", interface)
    return found


class Forwarder:
    """Hands a stop signal on to every rank of this machine, once; a second interrupt ends them at once."""

    def __init__(self, run: RunDir, stop: StopRequest) -> None:
        self._run, self._stop = run, stop
        self._told: set[int] = set()

    def look(self) -> None:
        if not self._stop:
            return
        for left in read_ranks(self._run.path):
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
