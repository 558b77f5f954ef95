"""Are our losses those of transformers' Trainer and of a plain loop? The very same batches, in our order, without dropout,
fp32, no accumulation: loss by loss.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.runner import MINILM, built_trainer, events, planned_run, reviews, write_rows

SETTINGS = """\
batch_size = 16
max_length = 256
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

    rows = write_rows(work / "train.csv", reviews(options.data, "imdb_train"), 1_000)
    data = f'train = "{rows}"\neval_share = 0.02'
    run = planned_run(work, "losses", f"{MINILM}\ndropout = 0.0", data, f"epochs = 1\n{SETTINGS}")
    trainer = built_trainer(run)
    batches, train = ours_batches(trainer, 1), trainer.train

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
