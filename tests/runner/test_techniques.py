"""Freezing, a loss of one's own, and the same numbers as everybody else's loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.order import windows_of_epoch
from runner.schedule import lr_at
from tests.runner.test_trainer import StopAfter, final_weights
from tests.runner.test_traps import built
from tests.runner.tiny import events, final_hash, last_losses, make_run, outcome, train

pytestmark = pytest.mark.train

UNTIL_10 = 'train.freeze=[{parameters="bert.embeddings.*", until=10}]'


def test_frozen_parameters_stand_still_until_their_step_and_then_move(tmp_path: Path) -> None:
    name = "bert.embeddings.word_embeddings.weight"
    run = make_run(tmp_path, [UNTIL_10, "train.steps=10"], "ten")
    more = make_run(tmp_path, [UNTIL_10, "train.steps=14"], "fourteen")
    begin = built(make_run(tmp_path, [], "begin")).engine.bare_model.state_dict()[name]
    assert train(run) == train(more) == 0
    assert bool((final_weights(run)[name] == begin).all())
    assert not bool((final_weights(more)[name] == begin).all())


def test_freezing_resumes_exactly(tmp_path: Path) -> None:
    whole, parts = (make_run(tmp_path, [UNTIL_10], name) for name in ("whole", "parts"))
    assert train(whole) == 0
    for looks in (5, 9):  # before the embeddings move, and after
        train(parts, resume=looks > 5, stop=StopAfter(looks))
    assert train(parts, resume=True) == 0
    assert final_hash(parts) == final_hash(whole)
    assert last_losses(parts) == last_losses(whole)


def test_frozen_for_good_is_not_in_the_optimizer(tmp_path: Path) -> None:
    trainer = built(make_run(tmp_path, ['train.freeze=[{parameters="bert.*"}]']))
    names = [name for group in trainer.optimizer.param_groups for name in group["names"]]
    assert sorted(names) == ["classifier.bias", "classifier.weight"]


def test_the_last_of_several_rules_for_a_parameter_counts(tmp_path: Path) -> None:
    """The whole trunk stands still, but its last layer only for a while: that layer is trained after it."""
    rules = '[{parameters="bert.*"}, {parameters="bert.encoder.layer.1.*", until=4}]'
    run = make_run(tmp_path, [f"train.freeze={rules}", "train.steps=8"])
    begin = built(make_run(tmp_path, [], "begin")).engine.bare_model.state_dict()
    assert train(run) == 0
    moved = {name for name, tensor in final_weights(run).items() if not bool((tensor == begin[name]).all())}
    assert moved and all(name.startswith(("bert.encoder.layer.1.", "classifier")) for name in moved)
    assert any(name.startswith("bert.encoder.layer.1.") for name in moved)


def test_a_pattern_that_matches_nothing_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path, ['train.freeze=[{parameters="roberta.*"}]'])
    assert train(run) == 1
    assert "no parameter is called roberta.*" in str(outcome(run)["error"])


LOSSES = """
import torch.nn.functional as F
def plain(logits, labels): return F.cross_entropy(logits, labels, reduction="none")
def mean(logits, labels): return F.cross_entropy(logits, labels)
"""


def test_a_loss_of_ones_own_is_summed_over_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_losses_a.py").write_text(LOSSES)
    monkeypatch.chdir(tmp_path)
    own = make_run(tmp_path, ["train.loss=my_losses_a:plain"], "own")
    ours = make_run(tmp_path, [], "ours")
    assert train(own) == train(ours) == 0
    assert final_hash(own) == final_hash(ours)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("my_losses_b:mean", "take no mean"),
        ("my_losses_b:none", "no function"),
        ("nowhere:f", "cannot be imported"),
    ],
)
def test_a_loss_that_cannot_be_used_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str, words: str
) -> None:
    (tmp_path / "my_losses_b.py").write_text(LOSSES)
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path, [f"train.loss={loss}"])
    assert train(run) == 1
    assert words in str(outcome(run)["error"])


def reference_losses(run: Any) -> list[float]:
    """A plain loop over the same batches with the model's own loss, torch's AdamW and transformers'
    schedule."""
    import torch
    import transformers

    trainer = built(run)
    model, profile = trainer.engine.bare_model, trainer.plan.profile.train
    size = profile.batch_size
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": profile.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=profile.lr)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, profile.warmup, trainer.total)
    from runner.data import Collate

    collate = Collate(trainer.data.tokenizer.pad_token_id)
    losses: list[float] = []
    model.train()
    for epoch in range(profile.epochs):
        for window in windows_of_epoch(
            trainer.data.train.lengths, trainer.seed, epoch, size, size, profile.bucketing
        ):
            batch = collate([trainer.data.train[index] for micro in window for index in micro])
            batch.pop("rows")
            assert optimizer.param_groups[0]["lr"] == pytest.approx(
                lr_at(len(losses), trainer.total, profile)
            )
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), profile.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize(
    ("size", "micro"), [(8, 2), (15, 5)], ids=["equal windows", "the last of an epoch smaller"]
)
def test_losses_are_those_of_a_plain_loop(tmp_path: Path, size: int, micro: int) -> None:
    overrides = ["model.dropout=0.0", "train.lr=1e-3", f"train.batch_size={size}"]
    run = make_run(tmp_path, [*overrides, f"train.micro_batch_size={micro}"], "ours")
    plain = make_run(tmp_path, [*overrides, f"train.micro_batch_size={size}"], "plain")
    assert train(run) == 0
    assert [event.data["loss"] for event in events(run, "step")] == pytest.approx(
        reference_losses(plain), abs=1e-4
    )
