"""What is written beside a model for whoever gets it: true, readable by the hub, and loadable as it says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from runner.data import DataFacts, PartFacts
from runner.deploy.card import model_card
from runner.deploy.onnx_card import onnx_card
from runner.deploy.records import Agreement, Exported, ShapeParity, Variant
from runner.plan import Plan, make_plan
from runner.profile import load_profile
from runner.text import t
from runner.train_state import TrainState
from tests.runner.tiny import ONE_CORE, PROFILE

PART = PartFacts(samples=160, tokens=2000, truncated=3, unknown_tokens=0, longest=32, class_counts=[80, 80], sha256={"train.ids.bin": "ab" * 32})  # fmt: skip
FACTS = DataFacts(plan_digest="d", classes=["good\nnews", "bad: no"], has_types=False, max_length=32, train=PART, eval=replace(PART, samples=40, sha256={"eval.ids.bin": "cd" * 32}))  # fmt: skip
STATE = TrainState(plan_digest="d", torch_version="2", threads=1, device_name="cpu", micro_batch_size=4, eval_batch_size=4, gradient_checkpointing=False, updates_done=40, samples_done=320)  # fmt: skip


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "rows.csv").write_text("text,label\na,0\n")
    (tmp_path / "tiny.toml").write_text(PROFILE)
    return make_plan(load_profile(tmp_path / "tiny.toml"), ONE_CORE, "2026-11-30T00:00:00Z")


def front_matter(card: str) -> dict[str, object]:
    block = card.split("---\n")[1]
    found = pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(block)
    assert isinstance(found, dict)
    return found


def test_the_card_has_metrics_data_seeds_and_what_is_not_known(plan: Plan) -> None:
    card = model_card(plan, FACTS, STATE, {"accuracy": 0.91, "loss": 0.3})
    for words in (
        "| accuracy | 0.9100 |",
        "160 rows (2000 tokens) trained on, 40 held out; 6 were cut",
        f"trained on `{'ab' * 32}`, held out `{'cd' * 32}`",
        "Seed 7 (",
        "All distributions, hashed: `",
        "Intended use and limitations: not stated",
        "Licence: not stated",
        "Labels: good news, bad: no",
        f"Plan digest: `{plan.digest}`",
    ):
        assert words in card
    assert front_matter(card) == {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "tags": ["rundoctor"],
    }


def test_names_from_elsewhere_do_not_break_the_front_matter(plan: Plan) -> None:
    model = replace(plan.profile.model, hub='org/a: "b" # c', config={})
    data = replace(plan.profile.data, hub="org/rows: [1]")
    changed = replace(plan, profile=replace(plan.profile, model=model, data=data))
    found = front_matter(model_card(changed, FACTS, STATE, {}))
    assert (found["base_model"], found["datasets"]) == ('org/a: "b" # c', ["org/rows: [1]"])


def test_a_checkpoint_is_not_called_the_end_and_no_metric_is_made_up(plan: Plan) -> None:
    card = model_card(plan, FACTS, STATE, {}, is_finished=False)
    assert "after 40 updates of a run that was not finished" in card
    assert "never evaluated" in card and "| metric |" not in card


EXPORTED = Exported(
    kind="classification", exporter="dynamo", opset=18, why=t("asked for"), inputs=("input_ids",), output="logits",
    max_length=64, labels=("bad", "good", "so-so"), torch_version="2.13.0", onnxruntime_version="1.32.0", source="runs/m", source_key="0" * 16,
    source_sha256="ef" * 32, torch_metrics={"accuracy": 0.9},
    variants=(
        Variant(name="fp32", file="model.onnx", bytes=4, provider="CPUExecutionProvider", metrics={"accuracy": 0.9},
                shapes=(ShapeParity(shape=(1, 7), max_difference=2e-6, is_equal=True),),
                agreement=Agreement(samples=40, answers=40, disagreements=0, max_difference=1e-6)),
        Variant(name="fp16", file="", bytes=0, provider="", trouble=t("no")),
        Variant(name="int8", file="model.int8.onnx", bytes=1, provider="CPUExecutionProvider", metrics={"accuracy": 0.85},
                agreement=Agreement(samples=40, answers=40, disagreements=2, max_difference=0.1)),
    ),
)  # fmt: skip


def test_the_onnx_folder_says_how_each_file_answers() -> None:
    card = onnx_card(EXPORTED)
    assert "| torch |  | 0.9000 |" in card
    assert "| model.onnx | 0 of 40 | 0.9000 |" in card
    assert "| model.int8.onnx | 2 of 40 | 0.8500 |" in card
    assert "fp16" not in card
    assert "(largest difference 2.0e-06)" in card


@pytest.mark.train
def test_what_the_onnx_card_says_to_type_works(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from runner.deploy.exporting import Request, export
    from tests.deploy.tiny import save_model

    folder = save_model(tmp_path / "model", "AutoModelForSequenceClassification")
    export(
        Request(folder=str(folder), out=str(tmp_path / "onnx"), exporter="torchscript", with_latency=False),
        lambda text: None,
    )
    code = re.findall(r"```python\n(.*?)```", (tmp_path / "onnx" / "README.md").read_text(), re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-c", code + "\nprint(list(logits.shape))"], cwd=tmp_path / "onnx", capture_output=True, text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [1, 3], done.stderr


RUNNING = """\
import contextlib, io, json, os, re, sys
import numpy
for folder in sys.argv[1:]:
    os.chdir(folder)
    code = re.findall(r"```python\\n(.*?)```", open("README.md").read(), re.DOTALL)[0]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    print(json.dumps(eval(said.getvalue(), {"np": numpy}), default=float))
"""
TASKS = {
    "classification": ("AutoModelForSequenceClassification", {}),
    "multi-label": ("AutoModelForSequenceClassification", {"problem_type": "multi_label_classification"}),
    "token-classification": ("AutoModelForTokenClassification", {}),
    "masked-lm": ("AutoModelForMaskedLM", {}),
    "causal-lm": ("AutoModelForCausalLM", {}),
}


@pytest.mark.train
def test_what_the_card_says_to_type_works_for_every_task_and_answers_as_we_do(
    plan: Plan, tmp_path: Path
) -> None:
    """All in one fresh process, as they stand; an adapter too, whose folder does not know its classes."""
    from runner.deploy.answers import answer_rows
    from runner.deploy.opening import open_trained
    from runner.rows import Row
    from runner.sections import LoraSection
    from runner.tokenizer import save_tokenizer
    from tests.deploy.tiny import LABELS, save_model

    facts = replace(FACTS, classes=list(LABELS.values()), max_length=16)
    folders: dict[str, Path] = {}
    for task, (auto, changes) in TASKS.items():
        folders[task] = save_model(tmp_path / task, auto, "gpt2" if task == "causal-lm" else "bert", initializer_range=0.5, **changes)  # fmt: skip
        model = replace(plan.profile.model, task=task)
        card = model_card(replace(plan, profile=replace(plan.profile, model=model)), facts, STATE, {})
        (folders[task] / "README.md").write_text(card)
    if importlib.util.find_spec("peft"):
        from tests.deploy.test_adapter_folder import save_adapter

        auto = "AutoModelForSequenceClassification"
        base = save_model(tmp_path / "base", auto, initializer_range=0.5)
        folders["adapter"] = tmp_path / "adapter"
        save_adapter(folders["adapter"], base, "bert", auto, "SEQ_CLS", {}, classes=3)
        model = replace(plan.profile.model, lora=LoraSection(merge=False))
        card = model_card(replace(plan, profile=replace(plan.profile, model=model)), facts, STATE, {})
        (folders["adapter"] / "README.md").write_text(card)
        save_tokenizer(open_trained(base).tokenizer, 16, folders["adapter"])
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNING, *map(str, folders.values())], capture_output=True, text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = dict(zip(folders, map(json.loads, done.stdout.splitlines()), strict=True))

    def ours(task: str, text: str = "...") -> dict[str, float]:
        (answer,) = answer_rows(open_trained(folders[task], 16), [Row(text, "", None)], 3)
        scores: dict[str, float] = answer["scores"] if "scores" in answer else answer["gaps"][0]
        return scores

    for task in ("classification", "multi-label"):
        assert {one["label"]: one["score"] for one in theirs[task]} == pytest.approx(ours(task), abs=1e-4)
    gaps = {one["token_str"]: one["score"] for one in theirs["masked-lm"][:3]}
    assert gaps == pytest.approx(ours("masked-lm", "... [MASK]"), abs=1e-4)
    assert {one["entity"] for one in theirs["token-classification"]} <= set(LABELS.values())
    assert theirs["causal-lm"][0]["generated_text"].startswith("...")
    if "adapter" in theirs:
        assert {one["label"] for one in theirs["adapter"]} == set(LABELS.values())
        assert [one["score"] for one in theirs["adapter"]] == pytest.approx(list(ours("adapter").values()), abs=1e-4)  # fmt: skip
