"""Models of several families written as ONNX by both exporters, opened again, and asked."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

from runner.deploy.answers import answer_rows
from runner.deploy.exporting import Request, export
from runner.deploy.onnx_file import ExportFailed, choose_exporter, describe, operator_in
from runner.deploy.opening import open_onnx, open_trained
from runner.deploy.records import Exported
from runner.inputs import InputError
from runner.rows import Row
from tests.deploy.tiny import save_model

TEXTS = ["a good film", "bad", "it was not very good the film was bad a b c d e f g", "g"]
ROWS = [Row(text, "", None) for text in TEXTS]


def exported(folder: Path, out: Path, **options: Any) -> Exported:
    request = {"texts": TEXTS, "with_latency": False, **options}
    return export(Request(folder=str(folder), out=str(out), **request), lambda text: None)


@pytest.mark.parametrize(
    ("auto", "kind"),
    [
        pytest.param("AutoModelForSequenceClassification", "bert", id="BERT"),
        pytest.param("AutoModelForSequenceClassification", "roberta", id="RoBERTa"),
        pytest.param("AutoModelForSequenceClassification", "xlm-roberta", id="XLM-R"),
        pytest.param("AutoModelForSequenceClassification", "distilbert", id="DistilBERT"),
        pytest.param("AutoModelForSequenceClassification", "deberta-v2", id="DeBERTa-v2"),
        pytest.param("AutoModelForSequenceClassification", "electra", id="ELECTRA"),
        pytest.param("AutoModelForSequenceClassification", "albert", id="ALBERT"),
        pytest.param("AutoModelForSequenceClassification", "modernbert", id="ModernBERT"),
        pytest.param("AutoModelForSequenceClassification", "gpt2", id="GPT-2, classes"),
        pytest.param("AutoModelForSequenceClassification", "qwen2", id="Qwen2, classes"),
        pytest.param("AutoModelForSequenceClassification", "llama", id="Llama, classes"),
        pytest.param("AutoModelForTokenClassification", "bert", id="BERT, a label a token"),
        pytest.param("AutoModelForMaskedLM", "bert", id="BERT, gaps"),
        pytest.param("AutoModelForCausalLM", "gpt2", id="GPT-2"),
        pytest.param("AutoModel", "bert", id="features"),
    ],
)
def test_torchscript_exports_answer_as_torch_does(tmp_path: Path, auto: str, kind: str) -> None:
    """With weights so large that a token more or less is seen in the answer."""
    folder = save_model(tmp_path / "model", auto, kind, initializer_range=0.5)
    found = exported(folder, tmp_path / "onnx", exporter="torchscript")
    (fp32,) = found.variants
    padded = [one for one in fp32.shapes if one.shape[0] > 1]
    assert fp32.is_equal and len({one.shape for one in padded}) >= 5 and {one.side for one in padded} == {"right", "left"}  # fmt: skip
    assert fp32.agreement and (fp32.agreement.samples, fp32.provider) == (len(TEXTS), "CPUExecutionProvider")


@pytest.mark.train
@pytest.mark.parametrize(
    ("auto", "kind"),
    [
        pytest.param("AutoModelForSequenceClassification", "bert", id="BERT"),
        pytest.param("AutoModelForCausalLM", "gpt2", id="GPT-2"),
    ],
)
def test_dynamo_exports_answer_as_torch_does(tmp_path: Path, auto: str, kind: str) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    folder = save_model(tmp_path / "model", auto, kind)
    found = exported(folder, tmp_path / "onnx", exporter="dynamo")
    assert found.exporter == "dynamo"
    assert found.variants[0].is_equal


def test_smaller_variants_lie_beside_with_how_they_answer(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    found = exported(folder, tmp_path / "onnx", exporter="torchscript", variants=["fp16", "int8"])
    names = [one.name for one in found.variants]
    assert names == ["fp32", "fp16", "int8"]
    assert all(one.trouble is None and one.agreement is not None for one in found.variants)
    assert {one.file for one in found.variants} <= {path.name for path in (tmp_path / "onnx").iterdir()}
    kept = json.loads((tmp_path / "onnx" / "export.json").read_text())
    assert kept["labels"] == ["bad", "good", "so-so"]


def test_the_model_is_left_as_it_was(tmp_path: Path) -> None:
    """An exporter gives parts their mode back by the whole's: dropout would come on behind the comparison's back."""
    from runner.deploy.onnx_file import write_onnx
    from runner.text import t

    trained = open_trained(save_model(tmp_path / "model", "AutoModelForSequenceClassification"))
    write_onnx(trained, tmp_path / "model.onnx", "torchscript", None, t("asked for"))
    assert not any(module.training for module in trained.model.modules())


def test_a_file_that_answers_otherwise_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    from runner.deploy import onnx_file

    write = onnx_file._EXPORTERS["torchscript"]

    def write_another(trained: Any, path: Path, opset: int) -> None:
        with torch.no_grad():
            trained.model.classifier.bias.add_(0.5)
        write(trained, path, opset)
        with torch.no_grad():
            trained.model.classifier.bias.sub_(0.5)

    monkeypatch.setitem(onnx_file._EXPORTERS, "torchscript", write_another)
    with pytest.raises(ExportFailed) as caught:
        exported(folder, tmp_path / "onnx", exporter="torchscript")
    assert "does not answer as torch does: 1 x 7 tokens (padding: right), logits[0, 0]: torch" in str(
        caught.value
    )
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_other_exporter_is_tried_where_the_first_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    from runner.deploy import onnx_file

    def refuse(*_: Any) -> None:
        raise RuntimeError(
            "Exporting the operator 'aten::fft_fft' to ONNX opset version 17 is not supported."
        )

    monkeypatch.setitem(onnx_file._EXPORTERS, "dynamo", refuse)
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    found = exported(folder, tmp_path / "onnx")
    assert found.exporter == "torchscript"
    assert "aten::fft_fft" in str(found.why)


def test_answers_are_the_same_from_torch_and_from_onnx(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    exported(folder, tmp_path / "onnx", exporter="torchscript")
    ours = answer_rows(open_trained(folder), ROWS, 3)
    theirs = answer_rows(open_onnx(tmp_path / "onnx" / "model.onnx"), ROWS, 3)
    assert [one["label"] for one in ours] == [one["label"] for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)


def test_both_cut_long_texts_at_the_same_place(tmp_path: Path) -> None:
    """In training texts were cut at 8 tokens; the model itself would take 64."""
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    exported(folder, tmp_path / "onnx", exporter="torchscript", max_length=8)
    long = [Row("good film " * 3 + "bad not " * 20, "", None)]
    (ours,) = answer_rows(open_trained(folder, 8), long, 3)
    (theirs,) = answer_rows(open_onnx(tmp_path / "onnx" / "model.onnx"), long, 3)
    assert ours["score"] == pytest.approx(theirs["score"], abs=1e-6)
    (whole,) = answer_rows(open_trained(folder), long, 3)
    assert whole["score"] != pytest.approx(ours["score"], abs=1e-6)


@pytest.mark.parametrize(
    ("words", "operator"),
    [
        pytest.param(
            "Exporting the operator 'aten::fft_fft' to ONNX opset version 17 is not supported. Please feel free to request support",
            "aten::fft_fft", id="TorchScript",
        ),
        pytest.param(
            "No ONNX function found for <OpOverload(op='aten._fft_r2c', overload='default')>. Failure message: No decompositions registered",
            "aten._fft_r2c", id="dynamo",
        ),
        pytest.param("Dimension size mismatch", "", id="no operator is named"),
    ],
)  # fmt: skip
def test_the_operator_without_a_translation_is_named(words: str, operator: str) -> None:
    assert operator_in(words) == operator


@pytest.mark.parametrize("exporter", ["torchscript", pytest.param("dynamo", marks=pytest.mark.train)])
def test_a_real_unsupported_operator_is_named_with_its_line(tmp_path: Path, exporter: str) -> None:
    """The class stands in a file of its own, as a user's model does."""
    source = tmp_path / "users_model.py"
    source.write_text(
        "import torch\n\nclass Odd(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.linalg.eigvals(x.float()).real\n"
    )
    scope: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), scope)
    model, inputs = scope["Odd"]().eval(), (torch.eye(3),)
    with pytest.raises(Exception) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, inputs, str(tmp_path / "odd.onnx"), dynamo=exporter == "dynamo", verbose=False
        )
    words = str(describe(exporter, caught.value, model, inputs))
    assert "linalg_eig" in words
    assert f"asked for at {source}:5" in words


def test_without_onnxscript_the_old_exporter_is_chosen_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_exporter("auto")[0] == ("torchscript",)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda folder: (folder / "config.json").write_text("{"), "cannot be opened as a model", id="broken configuration"),
        pytest.param(lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"), "cannot be opened as a model", id="broken weights"),
        pytest.param(lambda folder: (folder / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForSomethingElse"]}'), "BertForSomethingElse is not known", id="unknown kind"),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_a_sentence(tmp_path: Path, damage: Any, words: str) -> None:
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    damage(folder)
    with pytest.raises(InputError) as caught:
        open_trained(folder)
    assert words in str(caught.value)
