"""Data sets as the hub has them, from a local folder; and what is said when the hub cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.hub import hub_problem
from tests.runner.tiny import BAD, GOOD, events, final_hash, make_run, outcome, train, write_rows


def folder_of(tmp_path: Path) -> Path:
    """A folder that ``load_dataset`` opens: two splits of JSON lines, and a card that names the classes."""
    folder = tmp_path / "reviews"
    folder.mkdir()
    for split, count in (("train", 60), ("test", 20)):
        rows = (
            {"text": f"the soup {split} {n} was {(GOOD if n % 2 else BAD)[n % 7]}", "label": n % 2}
            for n in range(count)
        )
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "README.md").write_text(
        "---\ndataset_info:\n  features:\n  - name: text\n    dtype: string\n  - name: label\n    dtype:\n"
        "      class_label:\n        names:\n          '0': bad\n          '1': good\n---\n"
    )
    return folder


def on_hub(folder: Path | str, *more: str) -> list[str]:
    return ["data.train=[]", f"data.hub={folder}", "data.eval_split=test", "train.steps=6", *more]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.train
@pytest.mark.parametrize("stream", ["false", "true"], ids=["kept on the disk", "streamed"])
def test_a_data_set_of_the_hub_is_trained_on_under_its_own_class_names(
    tmp_path: Path, own_cache: Path, stream: str
) -> None:
    run = make_run(tmp_path, on_hub(folder_of(tmp_path), f"data.stream={stream}"))
    assert train(run) == 0, outcome(run)
    facts = json.loads((run.data / "data.json").read_bytes())
    assert facts["classes"] == ["bad", "good"]
    assert (facts["train"]["samples"], facts["eval"]["samples"]) == (60, 20)
    assert len(events(run, "step")) == 6


@pytest.mark.train
def test_streamed_rows_train_the_same_weights_and_leave_no_copy(tmp_path: Path, own_cache: Path) -> None:
    folder = folder_of(tmp_path)
    streamed = make_run(tmp_path, on_hub(folder, "data.stream=true"), "streamed")
    assert train(streamed) == 0
    assert not list(own_cache.rglob("*.arrow"))
    kept = make_run(tmp_path, on_hub(folder), "kept")
    assert train(kept) == 0
    assert list(own_cache.rglob("*.arrow"))
    assert final_hash(streamed) == final_hash(kept)


@pytest.mark.train
def test_a_split_that_is_not_there_is_said(tmp_path: Path, own_cache: Path) -> None:
    run = make_run(tmp_path, on_hub(folder_of(tmp_path), "data.train_split=training"))
    assert train(run) == 1
    assert "data.hub" in str(outcome(run)["error"]) and "training" in str(outcome(run)["error"])


UNREACHABLE = [
    "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck",
    "Couldn't reach 'stanfordnlp/imdb' on the Hub (LocalEntryNotFoundError)",
    "[Errno -2] Name or service not known",
    "HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)",
]


@pytest.mark.parametrize("words", UNREACHABLE)
@pytest.mark.parametrize("endpoint", ["", "http://10.0.0.7:8080"], ids=["the hub itself", "a mirror"])
def test_a_hub_that_is_not_reached_is_named_with_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, words: str, endpoint: str
) -> None:
    for name in ("HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    if endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
    said = str(hub_problem("data.hub", "stanfordnlp/imdb", OSError(words)))
    assert said.startswith("data.hub: stanfordnlp/imdb could not be fetched")
    assert (endpoint or "https://huggingface.co") + " was not reached" in said
    assert "HF_ENDPOINT" in said and "folder" in said


@pytest.mark.parametrize(
    "words", [*UNREACHABLE[:2], "Couldn't reach 'a/b' on the Hub (OfflineModeIsEnabled)"]
)
def test_offline_by_a_variable_is_told_from_a_hub_that_is_not_reached(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = str(hub_problem("model.hub", "a/b", OSError(words)))
    assert "HF_HUB_OFFLINE=1" in said and "not reached" not in said


@pytest.mark.parametrize(
    "words", ["404 Client Error: Repository Not Found", "You are trying to access a gated repo.\nMake sure"]
)
def test_an_answer_that_says_no_is_passed_on_and_blames_no_network(words: str) -> None:
    said = str(hub_problem("model.hub", "a/b", OSError(words)))
    assert words.partition("\n")[0] in said and "HF_ENDPOINT" not in said


@pytest.mark.train
@pytest.mark.parametrize("part", ["model", "data"])
def test_a_run_without_a_network_ends_with_that_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    import datasets
    import transformers

    def unreachable(*arguments: Any, **options: Any) -> Any:
        raise ConnectionError("Couldn't reach 'nobody/nothing' on the Hub (LocalEntryNotFoundError)")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", unreachable)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    write_rows(tmp_path / "rows.csv")
    overrides = (
        on_hub("nobody/nothing") if part == "data" else ["model.config={}", "model.hub=nobody/nothing"]
    )
    run = make_run(tmp_path, overrides)
    assert train(run) == 1
    error = str(outcome(run)["error"])
    assert error.startswith(f"{part}.hub: nobody/nothing could not be fetched") and "HF_ENDPOINT" in error
    assert outcome(run)["error_text"], "a sentence that can be translated"
