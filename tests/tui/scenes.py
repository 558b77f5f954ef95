"""Runs with everything a screen can show: one card whole, and eight cards of which one is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.events import EventWriter
from tests.tui.recorded import FRAMES, ONE_4090, RunBuilder

TREES = [
    {"process": "trainer", "nodes": [
        [0, "<module>", "runner/__main__.py", 49, 1.0], [1, "main", "runner/__main__.py", 45, 1.0],
        [2, "run_training", "runner/trainer.py", 392, 1.0], [3, "_window", "runner/trainer.py", 107, 0.9],
        [4, "backward", "torch/_tensor.py", 500, 0.5], [5, "_engine_run_backward", "torch/autograd/graph.py", 979, 0.5],
        [4, "forward", "modeling_bert.py", 100, 0.3], [5, "sdpa_attention_forward", "sdpa_attention.py", 182, 0.2],
        [5, "Linear.forward", "linear.py", 134, 0.08], [4, "step", "optim.py", 61, 0.1],
        [3, "evaluate", "runner/evaluation.py", 30, 0.1],
    ]},
    {"process": "worker 4250", "nodes": [
        [0, "_worker_loop", "worker.py", 349, 1.0], [1, "fetch", "fetch.py", 52, 0.9], [2, "__getitem__", "data.py", 33, 0.7],
        [2, "collate", "collate.py", 20, 0.2],
    ]},
]  # fmt: skip
HOST = {
    "cpu_cores_usable": 4.0, "cpu_throttled_pct": 31.0, "memory_scope": "container", "shm_used_bytes": 62 << 20,
    "shm_size_bytes": 64 << 20, "disk_read_bytes_per_s": 1.2e8, "disk_write_bytes_per_s": 2e6,
    "unread": {"network_rx_bytes_per_s": "Permission denied"},
}  # fmt: skip
CARD: dict[str, Any] = ONE_4090["gpus"][0]
ONE_CARD = [
    {**CARD, "pcie_rx_bytes_per_s": 1.2e9, "pcie_tx_bytes_per_s": 3e8, "ecc_uncorrected_volatile": 0, "mig_enabled": False,
     "sm_active_pct": 81.0, "tensor_active_pct": 37.0, "memory_activity_pct": 44.0,
     "unread": {"nvlink_rx_bytes_per_s": "Not Supported", "nvlink_tx_bytes_per_s": "Not Supported"}},
]  # fmt: skip
EIGHT_CARDS = [
    *({**CARD, "index": n, "utilization_pct": 90.0 + n, "throttle_reasons": ["hw-thermal"] if n == 3 else ["power-cap"]}
      for n in range(7)),
    {"index": 7, "name": "NVIDIA GeForce RTX 4090", "error": "GPU is lost"},
]  # fmt: skip
PROCESSES = [
    {"gpu_index": 0, "pid": 4242, "used_bytes": 18 << 30, "command": "python train.py"},
    {"gpu_index": 0, "pid": 991, "used_bytes": 1 << 30, "command": None},
]


H100: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3", "utilization_pct": 99.0, "memory_activity_pct": 61.0, "memory_used_bytes": 61 << 30,
    "memory_total_bytes": 80 << 30, "temperature_c": 66.0, "power_w": 688.0, "power_limit_w": 700.0, "sm_clock_mhz": 1755.0,
    "throttle_reasons": ["power-cap"], "pcie_rx_bytes_per_s": 2.1e9, "pcie_tx_bytes_per_s": 4e8, "nvlink_rx_bytes_per_s": 4.1e10,
    "nvlink_tx_bytes_per_s": 4.2e10, "nvlink_errors": 0, "sm_active_pct": 92.0, "tensor_active_pct": 48.0,
    "ecc_uncorrected_volatile": 0, "mig_enabled": False,
}  # fmt: skip
HOPPERS = [
    {**H100, "index": 0},
    {**H100, "index": 1, "nvlink_errors": 12},
    {
        **H100,
        "index": 2,
        "mig_enabled": True,
        "unread": {"utilization_pct": "Not Supported"},
        "utilization_pct": None,
    },
    {**H100, "index": 3, "ecc_uncorrected_volatile": 2, "throttle_reasons": ["power-cap", "hw-thermal"]},
]
XIDS: list[dict[str, Any]] = [
    {"number": 94, "fault": "recoverable", "meaning": "contained memory error",
     "pci": "0000:c1:00", "gpu_index": 3},
    {"number": 31, "fault": "application", "meaning": "a kernel touched memory that is not its own", "pci": "0000:18:00", "is_ours": False},
]  # fmt: skip


def four_ranks(path: Path) -> Path:
    """A run of four processes on four cards, the last of them slow; one Xid on a card of ours and one on another's."""
    run = RunBuilder(path)
    ranks = [
        EventWriter(run.run.events / f"trainer-{rank}.jsonl", f"trainer-{rank}", run.clock)
        for rank in (1, 2, 3)
    ]
    run.start(device="cuda:0", epochs=2, world_size=4, strategy="ddp", model="Qwen3-0.6B")
    for step in range(1, 41):
        run.steps(1, first=step)
        for rank, writer in enumerate(ranks, start=1):
            data = 0.55 if rank == 3 else 0.1
            writer.write("step", step - (rank == 3), loss=0.5, samples=32, tokens=3000, seconds=1.0,
                         split={"data": data, "forward": 0.3, "backward": 0.6 - data, "optimizer": 0.05})  # fmt: skip
    run.host(**HOST).gpu(gpus=HOPPERS, processes=PROCESSES)
    run.sampler.write("sample-xids", source="kernel log")
    for xid in XIDS:
        run.sampler.write("xid", at=run.clock.now, **xid)
    return run.run.path


def rich_run(path: Path) -> Path:
    """A finished run on one card."""
    run = _trained(path, ONE_CARD).note("warn", "the loader waited {share} of the time", share="31 %")
    run.finish(metrics={"accuracy": 0.92}, final_dir="/root/runs/final", steps=100)
    return run.run.path


def crowded_run(path: Path) -> Path:
    """A run on eight cards that still goes on."""
    return _trained(path, EIGHT_CARDS).run.path


def _trained(path: Path, cards: list[dict[str, Any]]) -> RunBuilder:
    run = RunBuilder(path).start(device="cuda:0", epochs=2)
    run.trainer.write("memory", device="cuda", samples=32, length=128, measured_bytes=17.9e9, predicted_bytes=18.4e9,
                      worst_bytes=20.1e9, parted=False)  # fmt: skip
    run.run.trainer_log.write_text("Loading weights\nsome warning: tokenizers forked\n", "utf-8")
    for part in range(4):
        run.steps(25, first=1 + 25 * part)
        if part % 2:
            run.evaluation(25 * (part + 1), 0.8 + 0.04 * part, 0.7 - 0.08 * part).checkpoint(25 * (part + 1))
        run.host(**HOST).gpu(gpus=cards, processes=PROCESSES)
        run.stacks(samples=100, errors=2, frames=FRAMES, trees=TREES, gil_share=0.41)
    return run
