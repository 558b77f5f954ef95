"""A model's folder, copied anywhere, cuts texts where its training did: whoever opens it need not know the profile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import transformers

from runner.deploy.answers import answer_rows
from runner.deploy.from_run import Assembly, assemble, choose_checkpoint, open_checkpoint
from runner.deploy.opening import open_trained
from runner.rows import Row
from runner.rundir import RunDir
from tests.runner.tiny import make_run, train

pytestmark = pytest.mark.train

LONG = "the soup was warm and tasty and fresh " * 2 + "but the rice was cold stale rude slow salty " * 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run whose model has 64 positions, of which the training used 16."""
    run = make_run(tmp_path_factory.mktemp("short"), ["train.max_length=16", "train.epochs=3"])
    assert train(run) == 0
    return run


def piped(folder: Path) -> dict[str, float]:
    """Return what transformers' own pipeline says of a folder; it is told to truncate, and not to which length."""
    answers = transformers.pipeline(
        "text-classification", model=str(folder), tokenizer=str(folder), top_k=None
    )
    (answer,) = answers([LONG], truncation=True)
    return {one["label"]: round(one["score"], 5) for one in answer}


def ours(trained: object) -> dict[str, float]:
    (answer,) = answer_rows(trained, [Row(LONG, "", None)], 2)  # type: ignore[arg-type]
    return {name: round(score, 5) for name, score in answer["scores"].items()}


def test_a_copied_folder_cuts_where_the_training_did(run: RunDir, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(run.final, tmp_path / "elsewhere"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(copied))
    assert tokenizer.model_max_length == 16 and len(tokenizer(LONG, truncation=True)["input_ids"]) == 16
    checkpoint, _ = choose_checkpoint(run, "last")
    assert ours(open_trained(copied)) == ours(open_checkpoint(run, checkpoint))
    assert piped(copied) == pytest.approx(ours(open_trained(copied)), abs=2e-5)
    assert ours(open_trained(copied, 64)) != ours(open_trained(copied)), "the rest of the text would tell"


def test_so_does_a_folder_made_of_a_checkpoint(run: RunDir, tmp_path: Path) -> None:
    request = Assembly(run=str(run.path), checkpoint="last", target=str(tmp_path / "made"))
    assemble(request, lambda text: None)
    assert piped(tmp_path / "made") == piped(run.final)


def test_a_run_that_goes_on_later_is_not_cut_by_what_it_wrote(run: RunDir) -> None:
    """The tokenizer of the run itself keeps the model's own length: another plan may use more of it."""
    assert transformers.AutoTokenizer.from_pretrained(str(run.tokenizer)).model_max_length == 64
