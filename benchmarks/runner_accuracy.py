"""Is what comes out as good as transformers' Trainer's? The same rows, settings and first weights; each in its own order.

imdb: the quickstart's MiniLM on 1,000 reviews of at most 256 tokens. waimai: a small BERT from a configuration, with a
vocabulary made from the training reviews. With dropout; both are asked about the same held-out rows.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from benchmarks.runner import MINILM, built_trainer, events, planned_run, reviews, start, write_rows
from benchmarks.runner_losses import arguments
from runner.rundir import RunDir

COMMON = """\
schedule = "linear"
warmup = 10
weight_decay = 0.01
clip_norm = 1.0
precision = "fp32"
fused = false
evaluate_every = "end"
checkpoint_every = "end"
"""
SMALL = """\
config = { model_type = "bert", hidden_size = 128, num_hidden_layers = 2, num_attention_heads = 4, \
intermediate_size = 512, max_position_embeddings = 256 }
vocabulary_size = 6000
"""
TASKS = {
    "imdb": (MINILM, "epochs = 1\nbatch_size = 16\nmax_length = 256\nlr = 1e-4\n", 1_000, 300),
    "waimai": (SMALL, "epochs = 2\nbatch_size = 32\nmax_length = 128\nlr = 1e-3\n", 4_000, 1_000),
}


def measure_accuracy(options: argparse.Namespace, work: Path) -> None:
    for name in options.variants.split(",") if options.variants else TASKS:
        _one(name, options.data, work)


def _one(name: str, data: Path, work: Path) -> None:
    model, settings, trained, asked = TASKS[name]
    train_rows = write_rows(work / f"{name}-train.csv", reviews(data, f"{name}_train"), trained)
    test_rows = write_rows(work / f"{name}-test.csv", reviews(data, f"{name}_test"), asked)
    run = planned_run(work, name, model, f'train = "{train_rows}"\neval = "{test_rows}"', settings + COMMON)
    assert start(run).wait() == 0
    last = events(run, "evaluation")[-1].data
    theirs = trainer_accuracy(run, work)
    error = math.sqrt(theirs * (1 - theirs) / last["samples"])
    print(
        f"{name}: {trained} reviews, {last['samples']} of {name}_test: ours {last['accuracy']:.4f}, Trainer {theirs:.4f}; "
        f"one standard error {error:.3f}",
        flush=True,
    )


def trainer_accuracy(run: RunDir, work: Path) -> float:
    """Train the same model on the same rows with Trainer's own loop, order and collator."""
    import transformers

    from runner.build import build_model

    built = built_trainer(run)
    model, _ = build_model(built.plan, built.data.task, built.data.tokenizer)

    def samples(store: Any) -> list[dict[str, Any]]:
        return [
            {"input_ids": item["ids"].tolist(), "labels": int(item["label"])}
            for item in map(store.__getitem__, range(len(store)))
        ]

    theirs = transformers.Trainer(
        model=model, args=arguments(work / "hf", built.train, built.total), train_dataset=samples(built.data.train),
        eval_dataset=samples(built.data.eval), data_collator=transformers.DataCollatorWithPadding(built.data.tokenizer),
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())},
    )  # fmt: skip
    theirs.train()
    return float(theirs.evaluate()["eval_accuracy"])
