"""Two processes against one with the same cores: samples a second, CPU-seconds a step, and the share of both that is exchange.

``python -m benchmarks.ddp [--pairs N]``: runs in interleaved pairs, medians of the steps after the first few, ratio of each
pair. CPU-seconds, which a busy machine changes little, are those of a long run less those of a short one: what starting costs
falls out. The exchange is measured by itself: the same bytes, in DDP's buckets of 25 MB, added up by gloo between two processes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
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
    MODEL, "train.batch_size=32", "train.micro_batch_size=32", "train.evaluate_every=1000",
    "train.checkpoint_every=1000", "train.pad_to=max_length",
]  # fmt: skip
CORES = MachineFacts(device="cpu", cpu_cores_usable=2.0, python="3.11", torch_version="2.13.0+cpu")
SHORT, LONG = 4, 44
"""Steps of the two runs whose CPU-seconds are taken from each other."""
WARM = 4
BUCKET_BYTES = 25 << 20


@dataclass(frozen=True)
class Measured:
    """One pair of runs, a short and a long one, with as many processes."""

    samples_per_s: float
    wait_share: float
    """Of a step, spent waiting for the other rank's forward pass."""
    cpu_s_a_step: float
    """Of all processes."""


def measured(folder: Path, nproc: int) -> Measured:
    """Run both with ``nproc`` processes on two cores."""
    cpu_s = {}
    for count in (SHORT, LONG):
        settings = [*SETTINGS, f"train.steps={count}"]
        run = make_run(folder, settings, f"{nproc}-{time.monotonic_ns()}", machine=CORES)
        # As the launcher sets it: a thread that spins while it waits takes a busy machine's time from the one it waits for.
        os.environ |= {"OMP_NUM_THREADS": str(2 // nproc), "OMP_WAIT_POLICY": "PASSIVE"}
        before = children_cpu_s()
        code, said = finish(start(run, nproc if nproc > 1 else 0), 500)
        if code:
            raise SystemExit(said)
        cpu_s[count] = children_cpu_s() - before
    ranks = [steps(run, rank)[WARM:] for rank in range(nproc)]
    seconds = statistics.median(step["seconds"] for step in ranks[0])
    waits = statistics.median(step["split"].get("wait", 0.0) / step["seconds"] for step in ranks[0])
    samples = sum(part[0]["samples"] for part in ranks)
    return Measured(samples / seconds, waits, (cpu_s[LONG] - cpu_s[SHORT]) / (LONG - SHORT))


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    taken, cpu_s = [], 0.0
    for turn in range(12):
        dist.barrier()
        begun, cpu = time.perf_counter(), time.process_time()
        for bucket in buckets:
            dist.all_reduce(bucket)
        taken.append(time.perf_counter() - begun)
        cpu_s += time.process_time() - cpu if turn >= 2 else 0.0
    told.put((rank, statistics.median(taken[2:]), cpu_s / 10))
    dist.destroy_process_group()


def exchange_of(count: int) -> tuple[float, float]:
    """Return in how many seconds two processes add ``count`` fp32 numbers up, and the CPU-seconds of both together."""
    forks = multiprocessing.get_context("spawn")
    told = forks.Queue()
    port = free_port()
    both = [forks.Process(target=_exchange, args=(rank, port, count, told)) for rank in range(2)]
    for one in both:
        one.start()
    found = [told.get(timeout=200) for _ in both]
    for one in both:
        one.join()
    return max(seconds for _, seconds, _ in found), sum(cpu_s for _, _, cpu_s in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    pairs = parser.parse_args().pairs
    folder = Path(tempfile.mkdtemp(prefix="ddp-"))
    try:
        found = [(measured(folder, 1), measured(folder, 2)) for _ in range(pairs)]
        count = parameters(folder)
        step_s = 32 / statistics.median(two.samples_per_s for _, two in found)
        step_cpu_s = statistics.median(two.cpu_s_a_step for _, two in found)
        exchange_s, exchange_cpu_s = exchange_of(count)
        told = {
            "load": [round(one, 1) for one in os.getloadavg()],
            "samples_per_s_1_process_2_threads": [round(one.samples_per_s, 1) for one, _ in found],
            "samples_per_s_2_processes_1_thread_each": [round(two.samples_per_s, 1) for _, two in found],
            "ratios": [round(two.samples_per_s / one.samples_per_s, 3) for one, two in found],
            "cpu_s_a_step_1_process": [round(one.cpu_s_a_step, 4) for one, _ in found],
            "cpu_s_a_step_2_processes": [round(two.cpu_s_a_step, 4) for _, two in found],
            "cpu_ratios": [round(two.cpu_s_a_step / one.cpu_s_a_step, 3) for one, two in found],
            "parameters": count,
            "exchange_ms": round(exchange_s * 1e3, 2),
            "exchange_share_of_step": round(exchange_s / step_s, 3),
            "exchange_cpu_ms": round(exchange_cpu_s * 1e3, 2),
            "exchange_share_of_cpu": round(exchange_cpu_s / step_cpu_s, 3),
            "wait_share_of_step": [round(two.wait_share, 3) for _, two in found],
        }
        print(json.dumps(told, indent=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
