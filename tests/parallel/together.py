"""Runs of several processes for tests: started as the launcher starts them, waited for, and compared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch
import torch

from runner.rundir import RunDir
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
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
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
