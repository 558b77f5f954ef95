"""Folders with a LoRA adapter alone, as peft itself writes them: opened on their base, the answers are those of peft's model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

pytest.importorskip("peft", reason="peft is not installed")

import peft

from runner.deploy.opening import open_trained
from runner.deploy.trained import encode
from runner.inputs import InputError
from tests.deploy.tiny import save_model

TEXTS = ["a good film", "bad", "it was not very good the film was bad a b c d e f g"]
KINDS: dict[str, tuple[str, str, str | None, str, dict[str, Any]]] = {
    "BERT, classes": ("bert", "AutoModelForSequenceClassification", "SEQ_CLS", "classification", {}),
    "DistilBERT, whose head has two layers, both saved": (
        "distilbert", "AutoModelForSequenceClassification", "SEQ_CLS", "classification",
        {"modules_to_save": ["pre_classifier", "classifier"], "target_modules": ["q_lin", "v_lin"]}),
    "RoBERTa, whose head is a module": ("roberta", "AutoModelForSequenceClassification", "SEQ_CLS", "classification", {}),
    "GPT-2, classes": ("gpt2", "AutoModelForSequenceClassification", "SEQ_CLS", "classification", {}),
    "BERT, a label a token": ("bert", "AutoModelForTokenClassification", "TOKEN_CLS", "token-classification", {}),
    "GPT-2, the next token": ("gpt2", "AutoModelForCausalLM", "CAUSAL_LM", "causal-lm", {}),
    "BERT, features": ("bert", "AutoModel", "FEATURE_EXTRACTION", "features", {}),
    "BERT, gaps, no task named": ("bert", "AutoModelForMaskedLM", None, "masked-lm", {}),
}  # fmt: skip


def save_adapter(
    folder: Path,
    base: Path,
    kind: str,
    auto: str,
    task: str | None,
    options: dict[str, Any],
    classes: int = 5,
) -> Any:
    """Put an adapter with numbers in it on a base model, write it alone, and return peft's own model."""
    targets = {"distilbert": ["q_lin", "v_lin"], "gpt2": ["c_attn"]}.get(kind, ["query", "value"])
    changes = {"num_labels": classes} if "Classification" in auto else {}
    loaded = getattr(transformers, auto).from_pretrained(str(base), **changes, ignore_mismatched_sizes=True)
    config = peft.LoraConfig(
        **{"task_type": task, "r": 4, "lora_alpha": 8, "target_modules": targets, **options}
    )
    model = peft.get_peft_model(loaded, config).eval()
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(str(folder))
    return model


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_an_adapter_answers_as_pefts_own_model(
    tmp_path: Path, kind: tuple[str, str, str | None, str, dict[str, Any]]
) -> None:
    name, auto, task, wanted, options = kind
    base = save_model(tmp_path / "base", auto, name)
    model = save_adapter(tmp_path / "adapter", base, name, auto, task, options)
    trained = open_trained(tmp_path / "adapter")
    assert trained.kind == wanted
    if "Classification" in auto:
        assert len(trained.labels) == 5, "as many as its own head has, not as the base's"
    batch = encode(trained, TEXTS)
    with torch.inference_mode():
        want = getattr(model(**batch, **trained.extra), trained.output_name)
    real = batch["attention_mask"].bool() if want.ndim == 3 else torch.ones(len(TEXTS), dtype=torch.bool)
    assert torch.allclose(trained.answer(batch)[real], want[real], atol=1e-5)


def test_an_adapter_becomes_onnx_that_answers_as_it_does(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from tests.deploy.test_onnx import exported

    base = save_model(tmp_path / "base", "AutoModelForSequenceClassification")
    save_adapter(tmp_path / "adapter", base, "bert", "AutoModelForSequenceClassification", "SEQ_CLS", {})
    found = exported(tmp_path / "adapter", tmp_path / "onnx", exporter="torchscript")
    assert found.variants[0].is_equal and len(found.labels) == 5


def edited(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_base_that_lies_beside_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = save_model(tmp_path / "here" / "base", "AutoModelForSequenceClassification")
    save_adapter(
        tmp_path / "here" / "adapter", base, "bert", "AutoModelForSequenceClassification", "SEQ_CLS", {}
    )
    edited(tmp_path / "here" / "adapter", base_model_name_or_path="../base")
    monkeypatch.chdir(tmp_path)
    assert not Path("../base").is_dir()
    assert open_trained(tmp_path / "here" / "adapter").kind == "classification"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a base that is not here": ({"base_model_name_or_path": "some/where-else"}, "is an adapter for some/where-else, which is not on this machine"),
    "no base": ({"base_model_name_or_path": None}, "is an adapter for ?, which is not on this machine"),
    "a kind that answers no text": ({"task_type": "SEQ_2_SEQ_LM"}, "an adapter of kind SEQ_2_SEQ_LM is not known here"),
    "no task and no model named": ({"task_type": None, "auto_mapping": None}, "an adapter of kind None is not known here"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), WRONG.values(), ids=WRONG.keys())
def test_an_adapter_that_cannot_be_opened_is_a_sentence(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    base = save_model(tmp_path / "base", "AutoModelForSequenceClassification")
    save_adapter(tmp_path / "adapter", base, "bert", "AutoModelForSequenceClassification", "SEQ_CLS", {})
    edited(tmp_path / "adapter", **changes)
    with pytest.raises(InputError) as caught:
        open_trained(tmp_path / "adapter")
    assert words in str(caught.value)


def test_a_base_without_a_part_that_the_adapter_leaves_to_it_is_refused(tmp_path: Path) -> None:
    """A masked language model has no pooler: each opening would draw another."""
    base = save_model(tmp_path / "base", "AutoModelForMaskedLM")
    save_adapter(tmp_path / "adapter", base, "bert", "AutoModelForSequenceClassification", "SEQ_CLS", {})
    with pytest.raises(InputError) as caught:
        open_trained(tmp_path / "adapter")
    assert "has weights for bert.pooler.dense.bias, bert.pooler.dense.weight: they would be made up" in str(
        caught.value
    )
