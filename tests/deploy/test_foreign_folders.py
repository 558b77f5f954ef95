"""Checkpoint folders that are not ours, as transformers writes them: exported and held against torch, with real texts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

from runner.deploy.answers import answer_rows
from runner.deploy.exporting import Request, export
from runner.deploy.onnx_file import ExportFailed
from runner.deploy.opening import open_onnx, open_trained
from runner.rows import Row
from tests.deploy.test_onnx import TEXTS, exported
from tests.deploy.tiny import SIZES, save_model, save_tokenizer

FOREIGN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a label a token": ("AutoModelForTokenClassification", "bert", {}),
    "a number": ("AutoModelForSequenceClassification", "bert", {"num_labels": 1, "problem_type": "regression"}),
    "a number, not said to be one": ("AutoModelForSequenceClassification", "bert", {"num_labels": 1}),
    "several labels at once": ("AutoModelForSequenceClassification", "roberta", {"problem_type": "multi_label_classification"}),
    "gaps": ("AutoModelForMaskedLM", "roberta", {}),
    "the next token": ("AutoModelForCausalLM", "gpt2", {}),
}  # fmt: skip


@pytest.mark.parametrize(("auto", "kind", "changes"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_folder_of_transformers_is_exported_and_gives_the_same_answers(
    tmp_path: Path, auto: str, kind: str, changes: dict[str, Any]
) -> None:
    folder = save_foreign(tmp_path / "model", auto, kind, changes)
    found = exported(folder, tmp_path / "onnx", exporter="torchscript", variants=["int8"])
    fp32, int8 = found.variants
    assert fp32.is_equal and fp32.agreement is not None and fp32.agreement.disagreements == 0
    assert int8.trouble is None and int8.agreement is not None
    if auto == "AutoModelForCausalLM":
        return  # text is continued by torch alone
    rows = [
        Row(text.replace("good", "[MASK]") if auto == "AutoModelForMaskedLM" else text, "", None)
        for text in TEXTS
    ]
    ours = answer_rows(open_trained(folder), rows, 3)
    theirs = answer_rows(open_onnx(tmp_path / "onnx" / "model.onnx"), rows, 3)
    assert [spoken(one) for one in ours] == [spoken(one) for one in theirs]


def save_foreign(folder: Path, auto: str, kind: str, changes: dict[str, Any]) -> Path:
    if "num_labels" not in changes:
        return save_model(folder, auto, kind, **changes)
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(kind, **SIZES, **changes)
    getattr(transformers, auto).from_config(config).save_pretrained(str(folder))
    save_tokenizer(folder, kind)
    return folder


def spoken(answer: dict[str, Any]) -> Any:
    """Return what of an answer is said, numbers rounded."""
    if "value" in answer:
        return round(answer["value"], 4)
    return (
        answer.get("label")
        or answer.get("labels")
        or answer.get("tags")
        or [list(gap)[:1] for gap in answer["gaps"]]
    )


def test_torch_is_asked_once_for_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.deploy.trained import Trained

    asked = 0
    answer = Trained.answer

    def counting(self: Trained, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        nonlocal asked
        asked += 1
        return answer(self, batch)

    monkeypatch.setattr(Trained, "answer", counting)
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    shapes = len(exported(folder, tmp_path / "a", exporter="torchscript", texts=[]).variants[0].shapes)
    assert asked == shapes
    exported(folder, tmp_path / "b", exporter="torchscript", texts=TEXTS * 8, variants=["fp16", "int8"])
    assert asked - shapes == shapes + 2, "32 texts in batches of 16, for three files"


def test_a_variant_that_cannot_answer_is_given_up_and_the_others_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.deploy.session import ask

    def refuse_int8(session: Any, batch: Any) -> Any:
        if "int8" in str(session._model_path):
            raise RuntimeError("NOT_IMPLEMENTED : Could not find an implementation for MatMulInteger(10)")
        return ask(session, batch)

    monkeypatch.setattr("runner.deploy.trials.ask", refuse_int8)
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    found = exported(folder, tmp_path / "onnx", exporter="torchscript", variants=["int8", "fp16"])
    fp32, int8, fp16 = found.variants
    assert fp32.is_equal and fp16.trouble is None
    assert "MatMulInteger" in str(int8.trouble) and int8.file == ""
    assert not list((tmp_path / "onnx").glob("*int8*"))


ODD = """\
import torch
from transformers.models.bert import modeling_bert

def forward(self, hidden_states):
    first = hidden_states[:, 0]
    return torch.linalg.eigvals(first.unsqueeze(-1) @ first.unsqueeze(-2)).real

def install():
    modeling_bert.BertPooler.forward = forward
"""


def test_an_operator_without_a_translation_is_named_with_line_and_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the whole export: a model whose code asks for something that no exporter has."""
    (tmp_path / "odd_pooler.py").write_text(ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    from transformers.models.bert import modeling_bert

    monkeypatch.setattr(modeling_bert.BertPooler, "forward", modeling_bert.BertPooler.forward)
    import odd_pooler  # type: ignore[import-not-found]

    odd_pooler.install()
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    with pytest.raises(ExportFailed) as failed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(
            Request(folder=str(folder), out=str(tmp_path / "onnx"), texts=TEXTS, exporter="torchscript"),
            lambda text: None,
        )
    words = str(failed.value)
    assert "the torchscript exporter has no translation of aten::linalg_eig" in words
    assert f"asked for at {tmp_path / 'odd_pooler.py'}:6" in words
    assert "try --exporter dynamo, or a higher --opset" in words
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"odd_pooler.py", "model"}
