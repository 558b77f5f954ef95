"""Are our numbers those of transformers' Trainer and of a plain loop?

*losses*: the very same batches, in our order, without dropout, fp32, no accumulation: loss by loss.
*accuracy*: the same rows and settings with dropout, each in its own order; held-out rows are the same.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from benchmarks.runner import MINILM, built_trainer, events, planned_run, reviews, start, write_rows

SETTINGS = """\
batch_size = 16
max_length = 128
lr = 1e-4
schedule = "linear"
warmup = 3
weight_decay = 0.01
clip_norm = 1.0
precision = "fp32"
fused = false
evaluate_every = "end"
checkpoint_every = "end"
"""


def ours_batches(trainer: Any, epochs: int) -> list[dict[str, Any]]:
    """Return the batches that our loop would train on, in its order."""
    from runner.data import MicroBatches, batches

    found = []
    for epoch in range(epochs):
        for batch in batches(
            trainer.data, "train", MicroBatches(trainer.windows(epoch)), epoch, trainer.seed, 0, False
        ):
            batch.pop("rows")
            found.append(batch)
    return found


def plain_losses(model: Any, batches: list[dict[str, Any]], train: Any) -> list[float]:
    import torch
    import transformers

    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": train.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=train.lr)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, train.warmup, len(batches))
    losses = []
    model.train()
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def arguments(folder: Path, train: Any, steps: int) -> Any:
    import transformers

    return transformers.TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=train.batch_size, learning_rate=train.lr,
        warmup_steps=train.warmup, weight_decay=train.weight_decay, max_grad_norm=train.clip_norm,
        lr_scheduler_type="linear", optim="adamw_torch", logging_steps=1, save_strategy="no", report_to=[],
        use_cpu=True, seed=42, disable_tqdm=True, per_device_eval_batch_size=64,
    )  # fmt: skip


def trainer_losses(model: Any, batches: list[dict[str, Any]], train: Any, folder: Path) -> list[float]:
    import transformers

    class SameBatches(transformers.Trainer):  # type: ignore[misc,unused-ignore]
        def get_train_dataloader(self) -> Any:
            return batches

    theirs = SameBatches(model=model, args=arguments(folder, train, len(batches)), train_dataset=[None])
    theirs.train()
    return [entry["loss"] for entry in theirs.state.log_history if "loss" in entry]


def measure_losses(options: argparse.Namespace, work: Path) -> None:
    from runner.build import build_model
    from runner.session import run_session
    from runner.signals import StopRequest

    rows = write_rows(work / "train.csv", reviews(options.data, "imdb_train"), 128)
    data = f'train = "{rows}"\neval_share = 0.2'
    run = planned_run(work, "losses", f"{MINILM}\ndropout = 0.0", data, f"epochs = 2\n{SETTINGS}")
    trainer = built_trainer(run)
    batches, train = ours_batches(trainer, 2), trainer.train

    def fresh() -> Any:
        return build_model(trainer.plan, trainer.data.task, trainer.data.tokenizer)[0]

    plain = plain_losses(fresh(), batches, train)
    theirs = trainer_losses(fresh(), batches, train, work / "hf")
    assert run_session(str(run.path), False, StopRequest()) == 0
    ours = [event.data["loss"] for event in events(run, "step")]
    assert len(ours) == len(plain) == len(theirs), (len(ours), len(plain), len(theirs))
    for name, other in (("a plain loop", plain), ("Trainer", theirs)):
        worst = max(abs(one - two) for one, two in zip(ours, other, strict=True))
        print(
            f"{len(ours)} steps, loss {ours[0]:.4f} -> {ours[-1]:.4f}; largest difference to {name}: {worst:.2e}"
        )


def measure_accuracy(options: argparse.Namespace, work: Path) -> None:
    train_rows = write_rows(work / "train.csv", reviews(options.data, "imdb_train"), 400)
    test_rows = write_rows(work / "test.csv", reviews(options.data, "imdb_test"), 200)
    data = f'train = "{train_rows}"\neval = "{test_rows}"'
    run = planned_run(work, "accuracy", MINILM, data, f"epochs = 2\n{SETTINGS}")
    begun = time.monotonic()
    assert start(run).wait() == 0
    seconds, last = time.monotonic() - begun, events(run, "evaluation")[-1].data
    begun = time.monotonic()
    theirs = trainer_accuracy(run, work)
    print(
        f"accuracy on {last['samples']} reviews of imdb_test: "
        f"ours {last['accuracy']:.4f} ({seconds:.0f} s), Trainer {theirs:.4f} ({time.monotonic() - begun:.0f} s)"
    )


def trainer_accuracy(run: Any, work: Path) -> float:
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
