"""Two processes against one with the same cores: samples a second, and the share of a step that is exchange.

``python -m benchmarks.ddp [--pairs N]``: runs in interleaved pairs, medians of the steps after the first few, ratio of each
pair. The exchange is measured by itself: the same bytes, in DDP's buckets of 25 MB, added up by gloo between two processes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from runner.plan import MachineFacts
from tests.parallel.together import finish, free_port, start, steps
from tests.runner.tiny import make_run

MODEL = (
    'model.config={ model_type = "bert", hidden_size = 256, num_hidden_layers = 4, num_attention_heads = 4, '
    "intermediate_size = 1024, max_position_embeddings = 64 }"
)
SETTINGS = [
    MODEL, "train.steps=24", "train.batch_size=32", "train.micro_batch_size=32", "train.evaluate_every=1000",
    "train.checkpoint_every=1000", "train.pad_to=max_length",
]  # fmt: skip
CORES = MachineFacts(device="cpu", cpu_cores_usable=2.0, python="3.11", torch_version="2.13.0+cpu")
WARM = 4
BUCKET_BYTES = 25 << 20


def samples_per_s(folder: Path, nproc: int) -> tuple[float, float]:
    """Return samples a second of the whole run, and the share of a step spent waiting for the other rank's forward pass."""
    run = make_run(folder, SETTINGS, f"{nproc}-{time.monotonic_ns()}", machine=CORES)
    # As the launcher sets it: a thread that spins while it waits takes a busy machine's time from the one it waits for.
    os.environ |= {"OMP_NUM_THREADS": str(2 // nproc), "OMP_WAIT_POLICY": "PASSIVE"}
    code, said = finish(start(run, nproc if nproc > 1 else 0), 300)
    if code:
        raise SystemExit(said)
    ranks = [steps(run, rank)[WARM:] for rank in range(nproc)]
    seconds = statistics.median(step["seconds"] for step in ranks[0])
    waits = statistics.median(step["split"].get("wait", 0.0) / step["seconds"] for step in ranks[0])
    return sum(part[0]["samples"] for part in ranks) / seconds, waits


def parameters(folder: Path) -> int:
    run = next(folder.glob("2-*"))
    lines = (run / "events" / "trainer-0.jsonl").read_text().splitlines()
    return int(next(json.loads(line)["data"]["parameters"] for line in lines if '"run-started"' in line))


def _exchange(rank: int, port: int, count: int, told: Any) -> None:
    import torch
    import torch.distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    buckets = torch.zeros(count).split(BUCKET_BYTES // 4)
    taken = []
    for _ in range(12):
        dist.barrier()
        begun = time.perf_counter()
        for bucket in buckets:
            dist.all_reduce(bucket)
        taken.append(time.perf_counter() - begun)
    if rank == 0:
        told.put(statistics.median(taken[2:]))
    dist.destroy_process_group()


def exchange_seconds(count: int) -> float:
    """Return the seconds in which two processes add ``count`` fp32 numbers up."""
    forks = multiprocessing.get_context("spawn")
    told = forks.Queue()
    port = free_port()
    both = [forks.Process(target=_exchange, args=(rank, port, count, told)) for rank in range(2)]
    for one in both:
        one.start()
    found = float(told.get(timeout=120))
    for one in both:
        one.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    pairs = parser.parse_args().pairs
    folder = Path(tempfile.mkdtemp(prefix="ddp-"))
    try:
        found = [(samples_per_s(folder, 1), samples_per_s(folder, 2)) for _ in range(pairs)]
        count = parameters(folder)
        ratios = [two[0] / one[0] for one, two in found]
        step_s = 32 / statistics.median(two[0] for _, two in found)
        exchange_s = exchange_seconds(count)
        print(
            json.dumps(
                {
                    "samples_per_s_1_process_2_threads": [round(one[0], 1) for one, _ in found],
                    "samples_per_s_2_processes_1_thread_each": [round(two[0], 1) for _, two in found],
                    "ratio_median": round(statistics.median(ratios), 3),
                    "ratios": [round(ratio, 3) for ratio in ratios],
                    "parameters": count,
                    "exchange_ms": round(exchange_s * 1e3, 2),
                    "exchange_share_of_step": round(exchange_s / step_s, 3),
                    "wait_share_of_step": [round(two[1], 3) for _, two in found],
                },
                indent=1,
            )
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
