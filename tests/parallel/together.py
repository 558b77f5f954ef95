"""Runs of several processes for tests: started as the launcher starts them, waited for, and compared."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from runner.events import read_events
from runner.rank_env import RankPlace
from runner.rundir import RunDir
from runner.session import run_session
from runner.signals import StopRequest
from tests.runner.tiny import copy_code

FEW = ["train.epochs=1", "model.dropout=0.0", "train.checkpoint_every=7"]
"""Twenty windows, no dropout: what is computed depends on nothing but the samples."""


def command(run: RunDir, nproc: int, *flags: str) -> list[str]:
    script = run.code / "runner" / "__main__.py"
    if not script.exists():
        copy_code(run)
    together = [f"--nproc={nproc}"] if nproc else []
    return [sys.executable, "-u", str(script), str(run.path), *together, *flags]


def start(run: RunDir, nproc: int, *flags: str) -> subprocess.Popen[str]:
    """Start a run of ``nproc`` processes (0: one, without torchrun)."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": ""}
    return subprocess.Popen(
        command(run, nproc, *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 120) -> tuple[int, str]:
    """Wait for a run; return its exit code and what it printed."""
    said, _ = process.communicate(timeout=timeout_s)
    return process.returncode, said


def together(run: RunDir, nproc: int, *flags: str) -> tuple[int, str]:
    return finish(start(run, nproc, *flags))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = safetensors.torch.load_file(folder / "model.safetensors")
    return found


def furthest(one: Path, other: Path) -> float:
    """Return the largest difference between the weights of two folders."""
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    return max(float((first[name].double() - second[name].double()).abs().max()) for name in first)


def overrides(*more: str) -> Sequence[str]:
    return [*FEW, *more]


# -- ranks without torchrun: forked from a server that has imported everything, each is there in a moment
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["runner.trainer", "deepspeed"])  # what is not installed is passed over


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def one_rank(
    run: RunDir, rank: int, size: int, port: int, resume: bool = False, approximate: bool = False
) -> None:
    """Be one rank of a run; ends the process. A loss of the test's own lies beside the run."""
    os.environ |= {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    sys.path.append(str(run.path.parent))
    stop = StopRequest.install()
    place = RankPlace(rank=rank, size=size, local_rank=rank, local_size=size)
    sys.exit(run_session(str(run.path), resume, stop, approximate, place))


def train_ranks(
    run: RunDir, size: int, resume: bool = False, approximate: bool = False, timeout_s: float = 90
) -> list[int]:
    """Train ``run`` in ``size`` processes and return their exit codes."""
    port = free_port()
    ranks = [
        FORKS.Process(target=one_rank, args=(run, rank, size, port, resume, approximate))
        for rank in range(size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
    return [-1 if process.exitcode is None else process.exitcode for process in ranks]


def steps(run: RunDir, rank: int = 0) -> list[dict[str, Any]]:
    """Return the data of a rank's step events."""
    path = run.events / f"trainer-{rank}.jsonl"
    return [event.data for event, _ in read_events(path) if event.kind == "step"]
