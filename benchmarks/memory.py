"""Predicted memory against what a process really took: ``python -m benchmarks.memory [--only NAME] [--json FILE]``.

Each point is trained for two updates in a fresh process on the CPU; its high-water mark, less what it held before the
model was made, is the truth. Beside it: our arithmetic, our trace (both told that the device is a CPU), accelerate's
rule and the tutorials' formula. Aims: traced within 5 %, arithmetic within 15 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doctor.article_formula import accelerate_rule_bytes, formula_bytes
from runner.estimate import MemoryRequest, estimate

MIB = 1 << 20
ROOT = Path(__file__).parent.parent
TRACED_AIM, ARITHMETIC_AIM = 0.05, 0.15
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
STILL = {
    "attention_probs_dropout_prob": 0.0
}  # the CPU's SDPA has no dropout of its own: it would fall back to eager
MODELS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **SMALL, **STILL},
    "bert-base": {"model_type": "bert", **STILL},
    "roberta": {"model_type": "roberta", **SMALL, **STILL},
    "electra": {"model_type": "electra", **STILL},
    "albert": {"model_type": "albert", "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "distilbert": {"model_type": "distilbert", "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024, "attention_dropout": 0.0},
    "deberta-v2": {
        "model_type": "deberta-v2", "vocab_size": 30000, "relative_attention": True, "position_buckets": 64,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
        "position_biased_input": False, "max_relative_positions": -1, **SMALL,
    },
    "modernbert": {"model_type": "modernbert", "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 384},
    "gpt2": {"model_type": "gpt2", "vocab_size": 16000, "n_embd": 256, "n_layer": 4, "n_head": 4, "attn_pdrop": 0.0},
    "llama": {"model_type": "llama", "vocab_size": 16000, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688},
    "qwen2": {"model_type": "qwen2", "vocab_size": 16000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688, "tie_word_embeddings": True},
}  # fmt: skip

# model, batch, length, precision, checkpointing, attention
POINTS = (
    ("bert", 32, 128, "fp32", False, "sdpa"), ("bert", 32, 256, "fp32", False, "sdpa"),
    ("bert", 16, 256, "bf16", False, "sdpa"), ("bert", 16, 256, "fp32", False, "eager"),
    ("bert", 32, 256, "fp32", True, "sdpa"), ("bert", 32, 256, "bf16", True, "sdpa"),
    ("bert-base", 8, 128, "fp32", False, "sdpa"), ("bert-base", 4, 256, "bf16", False, "sdpa"),
    ("roberta", 16, 256, "fp32", False, "sdpa"), ("roberta", 32, 128, "bf16", False, "sdpa"),
    ("electra", 16, 128, "fp32", False, "sdpa"), ("albert", 16, 128, "fp32", False, "sdpa"),
    ("distilbert", 32, 128, "fp32", False, "sdpa"), ("distilbert", 32, 256, "bf16", False, "sdpa"),
    ("deberta-v2", 16, 128, "fp32", False, "eager"), ("deberta-v2", 16, 256, "fp32", True, "eager"),
    ("modernbert", 16, 256, "fp32", False, "sdpa"), ("modernbert", 16, 256, "bf16", False, "sdpa"),
    ("gpt2", 8, 256, "fp32", False, "sdpa"), ("gpt2", 16, 128, "bf16", False, "sdpa"), ("gpt2", 8, 256, "fp32", True, "sdpa"),
    ("llama", 8, 256, "fp32", False, "sdpa"), ("llama", 16, 128, "bf16", False, "sdpa"), ("llama", 8, 256, "fp32", True, "sdpa"),
    ("qwen2", 8, 256, "fp32", False, "sdpa"),
)  # fmt: skip


def request_of(point: tuple[Any, ...]) -> MemoryRequest:
    model, batch, length, precision, checkpointing, attention = point
    task = "causal-lm" if model in ("gpt2", "llama", "qwen2") else "classification"
    return MemoryRequest(
        config=MODELS[model], task=task, batch_size=batch, sequence_length=length, precision=precision,
        gradient_checkpointing=checkpointing, attention=attention, device="cpu", optimizer="adamw-loop",
    )  # fmt: skip


def question(request: MemoryRequest, mode: str) -> str:
    fields = [
        name
        for name in MemoryRequest.__struct_fields__
        if name not in ("batch_size", "cards", "sharding", "offload")
    ]
    return json.dumps(
        {name: getattr(request, name) for name in fields}
        | {"batch_sizes": [request.batch_size], "mode": mode}
    )


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

    from runner.child import memory_step, trace_memory

    request = json.loads(argument)
    trace_memory.quiet(transformers)
    torch.set_num_threads(2)
    small = {**request, "sequence_length": 16, "batch_sizes": [1]}
    _train(torch, transformers, memory_step, small)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    _train(torch, transformers, memory_step, request)
    print(json.dumps({"taken_bytes": _status("VmHWM") - before}))


def _train(torch: Any, transformers: Any, ours: Any, request: dict[str, Any]) -> None:
    """Two whole updates, written out: nothing of the tracker takes part."""
    model = ours.make_model(torch, transformers, request)
    optimizer = ours.make_optimizer(torch, model, request["optimizer"])
    batch = ours.make_batch(torch, request, request["batch_sizes"][0])
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=request["precision"] == "bf16"):
            loss = model(**batch).loss
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise LookupError(name)


def measured(points: tuple[tuple[Any, ...], ...]) -> Iterator[dict[str, Any]]:
    for point in points:
        request = request_of(point)
        truth = really_taken(request)
        trace_bytes, took = traced(request)
        yield {
            "point": list(point), "real": truth, "traced": trace_bytes, "trace_s": took,
            "arithmetic": estimate(request).allocated_bytes,
            "accelerate": accelerate_rule_bytes(request), "formula": formula_bytes(request),
        }  # fmt: skip


def line_of(row: dict[str, Any]) -> str:
    model, batch, length, precision, checkpointing, attention = row["point"]
    name = f"{model} {batch}x{length} {precision} {attention}{' ckpt' if checkpointing else ''}"
    cells = "".join(
        f"{row[key] / MIB:9.0f} {100 * (row[key] / row['real'] - 1):+6.1f}%" for key in ("traced", "arithmetic", "accelerate", "formula")
    )  # fmt: skip
    return f"{name:38} {row['real'] / MIB:7.0f}{cells}"


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    for key, aim in (
        ("traced", TRACED_AIM),
        ("arithmetic", ARITHMETIC_AIM),
        ("accelerate", None),
        ("formula", None),
    ):
        errors = [abs(row[key] / row["real"] - 1) for row in rows]
        within = (
            ""
            if aim is None
            else f"; within {aim:.0%}: {sum(error <= aim for error in errors)} of {len(errors)}"
        )
        yield f"{key:11} worst {max(errors):.1%}, mean {sum(errors) / len(errors):.1%}{within}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--really", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="models whose names begin so")
    parser.add_argument(
        "--json", type=Path, help="kept after each point; what it holds is not measured again"
    )
    options = parser.parse_args()
    if options.really:
        take_really(options.really)
        return 0
    print(f"{'':38} {'real':>7}{'traced':>17}{'arithmetic':>17}{'accelerate':>17}{'formula':>17}   (MiB)")
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    for row in rows:
        print(line_of(row))
    known = [row["point"] for row in rows]
    wanted = [point for point in POINTS if point[0].startswith(options.only) and list(point) not in known]
    for row in measured(tuple(wanted)):
        rows.append(row)
        print(line_of(row), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    print("\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
