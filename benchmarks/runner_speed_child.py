"""One variant of :mod:`benchmarks.runner_speed` in a process of its own, one update each time it is told to go.

On stdin a line a turn; on stdout a JSON line a turn: wall and CPU seconds of the update, what it counted, its loss. Windows
come in the order of their padded length, so that the k-th windows of two variants are of like size.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.runner import built_trainer
from runner.rundir import RunDir

Turn = Callable[[], dict[str, float]]
"""Makes one update and returns what it counted."""


def cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def say(record: dict[str, Any]) -> None:
    sys.__stdout__.write(json.dumps(record) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def wait_for_turn() -> None:
    if not sys.stdin.readline():
        sys.exit(0)


class Timed:
    """What passes between two calls."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def record(self, counted: dict[str, float]) -> dict[str, float]:
        return {"wall_s": time.perf_counter() - self.wall, "cpu_s": cpu_seconds() - self.cpu, "peak_bytes": peak_bytes(), **counted}  # fmt: skip


def take_turns(turns: list[Turn]) -> None:
    say({"windows": len(turns), "peak_bytes": peak_bytes()})
    for turn in turns:
        wait_for_turn()
        timed = Timed()
        say(timed.record(turn()))


def counts_of(batches: list[dict[str, Any]]) -> dict[str, float]:
    return {
        "samples": sum(len(batch["labels"]) for batch in batches),
        "tokens": sum(int(batch["attention_mask"].sum()) for batch in batches),
        "padded": sum(batch["attention_mask"].numel() for batch in batches),
        "largest": max(batch["attention_mask"].numel() for batch in batches),
    }


def sorted_windows(bench: Any) -> list[list[list[int]]]:
    lengths = bench.data.train.lengths
    return sorted(bench.windows(0), key=lambda window: sum(max(int(lengths[i]) for i in part) * len(part) for part in window))  # fmt: skip


def ours(run: RunDir) -> None:
    """The runner's own windows."""
    from runner.events import read_events
    from runner.proof import Proof

    bench = built_trainer(run)
    bench.engine.model.train()
    bench.proof, bench.memory = Proof(bench.plan, run, bench.engine.bare_model), None
    windows: Any = sorted_windows(bench)
    stream = bench._stream(windows, 0)
    kept: list[dict[str, Any]] = []

    def stream_kept() -> Iterator[Any]:
        for batch in stream:
            kept.append(batch)
            yield batch

    source = stream_kept()

    def turn(window: Any) -> dict[str, float]:
        kept.clear()
        bench._one_window(window, source, 0)
        *_, last = (event for event, _ in read_events(run.events / "trainer-0.jsonl") if event.kind == "step")
        return {**counts_of(kept), "loss": last.data["loss"]}

    take_turns([lambda window=window: turn(window) for window in windows])  # type: ignore[misc]


def lean(run: RunDir) -> None:
    """A plain loop over the very batches of *ours*, with the same optimizer, clipping and schedule."""
    import torch

    from runner.schedule import lr_at

    bench = built_trainer(run)
    model, optimizer = bench.engine.model, bench.optimizer
    model.train()
    windows: Any = sorted_windows(bench)
    stream = bench._stream(windows, 0)
    done = iter(range(len(windows)))

    def turn(window: Any) -> dict[str, float]:
        batches = [next(stream) for _ in window]
        lr = lr_at(next(done), bench.total, bench.train)
        for group in optimizer.param_groups:
            group["lr"] = lr
        samples = sum(len(batch["labels"]) for batch in batches)
        total = 0.0
        for batch in batches:
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="sum") / samples
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return {**counts_of(batches), "loss": total}

    take_turns([lambda window=window: turn(window) for window in windows])  # type: ignore[misc]


def trainer(run: RunDir, padding: str, batch: int, accumulation: int) -> None:
    """transformers' Trainer on the same rows: ``max_length``, or ``group`` (group_by_length, padded to the longest)."""
    import torch
    import transformers

    bench = built_trainer(run)  # for the rows, the model and the length; its loop is not used
    store, width = bench.data.train, bench.data.facts.max_length
    rows = [{"input_ids": store.ids[a:b].tolist(), "labels": int(label)} for a, b, label in zip(store.offsets[:-1], store.offsets[1:], store.labels, strict=True)]  # fmt: skip
    pad_id = bench.data.tokenizer.pad_token_id

    def collate(samples: list[dict[str, Any]]) -> dict[str, Any]:
        longest = width if padding == "max_length" else max(len(one["input_ids"]) for one in samples)
        ids = torch.full((len(samples), longest), pad_id)
        mask = torch.zeros((len(samples), longest), dtype=torch.int64)
        for index, one in enumerate(samples):
            ids[index, : len(one["input_ids"])] = torch.tensor(one["input_ids"])
            mask[index, : len(one["input_ids"])] = 1
        found = {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([one["labels"] for one in samples])}  # fmt: skip
        counted.append(found)
        return found

    counted: list[dict[str, Any]] = []

    class Turns(transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            say({"windows": state.max_steps, "peak_bytes": peak_bytes()})

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            wait_for_turn()
            self.timed = Timed()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            mine = [counted.pop(0) for _ in range(min(accumulation, len(counted)))]
            say(self.timed.record({**counts_of(mine), "loss": 0.0}))

    arguments = transformers.TrainingArguments(
        output_dir=str(run.path / "hft"), num_train_epochs=1, per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation, learning_rate=bench.train.lr, report_to=[], save_strategy="no",
        disable_tqdm=True, use_cpu=True, seed=42, dataloader_num_workers=0, logging_steps=1, optim="adamw_torch_fused",
        max_grad_norm=1.0, weight_decay=bench.train.weight_decay, remove_unused_columns=False,
    )  # fmt: skip
    order = _grouped_order(rows, batch * accumulation) if padding == "group" else None

    class Ordered(transformers.Trainer):  # type: ignore[misc,unused-ignore]
        def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
            return order if order is not None else super()._get_train_sampler(*args, **kwargs)

    kit = Ordered(model=bench.engine.bare_model, args=arguments, train_dataset=rows, data_collator=collate, callbacks=[Turns()])  # fmt: skip
    kit.train()
    losses = [entry["loss"] for entry in kit.state.log_history if "loss" in entry]
    say({"losses": losses})


def _grouped_order(rows: list[dict[str, Any]], batch: int) -> list[int]:
    """Return the batches of transformers' own group_by_length, in the order of their longest sample."""
    import torch
    from transformers.trainer_pt_utils import get_length_grouped_indices

    lengths = [len(row["input_ids"]) for row in rows]
    generator = torch.Generator().manual_seed(42)
    indices = get_length_grouped_indices(lengths, batch, generator=generator)
    lots = [indices[start : start + batch] for start in range(0, len(indices), batch)]
    whole = sorted((lot for lot in lots if len(lot) == batch), key=lambda lot: max(lengths[i] for i in lot))
    return [index for lot in [*whole, *(lot for lot in lots if len(lot) < batch)] for index in lot]


VARIANTS: dict[str, Callable[[RunDir], None]] = {
    "trainer-max": lambda run: trainer(run, "max_length", 16, 1),
    "trainer-group": lambda run: trainer(run, "group", 16, 1),
    "trainer-group-small": lambda run: trainer(run, "group", 8, 2),
    "ours": ours,
    "ours-bf16": ours,
    "lean": lean,
}


if __name__ == "__main__":
    real, sys.stdout = sys.stdout, sys.stderr
    VARIANTS[sys.argv[1]](RunDir(Path(sys.argv[2])))
