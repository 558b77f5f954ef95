"""Under a SLURM that is one: what its variables say, runs over two nodes, its warning before the end, and a run that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.rundir import RunDir
from tests.parallel.slurm_cluster import Cluster, why_not
from tests.parallel.together import steps
from tests.runner.tiny import PROFILE, events, outcome, write_rows

pytestmark = [pytest.mark.train, pytest.mark.long, pytest.mark.skipif(bool(why_not()), reason=why_not())]

TASK = """\
import os
from doctor.slurm import slurm_task
task = slurm_task(os.environ)
print(task.rank, task.size, task.local_rank, task.local_size, task.host, task.step.partition(".")[2])
"""
DOCTOR = "import sys; from doctor.commands import main; sys.exit(main())"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("slurm"))
    found.environment |= {
        "DOCTOR_LANG": "en", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent.parent.parent),
    }  # fmt: skip
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.csv", 200)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    return tmp_path


def started(cluster: Cluster, folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["srun", "--job-name=run", *words], cwd=folder, env=cluster.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def doctor(*words: str) -> list[str]:
    return [sys.executable, "-c", DOCTOR, *words, "--python", sys.executable]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=280)  # under the 300 s that a task waits for the first one
    return process.returncode, said


LAYOUTS = {
    "five over two nodes": (["-n5", "-N2"], {"0 5 0 4 node01 0", "3 5 3 4 node01 0", "4 5 0 1 node01 0"}),
    "so many a node": (["-N2", "--ntasks-per-node=2"], {"1 4 1 2 node01 0", "2 4 0 2 node01 0"}),
    "two on the second node": (["-N1", "-n2", "-w", "node02"], {"0 2 0 2 node02 0", "1 2 1 2 node02 0"}),
}


@pytest.mark.parametrize(("words", "some"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_its_variables_say_which_task_is_which(
    cluster: Cluster, folder: Path, words: list[str], some: set[str]
) -> None:
    code, said = ended(started(cluster, folder, *words, sys.executable, "-c", TASK))
    assert code == 0 and some <= set(said.splitlines()), said


def test_a_run_over_two_nodes_is_one_run(cluster: Cluster, folder: Path) -> None:
    code, said = ended(
        started(cluster, folder, "-n2", "-N2", *doctor("run", "tiny.toml", "--set", "train.epochs=1"))
    )
    assert code == 0, said
    (path,) = (folder / "runs").glob("tiny-slurm-*")
    assert outcome(RunDir(path))["outcome"] == "completed" and steps(RunDir(path), rank=1)
    assert "find_unused_parameters" not in said


def test_where_the_first_task_starts_no_run_the_others_leave(cluster: Cluster, folder: Path) -> None:
    words = doctor("run", "tiny.toml", "--set", "train.batch_size=2", "--set", "train.micro_batch_size=2")
    code, said = ended(started(cluster, folder, "-n3", "-N2", *words))
    assert code == 1, said
    assert "3 processes share an update of 2 samples" in said and said.count("task 0 starts no run") == 2


@pytest.mark.parametrize("warning", ["USR1", "TERM"])
def test_its_warning_saves_and_the_run_goes_on(cluster: Cluster, folder: Path, warning: str) -> None:
    """``--signal=USR1@60`` sends it to the step a minute before the time is up; scancel's first is TERM."""
    run = RunDir(folder / "run")
    words = doctor("run", "tiny.toml", "--set", "train.epochs=60", "--run-dir", str(run.path))
    process = started(cluster, folder, "-n2", "-N2", *words)
    end = time.monotonic() + 200
    while not (run.events.is_dir() and len(steps(run)) > 5) and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    cluster.said("scancel", f"--signal={warning}", "--name=run")
    code, said = ended(process)
    assert code == 143 and outcome(run)["outcome"] == "stopped", said
    stopped_at = steps(run)[-1]
    again = started(cluster, folder, "-n2", "-N2", *doctor("run", "--resume", str(run.path)))
    while len(steps(run)) < 8 or steps(run)[-1] == stopped_at:
        assert again.poll() is None, again.communicate()
        time.sleep(0.2)
    cluster.said("scancel", "--signal=TERM", "--name=run")
    assert ended(again)[0] == 143
    assert [event.data["outcome"] for event in events(run, "run-finished")] == ["stopped", "stopped"]


def test_its_tasks_are_judged_together(cluster: Cluster, folder: Path) -> None:
    words = doctor("check", "--fleet", "--json", "--deep-timeout", "200")
    code, said = ended(started(cluster, folder, "-N2", "-n3", *words))
    assert code == 0, said
    members = json.loads(said[said.index("{") :])["members"]
    assert [name.partition(" (")[0] for name in members] == ["rank 0", "rank 1", "rank 2"]
