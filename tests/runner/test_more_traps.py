"""Traps of docs/traps.md that a whole run would not show: what the loss is of, whose randomness is drawn, what still lives."""

from __future__ import annotations

import random
import weakref
from pathlib import Path
from typing import Any

import pytest

from runner.signals import StopRequest
from tests.runner.test_traps import built
from tests.runner.tiny import events, make_run, train

pytestmark = pytest.mark.train


def first_batch(trainer: Any) -> dict[str, Any]:
    """Return the first window of a run as one batch."""
    from runner.data import Collate

    samples = [index for micro in trainer.windows(0)[0] for index in micro]
    batch: dict[str, Any] = Collate(trainer.data.tokenizer.pad_token_id)(
        [trainer.data.train[i] for i in samples]
    )
    return batch


def test_class_weights_and_smoothing_are_those_of_the_steps_loss(tmp_path: Path) -> None:
    import torch
    import torch.nn.functional as F  # noqa: N812

    changes = [
        "model.dropout=0.0",
        "train.class_weights=[1.0, 3.0]",
        "train.label_smoothing=0.1",
        "train.steps=1",
    ]
    run = make_run(tmp_path, changes, "run")
    assert train(run) == 0
    trainer = built(make_run(tmp_path, changes, "by-hand"))
    batch = first_batch(trainer)
    logits = trainer.engine.bare_model(batch["input_ids"], batch["attention_mask"]).logits
    wanted = F.cross_entropy(logits, batch["labels"], weight=torch.tensor([1.0, 3.0]), label_smoothing=0.1)
    assert events(run, "step")[0].data["loss"] == pytest.approx(float(wanted.detach()), abs=1e-6)


def test_the_model_is_never_given_the_labels(tmp_path: Path) -> None:
    trainer = built(make_run(tmp_path))
    given: list[set[str]] = []

    def look(module: Any, arguments: Any, options: dict[str, Any]) -> None:
        given.append(set(options))

    trainer.engine.bare_model.register_forward_pre_hook(look, with_kwargs=True)
    trainer.engine.logits(first_batch(trainer))
    assert given == [{"input_ids", "attention_mask"}]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_draws_from_nobodys_generator_but_its_own(tmp_path: Path, workers: int) -> None:
    import numpy
    import torch

    from runner.data import MicroBatches, batches

    trainer = built(make_run(tmp_path))
    torch.manual_seed(5)
    before = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()  # type: ignore[index]
    windows = MicroBatches(trainer.windows(0)[:3])
    assert sum(1 for _ in batches(trainer.data, "train", windows, 0, 7, workers, False)) == 6
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert numpy.random.get_state()[1].tolist() == before[2]  # type: ignore[index]


def test_what_a_window_out_of_memory_held_is_gone_before_room_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the except block the error's frames would still hold the loss, and with it every activation."""
    from runner.engine import Engine
    from runner.recovery import make_room

    held: list[weakref.ref[Any]] = []
    lived: list[bool] = []
    backward = Engine.backward

    def short(self: Engine, loss: Any) -> None:
        if held:
            backward(self, loss)
            return
        held.append(weakref.ref(loss))
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")

    def look(*arguments: Any) -> None:
        lived.append(held[0]() is not None)
        make_room(*arguments)

    monkeypatch.setattr(Engine, "backward", short)
    monkeypatch.setattr("runner.trainer.make_room", look)
    assert train(make_run(tmp_path, ["train.steps=1"])) == 0
    assert lived == [False]


def test_shapes_are_dynamic_for_the_compiler_from_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled for fixed shapes, each new width of bucketed batches compiles again, until torch gives up."""
    import torch

    asked: list[dict[str, Any]] = []

    def note(model: Any, **options: Any) -> Any:
        asked.append(options)
        return model

    monkeypatch.setattr(torch, "compile", note)
    built(make_run(tmp_path, ["train.compile=true"])).engine.compile()
    assert asked == [{"dynamic": True}]


class Asked(StopRequest):
    """Somebody has asked the run to stop."""

    def __bool__(self) -> bool:
        return True


def test_an_evaluation_under_way_is_left_when_asked_to_stop(tmp_path: Path) -> None:
    from runner.milestones import evaluate_if_due

    run = make_run(tmp_path)
    trainer = built(run)
    trainer.state.windows_done = 10
    trainer.stop.own = Asked()
    assert evaluate_if_due(trainer) is False
    assert events(run, "evaluation") == [] and trainer.state.evaluated_at != 10


def test_held_out_rows_that_weigh_nothing_have_no_loss_and_end_no_run(tmp_path: Path) -> None:
    """With balanced weights a class without a training row weighs 0: a mean over such rows alone divides by nothing."""
    from runner.checkpoint import read_state

    (tmp_path / "held.csv").write_text("text,label\n" + "".join(f"odd words {n},2\n" for n in range(6)))
    run = make_run(
        tmp_path,
        [
            f"data.eval={tmp_path / 'held.csv'}",
            'data.labels=["0", "1", "2"]',
            "train.class_weights=balanced",
            "train.steps=2",
        ],
    )
    assert train(run) == 0
    evaluation = events(run, "evaluation")[-1].data
    assert evaluation["loss"] == "nan" and evaluation["accuracy"] == 0.0
    assert read_state(run.checkpoint(2)).metrics == {"accuracy": 0.0, "f1_macro": 0.0}
