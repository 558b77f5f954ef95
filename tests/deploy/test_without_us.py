"""What lies in an export is enough: a program that knows nothing of this project gives the answers of ``doctor predict``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import tokenizers

from runner.deploy.answers import answer_rows
from runner.deploy.opening import open_trained
from runner.rows import Row
from tests.deploy.test_onnx import exported
from tests.deploy.tiny import save_model

TEXTS = ["good film", "a b c d e f g good bad film very not the was is it", "bad"]
# Nothing is said of a length or a side: both are the tokenizer's own.
PROGRAM = """\
import json, sys
import numpy, onnxruntime
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
session = onnxruntime.InferenceSession(sys.argv[1] + "/model.onnx", providers=["CPUExecutionProvider"])
batch = tokenizer(json.loads(sys.argv[2]), padding=True, truncation=True, return_tensors="np")
given = {one.name: batch[one.name].astype("int64") for one in session.get_inputs()}
logits = session.run(None, given)[0]
assert not {"doctor", "runner"} & set(sys.modules), "this program is to know nothing of us"
shares = numpy.exp(logits) / numpy.exp(logits).sum(-1, keepdims=True)
print(json.dumps({"shares": shares.tolist(), "ids": batch["input_ids"].tolist()}))
"""


def save_padded_left(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": "left"}))


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_program_of_ones_own_gets_the_same_answers(tmp_path: Path, side: str) -> None:
    """The model has 64 positions; the run used 8."""
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    if side == "left":
        save_padded_left(folder)
    exported(folder, tmp_path / "onnx", exporter="torchscript", max_length=8)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, str(tmp_path / "onnx"), json.dumps(TEXTS)], cwd=tmp_path,
        capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    assert [len(ids) for ids in theirs["ids"]] == [8, 8, 8]
    assert (theirs["ids"][2][-1] == 0) == (side == "right"), (
        "the short text is padded on the side that was asked for"
    )
    ours = answer_rows(open_trained(folder, 8), [Row(text, "", None) for text in TEXTS], 3)
    for shares, answer in zip(theirs["shares"], ours, strict=True):
        assert dict(zip(["bad", "good", "so-so"], shares, strict=True)) == pytest.approx(
            answer["scores"], abs=1e-5
        )


def test_a_program_without_transformers_cuts_there_too(tmp_path: Path) -> None:
    """``tokenizer.json`` alone, as Rust and JavaScript read it."""
    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    exported(folder, tmp_path / "onnx", exporter="torchscript", max_length=8)
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "onnx" / "tokenizer.json"))
    assert len(plain.encode(TEXTS[1]).ids) == 8
