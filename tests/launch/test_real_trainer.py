"""One run from end to end with the real trainer: started, watched from outside, stopped, resumed, reported."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.watching import RunWatcher
from runner.rundir import RunDir

PROFILE = """
[run]
name = "tiny"
[model]
config = {model_type = "bert", hidden_size = 32, num_hidden_layers = 1, num_attention_heads = 2, intermediate_size = 32}
[data]
train = "train.csv"
eval_share = 0.2
[train]
steps = 400
batch_size = 8
max_length = 16
lr = 1e-3
precision = "fp32"
evaluate_every = "end"
checkpoint_every = 1000
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    rows = [f"{'good fine well' if n % 2 else 'bad poor ill'} number {n},{n % 2}" for n in range(200)]
    (tmp_path / "train.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return tmp_path


def doctor(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    # A package list of this interpreter may fail a check that has nothing to do with starting a run.
    argv = [sys.executable, "-m", "doctor", *arguments]
    return subprocess.Popen(
        argv,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DOCTOR_LANG": "en"},
    )


@pytest.mark.train
def test_a_run_is_started_stopped_resumed_and_reported(folder: Path) -> None:
    begun = doctor("run", "tiny.toml", "--run-dir", "one", "--python", sys.executable, "--anyway", cwd=folder)
    watcher = RunWatcher(RunDir(folder / "one"))
    end = time.monotonic() + 120
    while watcher.poll().step < 5:
        assert begun.poll() is None, begun.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    assert watcher.alive is True
    begun.terminate()
    out, err = begun.communicate(timeout=60)
    assert begun.returncode == 143, (out, err)
    assert watcher.poll().finished["outcome"] == "stopped"
    assert "doctor run --resume" in out
    stopped_at = watcher.state.step

    again = doctor("run", "--resume", "one", "--python", sys.executable, cwd=folder)
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, (out, err)
    state = watcher.poll()
    assert state.finished["outcome"] == "completed"
    assert state.started["resumed_from_step"] == stopped_at
    assert state.evaluations[-1].data["accuracy"] > 0.8
    assert (folder / "one" / "final" / "config.json").is_file()
    assert "<svg" in (folder / "one" / "report.html").read_text()
