"""What a launcher or a platform left in the session does not reach a run, and is said where somebody may have meant it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from doctor.rendezvous import job_over_machines, started_by_torchrun, without_rendezvous

POD = {"WORLD_SIZE": "4", "RANK": "1", "MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456", "HOME": "/root"}
"""As Kubeflow sets them in the pods of a PyTorchJob."""
TORCHRUN = {**POD, "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "none"}


def test_a_run_does_not_inherit_where_others_meet() -> None:
    assert without_rendezvous(TORCHRUN) == {"HOME": "/root", "TORCHELASTIC_RUN_ID": "none"}


def test_a_job_over_machines_is_told_how_they_train_together() -> None:
    told = str(job_over_machines(POD))
    assert "--nnodes 4 --node-rank 1 --rdzv job-master-0:23456" in told


ALONE = {
    "nothing is set": {},
    "a pod of its own": {**POD, "WORLD_SIZE": "1", "RANK": "0"},
    "an address and no more": {"MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
    "no number": {**POD, "WORLD_SIZE": "all"},
}


@pytest.mark.parametrize("environ", ALONE.values(), ids=ALONE.keys())
def test_nothing_is_said_where(environ: dict[str, str]) -> None:
    assert job_over_machines(environ) is None and started_by_torchrun(environ) is None


def test_a_run_under_torchrun_is_refused_with_the_way_out(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DOCTOR_LANG": "en", **TORCHRUN}
    done = subprocess.run(
        [sys.executable, "-m", "doctor", "run", "quickstart"], env=environ, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert "torchrun" in done.stderr and "--nproc N" in done.stderr
