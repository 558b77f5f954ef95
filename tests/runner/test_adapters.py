"""Adapters (LoRA): they and the head alone are trained and stored; the base is opened again, and must be the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from runner.checkpoint import checkpoint_folders
from runner.rundir import RunDir
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import events, final_hash, last_losses, make_run, outcome, train

pytestmark = pytest.mark.train

LORA = 'model.lora={rank=4, alpha=8, targets=["query", "value"]}'
LORA_ALONE = 'model.lora={rank=4, alpha=8, targets=["query", "value"], merge=false}'
QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small pretrained model: a folder with weights, configuration and tokenizer."""
    pytest.importorskip("peft")
    run = make_run(tmp_path_factory.mktemp("base"), ["train.steps=2"])
    assert train(run) == 0
    return run.final


def on(base: Path, *more: str) -> list[str]:
    """Overrides for a run on a copy of nothing: the model is the folder, not the profile's configuration."""
    rows = base.parent.parent / "rows.csv"
    return ["model.config={}", f"model.path={base}", f"data.train={rows}", *more]


def weights(folder: Path) -> dict[str, Any]:
    import safetensors.torch

    return dict(safetensors.torch.load_file(folder / "model.safetensors"))


def test_adapters_alone_are_trained_and_merge_into_a_whole_model(base: Path, tmp_path: Path) -> None:
    import transformers

    run = make_run(tmp_path, on(base, LORA, "train.steps=12", "train.keep_last=9"))
    assert train(run) == 0
    begin, end = weights(run.checkpoint(5)), weights(run.checkpoint(12))
    assert any(not bool((tensor == begin[name]).all()) for name, tensor in end.items())
    merged = transformers.AutoModelForSequenceClassification.from_pretrained(str(run.final))
    before = weights(base)["bert.encoder.layer.0.attention.self.query.weight"]
    down, up = end[f"{QUERY}.lora_A.default.weight"], end[f"{QUERY}.lora_B.default.weight"]
    got = merged.bert.encoder.layer[0].attention.self.query.weight
    assert float((got - (before + 2.0 * up @ down)).detach().abs().max()) < 1e-6
    still = "bert.embeddings.word_embeddings.weight"
    assert bool((weights(run.final)[still] == weights(base)[still]).all())
    assert (run.final / "adapter" / "adapter_config.json").is_file()


def test_a_checkpoint_holds_the_adapters_and_the_head_alone(base: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, on(base, LORA, "train.steps=6"))
    assert train(run) == 0
    stored = weights(run.checkpoint(6))
    assert stored and all("lora_" in name or "classifier" in name for name in stored)
    whole = sum(tensor.nbytes for tensor in weights(base).values())
    assert sum(tensor.nbytes for tensor in stored.values()) < whole / 5


@pytest.mark.parametrize("adapters", [LORA, LORA_ALONE], ids=["merged", "adapter alone"])
def test_adapters_resume_exactly(base: Path, tmp_path: Path, adapters: str) -> None:
    whole, parts = (make_run(tmp_path, on(base, adapters, "train.epochs=1"), n) for n in ("whole", "parts"))
    assert train(whole) == 0
    assert train(parts, stop=StopAfter(9)) == 143
    assert train(parts, resume=True) == 0
    assert last_losses(parts) == last_losses(whole)
    assert weights(parts.checkpoint(20)).keys() == weights(whole.checkpoint(20)).keys()
    if adapters == LORA:
        assert final_hash(parts) == final_hash(whole)


def answer(model: Any, tokenizer: Any) -> Any:
    model.eval()
    return model(**tokenizer(["the soup was lovely and warm"], return_tensors="pt")).logits


def test_an_adapter_alone_opens_with_peft_and_with_transformers(base: Path, tmp_path: Path) -> None:
    import peft
    import torch
    import transformers

    run = make_run(tmp_path, on(base, LORA_ALONE, "train.steps=6"), "alone")
    merged = make_run(tmp_path, on(base, LORA, "train.steps=6"), "merged")
    assert train(run) == train(merged) == 0
    assert not (run.final / "model.safetensors").exists()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(run.final))
    auto = transformers.AutoModelForSequenceClassification
    answers = [
        answer(peft.AutoPeftModelForSequenceClassification.from_pretrained(str(run.final)), tokenizer),
        answer(auto.from_pretrained(str(run.final)), tokenizer),
        answer(auto.from_pretrained(str(merged.final)), tokenizer),
    ]
    assert torch.allclose(answers[0], answers[2], atol=1e-6)
    assert torch.allclose(answers[1], answers[2], atol=1e-6)


def changed_base(base: Path, folder: Path) -> Path:
    """Copy the base and move one weight of it by a little."""
    import shutil

    import safetensors.torch

    shutil.copytree(base, folder)
    tensors = weights(folder)
    tensors["bert.embeddings.word_embeddings.weight"][5, 5] += 1e-3
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.mark.parametrize("approximate", [False, True], ids=["exactly", "approximately"])
def test_a_base_that_was_changed_meanwhile_is_refused(base: Path, tmp_path: Path, approximate: bool) -> None:
    import shutil

    own = tmp_path / "base"
    shutil.copytree(base, own)
    run = make_run(tmp_path, on(base, LORA, f"model.path={own}", "train.epochs=1"))
    assert train(run, stop=StopAfter(9)) == 143
    shutil.rmtree(own)
    changed_base(base, own)
    assert train(run, resume=True, approximate=approximate) == 1
    error = str(outcome(run)["error"])
    assert str(own) in error and "not those it was begun with" in error
    shutil.rmtree(own)
    shutil.copytree(base, own)
    assert train(run, resume=True) == 0


def test_a_checkpoint_from_before_that_holds_everything_is_continued(base: Path, tmp_path: Path) -> None:
    """What an older runner wrote: the base among the weights, and no hash of it."""
    import json

    import safetensors.torch

    from runner.durable import seal_folder
    from tests.runner.test_traps import built

    whole, old = (make_run(tmp_path, on(base, LORA, "train.epochs=1"), name) for name in ("whole", "old"))
    assert train(whole) == 0
    assert train(old, stop=StopAfter(9)) == 143
    (_, folder), *_ = checkpoint_folders(old)
    everything = built(make_run(tmp_path, on(base, LORA), "fresh")).engine.bare_model.state_dict()
    stored = {**{name: tensor.contiguous() for name, tensor in everything.items()}, **weights(folder)}
    safetensors.torch.save_file(stored, folder / "model.safetensors")
    state = json.loads((folder / "state.json").read_bytes())
    for name in ("base", "base_sha256", "approximate", "cpu_capability", "transformers_version"):
        del state[name]
    (folder / "state.json").write_text(json.dumps(state))
    seal_folder(folder)
    assert train(old, resume=True) == 0, outcome(old)
    assert final_hash(old) == final_hash(whole)


def without_peft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)


def test_without_peft_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_peft(monkeypatch)
    run = make_run(tmp_path, [LORA])
    assert train(run) == 1
    assert "pip install --no-deps peft" in str(outcome(run)["error"])


def test_layers_that_are_not_there_are_said(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    run: RunDir = make_run(tmp_path, ['model.lora={targets=["nowhere"]}'])
    assert train(run) == 1
    assert "model.lora.targets" in str(outcome(run)["error"])
    assert not events(run, "step")
