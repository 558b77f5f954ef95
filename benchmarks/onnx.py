"""Exported files against torch: disagreements, accuracy and latency of fp32, fp16 and int8, on reviews that nobody trained on.

``python -m benchmarks.onnx DATA WORK`` trains a pretrained six-layer encoder (the quickstart's) on English reviews and a
small model from scratch on Chinese ones (DATA: imdb_train.csv.gz, imdb_test.csv.gz, waimai_train.csv.gz, waimai_test.csv.gz),
exports both with all variants, and prints the table of benchmarks/README.md. Runs that are finished in WORK are used again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED = 7


class Case(NamedTuple):
    """One model on one set of reviews."""

    data: str
    profile: str
    train_rows: int
    test_rows: int
    settings: tuple[str, ...]


_LABELLED = ("data.text=text", "data.label=label", "train.max_length=128")
# The quickstart's corpus is a package of folders; here it is a file of rows.
_QUICKSTART = ('data.package=""', 'data.folder=""', 'data.format="auto"', 'data.sha256=""', *_LABELLED)
CASES = (
    Case("imdb", "quickstart", 1000, 500, _QUICKSTART),
    Case("waimai", "chinese-sentiment", 3000, 1000, _LABELLED),
)


def sample(source: Path, target: Path, rows: int) -> None:
    """Write ``rows`` rows of a compressed CSV file, drawn with one seed."""
    with gzip.open(source, "rt", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    random.Random(SEED).shuffle(found)
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(found[0]))
        writer.writeheader()
        writer.writerows(found[:rows])


def doctor(*arguments: str) -> str:
    """Run a verb of doctor and return its stdout; its talk goes to stderr."""
    done = subprocess.run([sys.executable, "-m", "doctor", *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"doctor {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def trained(case: Case, data: Path, work: Path) -> Path:
    """Return the finished run of a case, trained now where there is none."""
    run = work / case.data
    if (run / "final").is_dir():
        return run
    files = {}
    for part, rows in (("train", case.train_rows), ("test", case.test_rows)):
        files[part] = work / f"{case.data}_{part}.csv"
        sample(data / f"{case.data}_{part}.csv.gz", files[part], rows)
    settings = (f"data.train={files['train']}", f"data.eval={files['test']}", *case.settings)
    options = [word for setting in settings for word in ("--set", setting)]
    doctor("run", case.profile, "--run-dir", str(run), "--python", sys.executable, *options)
    return run


def table(case: Case, exported: dict[str, Any]) -> Iterator[str]:
    """Yield the rows of one export: torch first, then each file."""
    calls = {(one["engine"], one["batch_size"]): one for one in exported["latencies"]}

    def row(name: str, size: str, metrics: dict[str, float], apart: str, engine: str) -> str:
        times = [
            f"{calls[engine, count]['p50_ms']:.1f} / {calls[engine, count]['p95_ms']:.1f}"
            for count in (1, 32)
        ]
        return f"| {case.data} | {name} | {size} | {metrics['accuracy']:.4f} | {apart} | {times[0]} | {times[1]} |"

    yield row("torch fp32", "", exported["torch_metrics"], "", "torch")
    for one in exported["variants"]:
        agreement = one["agreement"]
        apart = f"{agreement['disagreements']} of {agreement['answers']}"
        yield row(f"ONNX {one['name']}", f"{one['bytes'] / 1e6:.1f}", one["metrics"], apart, one["file"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", choices=[case.data for case in CASES])
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    print(
        "| reviews | model | MB | accuracy | answers that differ from torch | batch 1, ms p50 / p95 | batch 32 |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        if asked.only in (None, case.data):
            run = trained(case, asked.data.absolute(), asked.work.absolute())
            exported = json.loads(doctor("export", str(run), "--onnx", "--fp16", "--int8", "--json"))
            print("\n".join(table(case, exported)), flush=True)


if __name__ == "__main__":
    main()
