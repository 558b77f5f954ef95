"""What a profile may ask for beyond the plain run: adapters, compilation, trackers, rollback, data from a function."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.runner.test_trainer import final_weights
from tests.runner.tiny import events, final_hash, make_run, outcome, train, write_rows

pytestmark = pytest.mark.train

ROLLBACK_AT_12 = """
import torch.nn.functional as F
calls = 0
def loss(logits, labels):
    global calls
    calls += 1  # two micro-batches a window
    return F.cross_entropy(logits, labels, reduction="none") * (float("nan") if calls == 23 else 1.0)
"""
POLICY = ["train.non_finite=rollback", "train.evaluate_every=end", "train.checkpoint_every=5"]


def warnings(run: Any) -> list[str]:
    return [event.data["text"]["msgid"] for event in events(run, "note") if event.data["level"] == "warn"]


def test_a_rollback_puts_the_last_good_weights_back_and_leaves_the_window_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nan_a.py").write_text(ROLLBACK_AT_12)
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path, [*POLICY, "train.loss=nan_a:loss", "train.steps=12"], "bad")
    ten = make_run(tmp_path, ["train.evaluate_every=end", "train.steps=12", "train.keep_last=9"], "good")
    assert train(run) == train(ten) == 0
    import safetensors.torch

    tenth = safetensors.torch.load_file(ten.checkpoint(10) / "model.safetensors")
    assert all(bool((tensor == tenth[name]).all()) for name, tensor in final_weights(run).items())
    assert any("put back" in text for text in warnings(run))


def test_after_a_rollback_the_schedule_is_that_of_the_weights_and_the_data_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nan_b.py").write_text(ROLLBACK_AT_12)
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path, [*POLICY, "train.loss=nan_b:loss"], "bad")
    assert train(run) == 0
    steps = events(run, "step")
    assert [event.step for event in steps] == list(range(1, 41))
    assert steps[11].data["skipped"] and steps[12].data["lr"] == steps[10].data["lr"]
    assert outcome(run)["outcome"] == "completed"


def test_rolling_back_again_and_again_ends(tmp_path: Path) -> None:
    overrides = ["train.lr=1e30", "train.clip_norm=0", "train.warmup=0", "train.non_finite_limit=2"]
    run = make_run(tmp_path, [*POLICY, *overrides])
    assert train(run) == 4
    assert len([event for event in events(run, "step") if event.data.get("skipped")]) >= 1


FUNCTION = """
import csv, itertools, pathlib
def rows(split):
    with open(pathlib.Path(__file__).with_name("rows.csv"), encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
turns = itertools.count()
def other(split):
    turn = next(turns)
    for number in range(40):
        yield {"text": f"the soup {number + turn * 100} was warm", "label": number % 2}
def bare(split):
    yield "text"
"""


def test_rows_of_a_function_train_as_those_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rows_a.py").write_text(FUNCTION)
    write_rows(tmp_path / "rows.csv")
    file = make_run(tmp_path, ["train.steps=6"], "file")
    function = make_run(
        tmp_path, ["train.steps=6", "data.train=[]", "data.function=my_rows_a:rows"], "function"
    )
    assert train(file) == train(function) == 0
    assert final_hash(file) == final_hash(function)


@pytest.mark.parametrize(
    ("name", "words"),
    [("other", "not the same"), ("bare", "yield dicts"), ("none", "no function")],
)
def test_a_function_that_cannot_be_used_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rows_b.py").write_text(FUNCTION)
    run = make_run(tmp_path, ["data.train=[]", f"data.function=my_rows_b:{name}"])
    assert train(run) == 1
    assert words in str(outcome(run)["error"])


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on the CPU")
@pytest.mark.slow
@pytest.mark.long
def test_a_compiled_model_learns_the_same_and_is_saved_under_its_own_names(tmp_path: Path) -> None:
    common = ["model.dropout=0.0", "train.steps=6", "train.bucketing=false"]
    compiled = make_run(tmp_path, [*common, "train.compile=true"], "compiled")
    plain = make_run(tmp_path, common, "plain")
    assert train(compiled) == train(plain) == 0
    for one, other in zip(events(compiled, "step"), events(plain, "step"), strict=True):
        assert one.data["loss"] == pytest.approx(other.data["loss"], abs=1e-4)
    assert set(final_weights(compiled)) == set(final_weights(plain))
    for name in (
        "model.safetensors",
        "optimizer.safetensors",
    ):  # what a run without a compiler would go on from
        assert names_in(compiled.checkpoint(6) / name) == names_in(plain.checkpoint(6) / name)


def names_in(path: Path) -> set[str]:
    import safetensors

    with safetensors.safe_open(str(path), framework="pt") as file:
        return set(file.keys())
