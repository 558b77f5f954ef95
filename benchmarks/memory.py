"""Predicted memory against what a process really took: ``python -m benchmarks.memory [--only NAME] [--json FILE]``.

Each point is trained for two updates in a fresh process on the CPU; its high-water mark, less what it held before the
model was made, is the truth. Beside it: our arithmetic, our trace (both told that the device is a CPU), ``accelerate estimate-memory``'s
own code and the tutorials' formula. Aims: traced within 5 %, arithmetic within 15 %. ``--cuda`` is the same table on a real
card: torch's count of its tensors is the truth, and the aim for both is 10 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchmarks.memory_points import CUDA_POINTS, MODELS, POINTS
from doctor.article_formula import formula_bytes
from doctor.exact_memory import REQUEST_FIELDS
from doctor.measuring import Bench
from runner.estimate import MemoryRequest, estimate

MIB = 1 << 20
ROOT = Path(__file__).parent.parent
AIMS = {"traced": 0.05, "arithmetic": 0.15}
CUDA_AIM = 0.10


def request_of(point: tuple[Any, ...], device: Literal["cpu", "cuda"] = "cpu") -> MemoryRequest:
    model, batch, length, precision, checkpointing, attention = point
    task = "causal-lm" if MODELS[model]["model_type"] in ("gpt2", "llama", "qwen2") else "classification"
    return MemoryRequest(
        config=MODELS[model], task=task, batch_size=batch, sequence_length=length, precision=precision,
        gradient_checkpointing=checkpointing, attention=attention, device=device, optimizer="adamw-loop" if device == "cpu" else "adamw",
    )  # fmt: skip


def question(request: MemoryRequest, mode: str) -> str:
    asked = {name: getattr(request, name) for name in REQUEST_FIELDS}
    return msgspec.json.encode({**asked, "batch_sizes": [request.batch_size], "mode": mode}).decode()


def traced(request: MemoryRequest) -> tuple[int, float]:
    """Return the traced peak in bytes and the child's seconds for it."""
    row = _child([str(ROOT / "runner" / "child" / "trace_memory.py"), question(request, "fake")], {})
    return row["peak_bytes"], row["took_s"]


def really_taken(request: MemoryRequest) -> int:
    """Return what a fresh process took for two updates: every large block its own mapping, given back at once."""
    limits = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    row = _child(["-m", "benchmarks.memory", "--really", question(request, "real")], limits)
    return int(row["taken_bytes"])


def _child(arguments: list[str], variables: dict[str, str]) -> dict[str, Any]:
    environ = {**os.environ, **variables, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-B", *arguments], env=environ, capture_output=True, text=True, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not rows or "error" in rows[-1]:
        raise SystemExit(f"{arguments[-1]}\n{rows[-1:]}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = rows[-1]
    return found


def take_really(argument: str) -> None:
    """In the fresh process: warm the kernels up on a small model, then train the one asked for."""
    import torch
    import transformers

    from runner.child import memory_guard, memory_step, trace_memory

    request = json.loads(argument)
    trace_memory.quiet(transformers)
    torch.set_num_threads(2)
    small = {**request, "sequence_length": 16, "batch_sizes": [1]}
    _train(torch, transformers, memory_step, small)
    before = memory_guard.status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    _train(torch, transformers, memory_step, request)
    print(json.dumps({"taken_bytes": memory_guard.status_bytes("VmHWM") - before}))


def _train(torch: Any, transformers: Any, ours: Any, request: dict[str, Any]) -> None:
    """Two whole updates, written out: nothing of the tracker takes part."""
    from runner.blocked_attention import attention_in_blocks

    model = ours.make_model(torch, transformers, request)
    optimizer = ours.make_optimizer(torch, model, request)
    batch = ours.make_batch(torch, request, request["batch_sizes"][0])
    for _ in range(2):
        with attention_in_blocks():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=request["precision"] == "bf16"):
                loss = model(**batch).loss
            loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()


def taken_on_card(request: MemoryRequest) -> int:
    """Return ``torch.cuda.max_memory_allocated()`` of two updates, as ``doctor plan --measure`` sees it."""
    bench = Bench(request, sys.executable, os.environ, ROOT, 0, 300.0)
    try:
        found = bench.measure(request.batch_size)
    finally:
        bench.close()
    if not found.fits:
        raise SystemExit(f"{request.batch_size} does not fit: {found.why}")
    return found.peak_bytes


def say_accelerate(argument: str) -> None:
    """In the fresh process: what accelerate's own code answers for a model on the meta device."""
    import torch
    import transformers
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    from runner.child import memory_step, trace_memory

    trace_memory.quiet(transformers)
    request = json.loads(argument)
    with torch.device("meta"):
        model = memory_step.make_model(torch, transformers, request)
    size, _ = calculate_maximum_sizes(model)
    names = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    usage = estimate_training_usage(size, names[request["precision"]])
    print(json.dumps({"accelerate_bytes": max(usage.values())}))


def accelerate_says(request: MemoryRequest) -> int:
    asked = question(request, "fake")
    return int(_child(["-m", "benchmarks.memory", "--accelerate", asked], {})["accelerate_bytes"])


def measured(points: tuple[tuple[Any, ...], ...], device: Literal["cpu", "cuda"]) -> Iterator[dict[str, Any]]:
    for point in points:
        request = request_of(point, device)
        truth = really_taken(request) if device == "cpu" else taken_on_card(request)
        trace_bytes, took = traced(request)
        yield {
            "point": list(point), "real": truth, "traced": trace_bytes, "trace_s": took,
            "arithmetic": estimate(request).allocated_bytes,
            "accelerate": accelerate_says(request), "formula": formula_bytes(request),
        }  # fmt: skip


def line_of(row: dict[str, Any]) -> str:
    model, batch, length, precision, checkpointing, attention = row["point"]
    name = f"{model} {batch}x{length} {precision} {attention}{' ckpt' if checkpointing else ''}"
    cells = "".join(
        f"{row[key] / MIB:9.0f} {100 * (row[key] / row['real'] - 1):+6.1f}%" for key in ("traced", "arithmetic", "accelerate", "formula")
    )  # fmt: skip
    return f"{name:38} {row['real'] / MIB:7.0f}{cells}"


def summary(rows: list[dict[str, Any]], aims: dict[str, float]) -> Iterator[str]:
    for key in ("traced", "arithmetic", "accelerate", "formula"):
        errors = [abs(row[key] / row["real"] - 1) for row in rows]
        line = f"{key:11} worst {max(errors):.1%}, mean {sum(errors) / len(errors):.1%}"
        if key in aims:
            within = sum(error <= aims[key] for error in errors)
            line += f"; within {aims[key]:.0%}: {within} of {len(errors)}"
        yield line


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--really", help=argparse.SUPPRESS)
    parser.add_argument("--accelerate", help=argparse.SUPPRESS)
    parser.add_argument("--cuda", action="store_true", help="on this machine's card")
    parser.add_argument("--only", default="", help="models whose names begin so")
    parser.add_argument(
        "--json", type=Path, help="kept after each point; what it holds is not measured again"
    )
    options = parser.parse_args()
    if options.really:
        take_really(options.really)
        return 0
    if options.accelerate:
        say_accelerate(options.accelerate)
        return 0
    device: Literal["cpu", "cuda"] = "cuda" if options.cuda else "cpu"
    points = CUDA_POINTS if options.cuda else POINTS
    aims = {"traced": CUDA_AIM, "arithmetic": CUDA_AIM} if options.cuda else AIMS
    print(f"{'':38} {'real':>7}{'traced':>17}{'arithmetic':>17}{'accelerate':>17}{'formula':>17}   (MiB)")
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    for row in rows:
        print(line_of(row))
    known = [row["point"] for row in rows]
    wanted = [point for point in points if point[0].startswith(options.only) and list(point) not in known]
    for row in measured(tuple(wanted), device):
        rows.append(row)
        print(line_of(row), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    print("\n".join(summary(rows, aims)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
