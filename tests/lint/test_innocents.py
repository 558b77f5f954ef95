"""Kinds of public scripts and notebooks that were once blamed, or not read, without a reason."""

from __future__ import annotations

import json

import pytest

from doctor.lint import lint_source

VERSIONS = {"torch": "2.8.0", "transformers": "4.57.1", "peft": "0.17.1", "trl": "0.24.0"}


def said(source: str, path: str = "train.py") -> dict[str, str]:
    return {found.id: found.level for found in lint_source(source, VERSIONS, path)}


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


LORA = """
from transformers import AutoModelForCausalLM, TrainingArguments, Trainer
from peft import LoraConfig, PeftModel, get_peft_model
model = AutoModelForCausalLM.from_pretrained(PATH{remote})
{wrap}
args = TrainingArguments("out", gradient_checkpointing=True)
trainer = Trainer(model=model, args=args, train_dataset=rows)
trainer.train()
"""
WRAP = "model = get_peft_model(model, LoraConfig(r=8))"


@pytest.mark.parametrize(
    ("source", "level"),
    [
        (LORA.format(remote="", wrap=WRAP), "fail"),
        (LORA.format(remote=", trust_remote_code=True", wrap=WRAP), "warn"),
        (LORA.format(remote="", wrap="") + "model = PeftModel.from_pretrained(model, 'out')", None),
        (LORA.format(remote="", wrap="model = PeftModel.from_pretrained(model, 'old')"), "fail"),
        (LORA.format(remote="", wrap=WRAP).replace("transformers import", "trl import SFTTrainer as Trainer\nfrom transformers import").replace("Arguments, Trainer", "Arguments"), None),
        (LORA.format(remote="", wrap="model = FastLanguageModel.get_peft_model(model)") + "from unsloth import FastLanguageModel", None),
    ],
    ids=["plain", "code of its own", "adapter after training", "adapter goes on", "trl", "unsloth"],
)  # fmt: skip
def test_frozen_inputs_are_blamed_where_nobody_frees_them(source: str, level: str | None) -> None:
    assert said(source).get("reentrant-checkpoint-frozen-inputs") == level


@pytest.mark.parametrize(
    ("name", "token", "level"),
    [
        ("'gpt2'", "<|user|>", "fail"),
        ("'./llama-2-7b'", "<|user|>", "fail"),
        ("'/root/autodl-tmp/base'", "<|user|>", "warn"),
        ("'Qwen/Qwen2.5-7B'", "<|user|>", None),
        ("args.model", "<FIM_SUFFIX>", None),
        ("args.model", "<|user|>", "fail"),
    ],
)
def test_tokens_that_find_a_spare_row(name: str, token: str, level: str | None) -> None:
    source = f"""
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained({name})
tokenizer.add_tokens([{token!r}], special_tokens=True)
model = AutoModelForCausalLM.from_pretrained({name})
"""
    assert said(source).get("token-id-out-of-vocab") == level


def test_a_loss_that_a_subclass_divides() -> None:
    loop = """
import torch
class Trainer:
    def train(self, loader, model, optimizer):
        while self.step < self.total:
            loss = self.forward(next(loader), model)
            loss.backward()
            if self.step % self.accumulation_steps == 0:
                optimizer.step()
                model.zero_grad()
"""
    divided = (
        "class Mlm(Trainer):\n    def forward(self, b, m):\n        return m(b) / self.accumulation_steps\n"
    )
    assert "accumulation-loss-not-scaled" in said(loop)
    assert "accumulation-loss-not-scaled" not in said(loop + divided)


def test_a_server_that_answers_an_out_of_memory() -> None:
    source = """
import gc, json, torch
def stream(model, params):
    try:
        for out in model(params):
            yield json.dumps({"text": out}).encode()
    except torch.cuda.OutOfMemoryError as error:
        yield json.dumps({"text": str(error)}).encode()
def embed(model, params):
    try:
        out = model(params).tolist()
        gc.collect()
        torch.cuda.empty_cache()
    except torch.cuda.OutOfMemoryError as error:
        out = str(error)
    return out
"""
    assert not {"oom-retry-inside-except", "oom-cleanup-skipped"} & set(said(source))


def test_paddle_clears_by_another_name() -> None:
    source = "for batch in loader:\n    loss = model(batch)\n    loss.backward()\n    optimizer.step()\n    optimizer.{}()\n"
    assert "zero-grad-missing" not in said(source.format("clear_grad"))
    assert "zero-grad-missing" in said(source.format("anneal"))


AWFUL = "from transformers import AdamW"


@pytest.mark.parametrize(
    "cell",
    [
        "!pip install torch \\\n    transformers \\\n    peft",
        "pip install peft",
        "%pip install -U \\\n  trl",
    ],
)
def test_a_command_over_several_lines_hides_nothing(cell: str) -> None:
    found = said(notebook(cell, AWFUL), "a.ipynb")
    assert "syntax-error" not in found
    assert found["removed-import"] == "fail"


def test_a_cell_that_is_no_python_is_told_and_the_others_are_read() -> None:
    found = said(notebook("gcloud compute ssh box --zone a", AWFUL, "conda = install"), "a.ipynb")
    assert (found["syntax-error"], found["removed-import"]) == ("unknown", "fail")
