"""The articles' training scripts, rewritten, train on the versions installed here; as they stand they do not.

The models and data sets that they name lie in the working folder under those names: a BERT of 32 units, a small CSV. A
machine without a GPU gets a ``.cuda()`` that leaves things where they are; nothing else of the scripts is changed but by
the rewrites. Where the articles are absent these tests are skipped.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.lint.rewrites import rewrite_source
from tests.lint.test_seeds import SEEDS, snippet

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed articles are not beside this checkout"),
]

HERE = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "accelerate")}

NO_GPU = """\
import torch
if not torch.cuda.is_available():
    torch.nn.Module.cuda = lambda self, *_: self
    torch.Tensor.cuda = lambda self, *_: self
"""

LOADER = """\
import csv
from torch.utils.data import DataLoader
from transformers import AutoTokenizer
_tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
_rows = list(csv.DictReader(open("imdb/train.csv")))
def _batch(rows):
    texts = _tokenizer([row["text"] for row in rows], padding=True, return_tensors="pt")
    return dict(texts) | {"labels": torch.tensor([int(row["label"]) for row in rows])}
train_loader = train_dataloader = DataLoader(_rows, batch_size=4, collate_fn=_batch)
"""

MODEL = """\
from transformers import AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a working folder with the model and the data set that the articles name."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    place: Path = tmp_path_factory.mktemp("seeds")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "soup", "was", "warm", "cold", "and", "we"]
    (place / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = BertTokenizerFast(str(place / "vocab.txt"))
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )  # fmt: skip
    for name in ("bert-base-uncased", "bert-base-cased"):
        BertForSequenceClassification(config).save_pretrained(place / name)
        tokenizer.save_pretrained(place / name)
    # Texts of one length: the article's Trainer gets no tokenizer, so it stacks rows and pads none.
    rows = [f"the soup was {'warm' if number % 2 else 'cold'},{number % 2}" for number in range(16)]
    (place / "imdb").mkdir()
    for part in ("train", "test"):
        (place / "imdb" / f"{part}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return place


def run(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run a script there; a name that is only deprecated counts as one that fails."""
    path = folder / "script.py"
    path.write_text(source)
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "home"),
        "OMP_NUM_THREADS": "2",
    }
    deprecated = "error:`torch.cuda.amp:FutureWarning"
    return subprocess.run(
        [sys.executable, "-W", deprecated, str(path)], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip


def complete_example() -> str:
    return LOADER + snippet("000", "import torch", "optimizer.zero_grad()")


def whole_flow() -> str:
    parts = [
        snippet("003", "from datasets import load_dataset", "tokenized_dataset ="),
        snippet("003", "from transformers import AutoConfig", "model = AutoModel"),
        '    "bert-base-cased",\n    config=config\n)',
        snippet("003", "from transformers import AdamW", "num_training_steps=10000") + "\n)",
        snippet("003", "from transformers import Trainer, TrainingArguments", "trainer.train()"),
    ]
    return "\n".join(parts) + "\n"


def own_loss() -> str:
    parts = [
        snippet("003", "from datasets import load_dataset", "tokenized_dataset ="),
        MODEL,
        "from transformers import TrainingArguments",
        snippet("003", "class CustomTrainer(Trainer):", "return (loss, outputs)"),
        snippet("003", "    offload_optimizer_device", "    offload_param_device"),
    ]
    head = "from torch import nn\nfrom transformers import Trainer\n"
    arguments = f"training_args = TrainingArguments(\n    max_steps=2,\n{parts.pop()}\n)"
    train = (
        "CustomTrainer(model=model, args=training_args, train_dataset=tokenized_dataset['train']).train()\n"
    )
    return head + "\n".join([*parts, arguments, train])


def optimisation_level() -> str:
    arguments = snippet("003", 'fp16_opt_level="O2"', "gradient_checkpointing=True")
    return f"from transformers import TrainingArguments\nprint(TrainingArguments(\n    {arguments}\n).gradient_checkpointing)\n"


def mixed_precision_loop() -> str:
    loop = snippet("003", "from torch.cuda.amp import autocast, GradScaler", "optimizer.zero_grad()")
    return LOADER + MODEL + "optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)\n" + loop + "\n"


# (script, what it ends with as it stands)
SCRIPTS = {
    "the complete example": (complete_example, "torch.cuda.amp.GradScaler(args...)` is deprecated"),
    "data, model, optimizer, Trainer": (whole_flow, "cannot import name 'AdamW'"),
    "a loss of one's own, with arguments that never existed": (own_loss, "offload_optimizer_device"),
    "the apex optimisation level": (optimisation_level, "fp16_opt_level"),
    "the mixed precision loop": (mixed_precision_loop, "torch.cuda.amp.GradScaler(args...)` is deprecated"),
}


USUAL = ("data, model, optimizer, Trainer", "the mixed precision loop")
"""Tried each time; the others take as long and are `long`."""


@pytest.mark.parametrize(
    "name", [name if name in USUAL else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_script_runs_once_it_is_rewritten_and_not_before(folder: Path, name: str) -> None:
    make, trouble = SCRIPTS[name]
    before = NO_GPU + make()
    failed = run(folder, before)
    assert failed.returncode != 0
    assert trouble in failed.stderr
    after = rewrite_source(before, lambda one: one.safe, HERE)
    done = run(folder, after.source)
    assert done.returncode == 0, done.stderr[-2000:]
    assert rewrite_source(after.source, lambda one: one.safe, HERE).made == ()


def test_fused_is_dropped_for_the_torch_of_the_article_and_kept_here() -> None:
    source = snippet("000", "from torch.optim import AdamW", "fused=True")
    old = {"torch": "1.12.0", "transformers": "4.24.0"}
    assert "fused" not in rewrite_source(source, lambda one: one.safe, old).source
    assert rewrite_source(source, lambda one: True, HERE).source == source


def test_the_accumulation_of_the_article_is_divided() -> None:
    source = snippet("000", "loss.backward()", "optimizer.zero_grad()")
    assert "(loss / 4).backward()" in rewrite_source(source, lambda one: one.safe, HERE).source
