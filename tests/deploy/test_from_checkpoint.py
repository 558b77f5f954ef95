"""A run that has no end yet: its checkpoints are opened, the best one that is as it was written; adapters are merged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from runner.checkpoint import checkpoint_folders, read_state
from runner.deploy.from_run import Assembly, assemble, choose_checkpoint, open_checkpoint
from runner.deploy.opening import open_trained
from runner.deploy.trained import Trained, encode
from runner.inputs import InputError
from runner.rundir import RunDir
from tests.runner.tiny import make_run, train

pytestmark = pytest.mark.train

TEXTS = ["warm and tasty soup", "rude and slow", "the table was salty and the rice cold"]
KEPT = ("train.keep_last=9", "train.evaluate_every=5", "train.epochs=1")


def trained_run(folder: Path, *overrides: str) -> RunDir:
    run = make_run(folder, [*KEPT, *overrides])
    assert train(run) == 0
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return trained_run(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def stopped(run: RunDir, tmp_path: Path) -> RunDir:
    """The run as a signal left it: no final folder."""
    shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("final"))
    return RunDir(tmp_path / "run")


def logits(trained: Trained) -> torch.Tensor:
    return trained.answer(encode(trained, TEXTS))


def steps(run: RunDir) -> list[int]:
    return [step for step, _ in checkpoint_folders(run)]


def damage(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def test_the_last_checkpoint_answers_as_the_finished_model(run: RunDir) -> None:
    folder, why = choose_checkpoint(run, "last")
    assert str(why) == f"the newest checkpoint, step {max(steps(run))}, is used"
    assert torch.equal(logits(open_checkpoint(run, folder)), logits(open_trained(run.final, 32)))


def test_the_best_one_is_what_the_evaluations_found_best(stopped: RunDir) -> None:
    best = read_state(stopped.checkpoint(max(steps(stopped)))).best_window
    folder, _ = choose_checkpoint(stopped, "best")
    assert folder == stopped.checkpoint(best or 0)


def test_a_damaged_best_one_is_passed_over_and_said(stopped: RunDir) -> None:
    best = read_state(stopped.checkpoint(max(steps(stopped)))).best_window or 0
    if best == max(steps(stopped)):
        pytest.skip("here the newest is the best")
    damage(stopped.checkpoint(best))
    folder, why = choose_checkpoint(stopped, "best")
    assert folder == stopped.checkpoint(max(steps(stopped)))
    assert "damaged" in str(why)


def test_a_damaged_newest_one_is_passed_over(stopped: RunDir) -> None:
    newest, before = steps(stopped)[:2]
    damage(stopped.checkpoint(newest))
    assert choose_checkpoint(stopped, "last")[0] == stopped.checkpoint(before)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param("7", "has no checkpoint of step 7; there are: ", id="a step without one"),
        pytest.param("newest", "takes best, last or a step, not newest", id="another word"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_a_sentence(stopped: RunDir, asked: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_checkpoint(stopped, asked)
    assert words in str(caught.value)


def test_a_damaged_one_asked_for_is_refused(stopped: RunDir) -> None:
    newest = max(steps(stopped))
    damage(stopped.checkpoint(newest))
    with pytest.raises(InputError) as caught:
        choose_checkpoint(stopped, str(newest))
    assert "cannot be believed: model.safetensors was changed" in str(caught.value)


def test_a_checkpoint_becomes_a_folder_that_anybody_opens(stopped: RunDir, tmp_path: Path) -> None:
    step = steps(stopped)[1]
    assemble(
        Assembly(run=str(stopped.path), checkpoint=str(step), target=str(tmp_path / "out")), lambda text: None
    )
    theirs = logits(open_trained(tmp_path / "out", 32))
    assert torch.equal(theirs, logits(open_checkpoint(stopped, stopped.checkpoint(step))))
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (report["steps"], report["is_finished"]) == (step, False)
    assert "not finished" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("merge", [pytest.param(False, id="adapter alone"), pytest.param(True, id="merged")])
def test_adapters_are_merged_from_a_checkpoint_and_from_the_end(tmp_path: Path, merge: bool) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    lora = f'model.lora={{rank=4, alpha=8, targets=["query", "value"], merge={str(merge).lower()}}}'
    run = trained_run(tmp_path, lora)
    of_checkpoint = logits(open_checkpoint(run, choose_checkpoint(run, "last")[0]))
    if merge:
        of_end = logits(open_trained(run.final, 32))
    else:
        of_end = logits(open_checkpoint(run, choose_checkpoint(run, "final")[0]))
    assert torch.allclose(of_checkpoint, of_end, atol=1e-6)
    with_noise = logits(open_checkpoint(run, run.checkpoint(min(steps(run)))))
    assert not torch.allclose(of_checkpoint, with_noise, atol=1e-6)


def test_what_stood_still_comes_from_its_base(tmp_path: Path) -> None:
    run = trained_run(tmp_path, 'train.freeze=[{parameters="bert.embeddings.*"}]')
    folder, _ = choose_checkpoint(run, "last")
    assert torch.equal(logits(open_checkpoint(run, folder)), logits(open_trained(run.final, 32)))
