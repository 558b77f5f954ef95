"""Tokenising a large file: ``python -m benchmarks.tokenise --data DIR [--megabytes 200]``.

Ours (both passes: which rows count, then their ids), ours again (the cache), ``datasets.map`` with as many processes, and
the loader of many tutorials, which keeps every padded batch in one list. Each in a process of its own; peaks are of the
whole process tree, sampled, without pages of mapped files. ``--sizes 20 200`` shows whether ours stays flat.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.runner import MINILM, planned_run
from benchmarks.runner_memory import write_file

WAYS = ("ours", "ours-again", "datasets-map", "growing")


def tree_anonymous_kib(root: int) -> int:
    """Return the private memory of a process and of all below it; a page that several share by fork counts once
    (Pss_Anon of /proc/PID/smaps_rollup)."""
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        try:
            rolled = Path(f"/proc/{pid}/smaps_rollup").read_text()
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            waiting += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
        total += next((int(line.split()[1]) for line in rolled.splitlines() if line.startswith("Pss_Anon")), 0)  # fmt: skip
    return total


def watched(argv: list[str], environ: dict[str, str]) -> tuple[dict[str, Any] | None, int, float]:
    """Run a way; return what it printed (None: it failed), its peak in KiB, its CPU seconds."""
    child = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak = 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        peak = max(peak, tree_anonymous_kib(child.pid))
        time.sleep(0.1)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.stdout is not None, "it is a pipe"
    lines = child.stdout.read().splitlines()
    answer = json.loads(lines[-1]) if child.returncode == 0 and lines else None
    return answer, peak, usage.ru_utime + usage.ru_stime


def measure(way: str, file: Path, work: Path, workers: int) -> None:
    folder, megabytes = work / f"{way}-{file.stem}", file.stat().st_size / 1e6
    if way.startswith("ours"):
        train = f"epochs = 1\nmax_length = 512\n# {way}"
        run = planned_run(work, folder.name, MINILM, f'train = "{file}"\neval_share = 0.01', train)
        folder = run.path
    else:
        folder.mkdir()
    environ = os.environ | {"DOCTOR_CACHE": str(work / "cache"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
                            "TOKENIZERS_PARALLELISM": "true" if way == "growing" else "false"}  # fmt: skip
    name = "ours" if way.startswith("ours") else way
    argv = [sys.executable, "-m", "benchmarks.tokenise_child", name, str(file), str(folder), str(workers)]
    answer, peak, cpu_s = watched(argv, environ)
    shutil.rmtree(folder, ignore_errors=True)
    if answer is None:
        print(f"{way:14} failed; peak {peak >> 10} MB", flush=True)
        return
    tokenising = answer.get("tokenising_s")
    alone = f", tokenising alone {megabytes / tokenising:.2f} MB/s" if tokenising else ""
    print(f"{way:14} {megabytes / answer['seconds']:6.2f} MB/s, {cpu_s:7.1f} CPU s, peak {peak >> 10:6} MB, "
          f"{answer['rows']} rows, {answer['tokens']} tokens{alone}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with imdb_train.csv.gz")
    parser.add_argument("--sizes", "--megabytes", type=int, nargs="+", default=[200])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="doctor-tokenise-"))
    try:
        for megabytes in options.sizes:
            file = work / f"rows-{megabytes}.csv"
            rows = write_file(file, options.data, megabytes)
            print(f"{megabytes} MB, {rows} rows, {options.workers} workers, load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
            for way in options.ways:
                measure(way, file, work, options.workers)
            file.unlink()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
