"""A script that prints no steps and has no callback: what its own loggers write is read, if it is of this run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from doctor.own_metrics import CsvFollower
from tests.launch.shell import Shell

CSV = """
import pathlib, time
old = pathlib.Path("logs_old/metrics.csv")
folder = pathlib.Path("lightning_logs/version_0")
folder.mkdir(parents=True)
time.sleep(0.3)
(folder / "metrics.csv").write_text(
    "epoch,step,train_loss,val_acc,val_loss\\n0,9,0.5,,\\n0,19,0.4,,\\n0,19,,0.75,0.45\\n1,29,0.3,,\\n"
)
time.sleep(0.5)
"""
TENSORBOARD = """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter("tb")
for step in (10, 20):
    writer.add_scalar("Loss/train", 1 / step, step)
writer.add_scalar("Accuracy/val", 0.75, 20)
writer.close()
"""


def test_lightnings_csv_is_read_and_an_older_runs_is_not(shell: Shell) -> None:
    (shell.folder / "logs_old").mkdir()
    (shell.folder / "logs_old" / "metrics.csv").write_text("step,train_loss\n999,9.9\n")
    shell.script(CSV)
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 0, err
    assert [(event.step, event.data["loss"]) for event in shell.events("step")] == [(10, 0.5), (20, 0.4), (30, 0.3)]  # fmt: skip
    assert [(event.step, event.data) for event in shell.events("evaluation")] == [(20, {"accuracy": 0.75, "loss": 0.45})]  # fmt: skip
    assert shell.events("run-finished")[-1].data["steps"] == 30


@pytest.mark.train
@pytest.mark.parametrize(
    ("folder", "steps"),
    [("tb", (10, 20)), ("lightning_logs/version_0", (11, 21))],
    ids=["counts from 1", "Lightning, from 0"],
)
def test_tensorboards_files_are_read(shell: Shell, folder: str, steps: tuple[int, int]) -> None:
    pytest.importorskip("tensorboard")
    shell.script(TENSORBOARD.replace('"tb"', f'"{folder}"'))
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 0, err
    assert [(event.step, round(event.data["loss"], 3)) for event in shell.events("step")] == [(steps[0], 0.1), (steps[1], 0.05)]  # fmt: skip
    assert [event.data for event in shell.events("evaluation")] == [{"accuracy": 0.75}]


def test_where_the_output_tells_steps_nothing_else_is_read(shell: Shell) -> None:
    shell.script(CSV + "print('step=1 loss=0.7')\n")
    shell.run("--", sys.executable, "train.py")
    assert [event.step for event in shell.events("step")] == [1]


def test_a_csv_that_gets_a_column_is_told_on_from_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,train_loss\n0,0.5\n1,0.4\n2,0.")
    follower = CsvFollower(path)
    assert [event.step for event in follower.read()] == [0, 1], "the torn last line is waited for"
    path.write_text("step,train_loss,val_loss\n0,0.5,\n1,0.4,\n2,0.3,\n2,,0.6\n")
    assert json.dumps([(event.kind, event.step, event.data) for event in follower.read()]) == json.dumps(
        [("step", 2, {"loss": 0.3}), ("evaluation", 2, {"loss": 0.6})]
    )
