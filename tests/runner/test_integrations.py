"""The callbacks inside trainings that are not ours: what they tell, and that they never stand in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.watching import RunWatcher
from runner.events import RunEvent, read_events
from runner.rundir import RunDir
from runner.state import fold

ROOT = Path(__file__).parent.parent.parent


def told(run_dir: Path) -> list[RunEvent]:
    return [event for event, _ in read_events(run_dir / "events" / "trainer-0.jsonl")]


def python(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environ | variables,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_logging_a_hand_written_loop_imports_no_framework(tmp_path: Path) -> None:
    done = python(
        "import sys, runner, runner.integrations\nrunner.log(step=1, loss=0.5)\n"
        "print([name for name in ('torch', 'transformers', 'lightning', 'doctor') if name in sys.modules])",
        tmp_path,
        DOCTOR_RUN_DIR=str(tmp_path / "run"),
    )
    assert done.stdout.strip() == "[]", done.stderr
    assert [event.kind for event in told(tmp_path / "run")] == ["run-started", "step"]


def test_an_unknown_callback_is_an_ordinary_attribute_error() -> None:
    import runner.integrations

    with pytest.raises(AttributeError, match="DoctorKeras"):
        _ = runner.integrations.DoctorKeras


def test_a_value_that_json_cannot_hold_is_told_in_words_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.recording import Recorder

    recorder = Recorder(tmp_path)
    recorder.step(1, loss=0.5, strange={1, 2}, nested={"a": [1, float("nan")]})
    recorder.step(2, loss=0.25)
    steps = [event for event in told(tmp_path) if event.kind == "step"]
    assert [event.step for event in steps] == [1, 2]
    assert steps[0].data["nested"] == {"a": [1, "nan"]} and steps[0].data["strange"] == "{1, 2}"


def test_a_hand_written_loop_tells_its_evaluations_and_no_pace_of_its_first_step(tmp_path: Path) -> None:
    """The first step's time is nobody's to know: it was 5e-7 s, and the first speed 30 million samples a second."""
    code = (
        "import time, runner\nfor step in (1, 2):\n    runner.log(step=step, loss=0.5, samples=8)\n    time.sleep(0.05)\n"
        "runner.log(step=2, val_loss=0.4, val_acc=0.75, val_samples=40)"
    )
    done = python(code, tmp_path, DOCTOR_RUN_DIR=str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    kinds = [(event.kind, event.step) for event in told(tmp_path / "run")]
    assert kinds == [("run-started", None), ("step", 1), ("step", 2), ("evaluation", 2)]
    state = fold(told(tmp_path / "run"))
    assert len(state.samples_per_s) == 1 and state.samples_per_s.values[0] < 8 / 0.05
    assert state.evaluations[0].data == {"loss": 0.4, "accuracy": 0.75, "samples": 40}


# -- transformers ------------------------------------------------------------------------------------------------
TRAINS = """
import math, sys
import torch, transformers
from runner.integrations import DoctorCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.calls = 0
    def forward(self, features=None, labels=None):
        logits = self.layer(features)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        self.calls += self.training
        if self.training and self.calls in {bad}:
            loss = loss + math.nan  # the gradient stays finite, so that one bad loss is one
        return {{"loss": loss, "logits": logits}}

torch.manual_seed(0)
rows = [{{"features": [float(n), 1.0, 0.0, float(n % 3)], "labels": n % 2}} for n in range(32)]
arguments = transformers.TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, max_steps=8, logging_steps=4, eval_steps=4, eval_strategy="steps",
    save_strategy="steps", save_steps=8, report_to=[], use_cpu=True, max_grad_norm=0.0, learning_rate=0.0,
    disable_tqdm={quiet}, save_safetensors=False,
)
callback = DoctorCallback()
{sabotage}
trainer = transformers.Trainer(Model(), arguments, train_dataset=rows, eval_dataset=rows, callbacks=[callback])
trainer.train()
print("trained", trainer.state.global_step)
"""


def script(folder: Path, bad: str = "set()", sabotage: str = "", quiet: bool = True) -> Path:
    code = TRAINS.format(bad=bad, sabotage=sabotage, quiet=quiet)
    import transformers

    if int(transformers.__version__.partition(".")[0]) >= 5:
        code = code.replace(" save_safetensors=False,", "")
    path = folder / "train.py"
    path.write_text(code)
    return path


@pytest.mark.train
def test_every_loss_that_is_no_number_is_counted_though_only_a_mean_is_logged(tmp_path: Path) -> None:
    done = python(
        script(tmp_path, bad="{2, 3, 7}").read_text(), tmp_path, DOCTOR_RUN_DIR=str(tmp_path / "run")
    )
    assert "trained 8" in done.stdout, done.stderr
    steps = [event for event in told(tmp_path / "run") if event.kind == "step"]
    assert [(event.step, event.data["non_finite"]) for event in steps] == [(4, 2), (8, 1)]
    assert fold(told(tmp_path / "run")).non_finite_losses == 3


@pytest.mark.train
def test_a_callback_that_fails_is_said_once_and_the_training_goes_on(tmp_path: Path) -> None:
    sabotage = "callback._losses.taken = lambda: 1 / 0"
    done = python(
        script(tmp_path, sabotage=sabotage).read_text(), tmp_path, DOCTOR_RUN_DIR=str(tmp_path / "run")
    )
    assert "trained 8" in done.stdout, done.stderr
    assert done.stderr.count("doctor: recording stops") == 1 and "ZeroDivisionError in on_log" in done.stderr


@pytest.mark.train
def test_without_a_supervised_run_the_callback_does_nothing_and_says_so_once(tmp_path: Path) -> None:
    done = python(script(tmp_path).read_text(), tmp_path, DOCTOR_RUN_DIR="")
    assert "trained 8" in done.stdout, done.stderr
    assert done.stderr.count("nothing is recorded") == 1


@pytest.mark.train
@pytest.mark.parametrize("with_callback", [True, False], ids=["callback", "log alone"])
def test_a_trainer_under_doctor_run_is_told_by_its_callback_else_by_its_log(
    tmp_path: Path, with_callback: bool
) -> None:
    path = script(tmp_path, quiet=False)
    if not with_callback:
        path.write_text(path.read_text().replace("callbacks=[callback]", "callbacks=[]"))
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DOCTOR_LANG": "en"}
    done = subprocess.run(
        [sys.executable, "-m", "doctor", "run", "--run-dir", "run", "--", sys.executable, "train.py"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    watcher = RunWatcher(RunDir(tmp_path / "run"))
    state = watcher.poll()
    assert (watcher.status(), state.step, state.steps_total, state.finished["exit_code"]) == (
        "completed",
        8,
        8,
        0,
    )
    assert state.loss.steps[-1] == 8 and len(state.loss) == 2
    assert len(state.evaluations) == 2 and len(state.eval_loss) == 2
    assert ("model" in state.started) == with_callback


# -- Lightning ---------------------------------------------------------------------------------------------------
LIGHTNING = """
import torch, lightning
from runner.integrations import DoctorLightningCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, index):
        loss = self.layer(batch).square().mean()
        return loss + float("nan") if index == 2 else loss
    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch).square().mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

rows = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=2)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", log_every_n_steps=4, logger=False, enable_progress_bar=False,
    enable_checkpointing=False, accumulate_grad_batches={accumulate}, callbacks=[DoctorLightningCallback()],
)
trainer.fit(Model(), rows, rows)
"""


@pytest.mark.train
@pytest.mark.parametrize(("accumulate", "steps"), [(1, [4, 8]), (2, [4])])
def test_lightning_tells_steps_validation_and_end(tmp_path: Path, accumulate: int, steps: list[int]) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed here")
    done = python(LIGHTNING.format(accumulate=accumulate), tmp_path, DOCTOR_RUN_DIR=str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    state = fold(told(tmp_path / "run"))
    events = [event for event in told(tmp_path / "run") if event.kind == "step"]
    assert [event.step for event in events] == steps
    assert state.non_finite_losses == 1 and state.steps_total == steps[-1]
    assert state.finished["outcome"] == "completed" and len(state.eval_loss) == 1


FAKE_LIGHTNING = """
class Callback:
    pass
"""


class Fitted:
    """The attributes of a Lightning trainer that the callback reads."""

    global_step = 0
    estimated_stepping_batches: float = 4
    log_every_n_steps = 2
    accumulate_grad_batches = 2
    precision = "32-true"
    max_epochs = 1
    current_epoch = 0
    sanity_checking = False
    checkpoint_callback = None

    def __init__(self, optimizer: Any) -> None:
        self.optimizers = [optimizer]
        self.callback_metrics: dict[str, Any] = {}


@pytest.mark.train
def test_the_lightning_callback_undoes_the_division_by_the_accumulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    package = tmp_path / "pytorch_lightning"
    package.mkdir()
    (package / "__init__.py").write_text(FAKE_LIGHTNING)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [
        name
        for name in sys.modules
        if name.startswith(("pytorch_lightning", "lightning", "runner.lightning"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lightning", None)
    from runner.integrations import DoctorLightningCallback

    model = torch.nn.Linear(2, 2)
    model.device = torch.device("cpu")
    trainer = Fitted(torch.optim.SGD(model.parameters(), lr=0.5))
    callback = DoctorLightningCallback(tmp_path / "run")
    callback.on_train_start(trainer, model)
    for batch in range(4):
        trainer.global_step = (batch + 1) // 2
        callback.on_train_batch_end(trainer, model, {"loss": torch.tensor(0.25)}, None, batch)
    trainer.callback_metrics = {"val_loss": torch.tensor(0.5), "val/acc": 0.75, "train_loss": 1.0}
    callback.on_validation_end(trainer, model)
    callback.on_exception(trainer, model, ValueError("bad rows"))
    state = fold(told(tmp_path / "run"))
    assert (state.loss.steps, state.loss.values, state.lr.values) == ([2], [0.5], [0.5])
    assert state.evaluations[0].data == {"loss": 0.5, "accuracy": 0.75}
    assert (state.finished["outcome"], state.finished["error"]) == ("failed", "ValueError: bad rows")
    for name in ("pytorch_lightning", "runner.lightning_callback"):
        monkeypatch.delitem(sys.modules, name, raising=False)
