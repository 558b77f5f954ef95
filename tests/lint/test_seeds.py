"""The articles the project grew from: each mistake in their code is found, and what is right in it stays silent.

The articles are not part of the product; where they are absent these tests are skipped. Snippets are cut out of them
by their first and last words.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from doctor.lint import lint_source

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed articles are not beside this checkout")

ARTICLE_0 = {"torch": "1.12.0", "transformers": "4.24.0", "accelerate": "0.15.0"}
ARTICLE_3 = {"torch": "2.1.0", "transformers": "4.36.0", "accelerate": "0.25.0", "peft": "0.7.0"}
TODAY = {"torch": "2.13.0", "transformers": "5.24.0", "accelerate": "1.15.0"}


def snippet(article: str, first: str, last: str) -> str:
    """Return the code from the line that holds ``first`` to the next that holds ``last``, without its indentation."""
    text = (SEEDS / f"article-{article}.txt").read_text("utf-8").replace("python复制", "")
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if first in line)
    end = next(number for number in range(begin, len(lines)) if last in lines[number])
    body = lines[begin : end + 1]
    return textwrap.dedent("\n".join(line for line in body if line.strip()))


def found(source: str, versions: dict[str, str]) -> dict[str, set[str]]:
    said: dict[str, set[str]] = {}
    for item in lint_source(source, versions):
        said.setdefault(item.level, set()).add(item.id)
    assert "syntax-error" not in said.get("unknown", set()), source
    return said


def loud(source: str, versions: dict[str, str]) -> set[str]:
    said = found(source, versions)
    return said.get("fail", set()) | said.get("warn", set())


def test_the_fused_adamw_that_its_torch_does_not_have() -> None:
    source = snippet("000", "from torch.optim import AdamW", "fused=True")
    assert loud(source, ARTICLE_0) == {"argument-too-new"}
    assert loud(source, TODAY) == set()


def test_the_accumulation_that_divides_nothing_and_drops_the_last_window() -> None:
    source = snippet("000", "loss.backward()", "optimizer.zero_grad()")
    assert "accumulation-loss-not-scaled" in loud(source, TODAY)
    assert "last-window-dropped" in found(source, TODAY).get("note", set())


def test_the_complete_example_lacks_seed_and_clipping_and_is_otherwise_right() -> None:
    source = snippet("000", "import torch", "optimizer.zero_grad()")
    assert loud(source, ARTICLE_0) == set()
    assert {"seeds-missing", "clipping-missing"} <= found(source, ARTICLE_0)["note"]


def test_the_removed_adamw() -> None:
    source = snippet("003", "from transformers import AdamW", "num_training_steps=10000")
    source += "\n)"
    assert loud(source, ARTICLE_3) == set()
    assert loud(source, TODAY) == {"removed-import"}


def test_the_training_arguments_of_the_loop() -> None:
    source = "from transformers import Trainer, TrainingArguments\n" + snippet(
        "003", "training_args = TrainingArguments(", 'evaluation_strategy="steps"'
    )
    assert loud(source + "\n)", ARTICLE_3) == set()
    assert loud(source + "\n)", TODAY) == {"removed-argument"}


def test_the_apex_optimisation_level() -> None:
    text = snippet("003", 'fp16_opt_level="O2"', "gradient_checkpointing=True")
    source = f"from transformers import TrainingArguments\nTrainingArguments(\n{text}\n)"
    assert loud(source, TODAY) == {"removed-argument"}


@pytest.mark.parametrize("name", ["offload_optimizer_device", "offload_param_device"])
def test_arguments_that_never_existed(name: str) -> None:
    text = (SEEDS / "article-003.txt").read_text("utf-8")
    line = re.search(rf'{name}="cpu"', text)
    assert line
    source = f"from transformers import TrainingArguments\nTrainingArguments({line[0]})"
    assert loud(source, ARTICLE_3) == {"unknown-argument"}


def test_the_export_without_and_with_dynamic_axes() -> None:
    fixed = "import torch\nmodel.eval()\ntorch.onnx.export(model, inputs, 'model.onnx')\nmodel(input_ids)"
    assert "onnx-fixed-axes" in loud(fixed, {"torch": "1.12.1"})
    dynamic = fixed.replace("'model.onnx'", "'model.onnx', dynamic_axes={'input_ids': [0, 1]}")
    assert loud(dynamic, {"torch": "1.12.1"}) == set()
    assert loud(dynamic, TODAY) == {"onnx-dynamo-default-dynamic-axes"}


def test_the_loop_that_names_a_config_it_never_made() -> None:
    source = snippet("002", "import wandb", "wandb.log(")
    assert "Traceback" not in str(lint_source(source, TODAY))


def test_the_loader_that_pads_everything_and_grows_without_bound() -> None:
    line = "encoded = tokenizer(batch, truncation=True, padding='max_length', max_length=512)"
    assert line in (SEEDS / "article-002.txt").read_text("utf-8")
    assert "padding-to-max-length" in found(line, TODAY)["note"]


def test_the_custom_loss_and_the_clipping_are_right() -> None:
    source = snippet("003", "class CustomTrainer(Trainer):", "return (loss, outputs)")
    assert (
        loud("from transformers import Trainer\nfrom torch import nn\nimport torch\n" + source, ARTICLE_3)
        == set()
    )


def test_the_compute_loss_that_newer_trainers_call_with_one_more_argument() -> None:
    source = snippet("003", "class CustomTrainer(Trainer):", "return (loss, outputs)")
    whole = "from transformers import Trainer\nfrom torch import nn\nimport torch\n" + source
    assert loud(whole, TODAY) == {"override-signature-changed"}


def test_the_mixed_precision_loop_without_clipping_is_noted() -> None:
    source = snippet("003", "from torch.cuda.amp import autocast, GradScaler", "optimizer.zero_grad()")
    said = found(source, TODAY)
    assert said.get("fail", set()) | said.get("warn", set()) == set()
    assert {"clipping-missing", "deprecated-api"} <= said["note"]


def test_the_trainer_that_gets_texts_of_every_length_and_nothing_that_pads_them() -> None:
    tokenizing = snippet("003", "from datasets import load_dataset", "tokenized_dataset = dataset.map")
    training = snippet("003", "trainer = Trainer(", "trainer.train()")
    source = f"{tokenizing}\nfrom transformers import Trainer, TrainingArguments\n{training}"
    assert "texts-not-padded" in loud(source, ARTICLE_3)
    assert "texts-not-padded" not in loud(
        source.replace("model=model,", "model=model, tokenizer=tokenizer,"), ARTICLE_3
    )
