"""What scripts that are not ours tell: through Trainer's callback, and by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import recording
from runner.events import read_events
from runner.state import fold


def told(run_dir: Path) -> list[Any]:
    return [event for event, _ in read_events(run_dir / "events" / "trainer-0.jsonl")]


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(recording.VARIABLE, str(tmp_path))
    monkeypatch.setattr(recording, "_recorder", None)
    return tmp_path


def test_a_hand_written_loop_is_recorded_step_by_step(supervised: Path) -> None:
    for step in range(1, 4):
        runner.log(step=step, loss=1.0 / step, lr=1e-3, samples=8)
    state = fold(told(supervised))
    assert (state.step, state.samples_seen, state.loss.values) == (3, 24, [1.0, 0.5, 1.0 / 3])


def test_a_loss_that_is_no_number_is_recorded_as_such(supervised: Path) -> None:
    runner.log(step=1, loss=math.nan)
    assert fold(told(supervised)).non_finite_losses == 1


def test_outside_a_supervised_run_nothing_breaks_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(recording.VARIABLE, raising=False)
    monkeypatch.setattr(recording, "_recorder", None)
    runner.log(step=1, loss=0.5)
    runner.log(step=2, loss=0.5)
    assert capsys.readouterr().err.count("nothing is recorded") == 1


def test_other_ranks_are_silent(supervised: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    runner.log(step=1, loss=0.5)
    assert not (supervised / "events").exists()


def test_a_directory_that_cannot_be_written_does_not_stop_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(recording.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(recording, "_recorder", None)
    runner.log(step=1, loss=0.5)
    assert "nothing is recorded" in capsys.readouterr().err


def run_trainer(tmp_path: Path, poison: bool = False) -> list[Any]:
    import torch
    import transformers

    from runner.integrations import DoctorCallback

    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = transformers.BertForSequenceClassification(config)
    if poison:
        with torch.no_grad():
            model.classifier.weight.fill_(math.nan)
    rows = [{"input_ids": [1, 2 + n % 40, 3], "labels": n % 2} for n in range(16)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=4, max_steps=4, logging_steps=1, eval_steps=2,
        eval_strategy="steps", save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=[DoctorCallback(tmp_path / "run")]
    )
    trainer.train()
    return told(tmp_path / "run")


@pytest.mark.train
def test_a_trainers_run_reads_like_one_of_ours(tmp_path: Path) -> None:
    state = fold(run_trainer(tmp_path))
    assert (state.step, state.steps_total, state.samples_seen) == (4, 4, 16)
    assert state.status_at(0.0) == "completed"
    assert len(state.lr) == len(state.grad_norm) == 4
    assert len(state.evaluations) == 2 and len(state.eval_loss) == 2


@pytest.mark.train
def test_a_trainers_nan_is_not_shown_as_zero(tmp_path: Path) -> None:
    state = fold(run_trainer(tmp_path, poison=True))
    assert state.non_finite_losses == 4
