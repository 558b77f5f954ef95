"""Run directories with the fake trainer in them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doctor.launch import StartedRun, prepare_run, start_run
from doctor.model import Facts, Host, Snapshot, ok
from doctor.model import Python as PythonFacts
from doctor.running import plan_run
from doctor.trainer_pid import read_mark, trainer_alive
from runner.rundir import RunDir
from tests.launch.shell import Shell

FAKE = Path(__file__).with_name("fake_trainer.py")
PROFILE = """
[run]
name = "tiny"
[model]
config = {{model_type = "bert", hidden_size = 32}}
[data]
train = "{train}"
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    data = tmp_path / "train.csv"
    data.write_text("text,label\nyes,1\n")
    path = tmp_path / "tiny.toml"
    path.write_text(PROFILE.format(train=data))
    return path


@pytest.fixture
def snapshot() -> Snapshot:
    python = PythonFacts(version="3.11.7", executable=sys.executable)
    return Snapshot(facts=Facts(host=ok(Host(cpu_count=2, affinity_count=2)), python=ok(python)))


@pytest.fixture
def prepared(profile: Path, snapshot: Snapshot, tmp_path: Path) -> RunDir:
    run = prepare_run(plan_run(str(profile), [], snapshot).plan, snapshot, tmp_path / "runs" / "one")
    shutil.copy(FAKE, run.code / "runner" / "__main__.py")
    return run


Start = Callable[..., StartedRun]


@pytest.fixture
def start(prepared: RunDir, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start the prepared run; whatever still runs at the end is ended by its own process object."""
    begun: list[StartedRun] = []

    def go(how: str = "complete", with_sampler: bool = False, resume: bool = False) -> StartedRun:
        monkeypatch.setenv("FAKE_TRAINER", how)
        begun.append(start_run(prepared, sys.executable, resume=resume, with_sampler=with_sampler))
        return begun[-1]

    yield go
    for started in begun:
        for process in (started.process, started.sampler):
            if process is not None:
                end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait(10)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


__all__ = ["read_mark", "trainer_alive"]
