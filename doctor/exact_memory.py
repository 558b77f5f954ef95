"""The exact prediction: the model's own code walked in the examined interpreter, and what it told made an estimate.

The child needs no GPU and no weights, and goes to no network. What lies outside of tensors (context, allocator) is the
arithmetic's; so is what several cards change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import runner.child
from doctor.memory_troubles import NoTrace
from doctor.probes.deep_child import Ended, run_child, signal_name
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.estimate_outside import Part, outside_parts, with_outside
from runner.estimate_parts import weight_width
from runner.model_shapes import UnknownArchitecture
from runner.text import Text, t

LIMIT_S = 90.0
TRACE_ERROR = 0.05
"""How far a traced peak may be off, of the tensors (benchmarks/memory.py holds it to that)."""
TOLD_CHARS = 300
"""Of an error: transformers lists every class that it knows behind its first line."""
SMALL_BATCHES = (1, 2)
"""Really run where the model cannot be walked; the peak of each phase is a straight line in the batch."""
_PROGRAM = Path(next(iter(runner.child.__path__))) / "trace_memory.py"
_OFFLOAD_CODE = _PROGRAM.parent.parent / "offload.py"
REQUEST_FIELDS = (
    "config", "task", "num_labels", "sequence_length", "precision", "optimizer", "attention",
    "gradient_checkpointing", "accumulation", "lora_rank", "lora_targets", "lora_dropout", "freeze", "device", "offload",
    "offload_parameters",
)  # fmt: skip


class Traced(msgspec.Struct, frozen=True):
    """Peaks of two batch sizes or more, by phase: enough for every other batch."""

    rows: tuple[dict[str, Any], ...]
    mode: str
    """``fake``, or ``real`` when small steps were really run."""
    why_real: str = ""

    def phases(self, batch: int) -> dict[str, int]:
        """Return the peak of each phase at ``batch``: measured, or on the line through the two nearest."""
        for row in self.rows:
            if row["batch"] == batch:
                return dict(row["phases"])
        first, second = self.rows[0], self.rows[-1]
        run = second["batch"] - first["batch"]
        return {
            name: max(0, round(first["phases"][name] + (second["phases"][name] - first["phases"][name]) * (batch - first["batch"]) / run))
            for name in first["phases"]
        }  # fmt: skip


def trace(
    request: MemoryRequest,
    python: str,
    environ: Mapping[str, str],
    cwd: Path,
    limit_s: float = LIMIT_S,
    with_line: bool = True,
) -> Traced:
    """Walk two steps at the batch asked for; where that fails, really take small ones.

    ``with_line``: another batch too, so that every other batch's peak is known.

    Raises:
        NoTrace: neither worked, with the child's own words.
    """
    batch = request.batch_size
    sizes: tuple[int, ...] = (batch // 2, batch) if batch > 1 else (1, 2)
    sizes = sizes if with_line else (batch,)
    trouble = ""
    for lean in (True, False):
        rows, trouble = _ask(request, sizes, "fake", python, environ, cwd, limit_s, lean)
        if len(rows) == len(sizes):
            return Traced(tuple(rows), "fake")
        if trouble == _late(limit_s):
            break
    rows, second = _ask(request, SMALL_BATCHES, "real", python, environ, cwd, limit_s)
    if len(rows) == len(SMALL_BATCHES):
        return Traced(tuple(rows), "real", trouble)
    raise NoTrace(
        t("the model could not be traced in {python}: {why}", python=python, why=trouble or second or "-")
    )


def _ask(
    request: MemoryRequest, sizes: Sequence[int], mode: str, python: str, environ: Mapping[str, str], cwd: Path,
    limit_s: float, lean: bool = False,
) -> tuple[list[dict[str, Any]], str]:  # fmt: skip
    """Return what the child told of each size, and what went wrong. ``lean``: without imports that most models do without."""
    question = {name: getattr(request, name) for name in REQUEST_FIELDS}
    question |= {"batch_sizes": list(sizes), "mode": mode, "lean": lean, "offload_code": str(_OFFLOAD_CODE)}
    quiet = {**environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    argv = [python, "-B", str(_PROGRAM), msgspec.json.encode(question).decode()]
    try:
        ended = run_child(argv, quiet, cwd, limit_s)
    except OSError as error:
        return [], error.strerror or str(error)
    return [line for line in ended.told if "phases" in line], _trouble(ended, limit_s)


def _late(limit_s: float) -> str:
    return f"no answer within {limit_s:g} s"


def _trouble(ended: Ended, limit_s: float) -> str:
    told = next((str(line["error"]) for line in ended.told if "error" in line), "")
    if told or ended.code == 0:
        return told.partition("\n")[0][:TOLD_CHARS]
    if ended.code is None:
        return _late(limit_s)
    how = signal_name(-ended.code) if ended.code < 0 else f"exit status {ended.code}"
    last = next((line.strip() for line in reversed(ended.stderr.splitlines()) if line.strip()), "")
    return f"{how}: {last}" if last else how


def as_estimate(request: MemoryRequest, traced: Traced) -> MemoryEstimate:
    """Return what was traced as an estimate of the batch asked for."""
    phases = traced.phases(request.batch_size)
    row = next((one for one in traced.rows if one["batch"] == request.batch_size), traced.rows[-1])
    phase = max(phases, key=lambda name: phases[name])
    sharded = _sharding_saves(request)
    tensors = max(0, phases[phase] - sharded)
    outside = outside_parts(request, tensors)
    low, high = with_outside(request, tensors * (1 - TRACE_ERROR), tensors * (1 + TRACE_ERROR))
    return MemoryEstimate(
        source="traced" if traced.mode == "fake" else "small real steps",
        peak_bytes=tensors + sum(part.size_bytes for part in outside), low_bytes=low, high_bytes=high,
        allocated_bytes=tensors, phase=phase, phases=phases,
        parts=(*_tensor_parts(row, phase, phases[phase], sharded), *outside),
        layers_bytes=tuple(row["layers_bytes"]), parameters=row["parameters"],
        trainable=row["trainable"],
        host_bytes=_host_bytes(request, row),
    )  # fmt: skip


def _host_bytes(request: MemoryRequest, row: Mapping[str, Any]) -> int:
    """Return what of an AdamW lies on the host: weights, gradients and two moments, and the weights that stand still."""
    if not (request.offload or request.offload_parameters):
        return 0
    still = row["parameters"] - row["trainable"] if request.offload_parameters else 0
    return int(weight_width(request) * (4 * row["trainable"] + still))


def _sharding_saves(request: MemoryRequest) -> int:
    """Return what several cards take off one, by the arithmetic; negative: they add."""
    if request.cards == 1 and request.spread == 1:
        return 0
    alone = msgspec.structs.replace(request, cards=1, spread=1)
    try:
        return estimate(alone).allocated_bytes - estimate(request).allocated_bytes
    except UnknownArchitecture as error:
        raise NoTrace(error.problem) from error


def _tensor_parts(row: Mapping[str, Any], phase: str, peak: int, sharded: int) -> list[Part]:
    weights = row["weights_bytes"]
    optimizer = max(0, row["after_step_bytes"] - weights)
    if phase == "optimizer":
        sizes = {"weights": weights, "gradients": row["gradients_bytes"], "optimizer": optimizer}
    else:
        kept = max(0, row["after_forward_bytes"] - weights - optimizer)
        sizes = {
            "weights": weights,
            "optimizer": optimizer,
            "activations": min(kept, max(0, peak - weights - optimizer)),
        }
    sizes["workspace"] = max(0, peak - sum(sizes.values()))
    sizes["sharding"] = -sharded
    return [Part(name=name, size_bytes=size, why=_why(name, row)) for name, size in sizes.items() if size]


def _why(name: str, row: Mapping[str, Any]) -> Text:
    texts: dict[str, Callable[[], Text]] = {
        "weights": lambda: t("{count} M parameters, as the model was built", count=round(row["parameters"] / 1e6, 1)),
        "gradients": lambda: t("one for each trained parameter"),
        "optimizer": lambda: t("what is left after an update beside the weights"),
        "activations": lambda: t("alive at the end of the forward pass, {attention} attention", attention=row["attention"] or "-"),
        "workspace": lambda: t("on top of that at the peak: gradients under way, copies, what lives within one layer"),
        "sharding": lambda: t("by the arithmetic: what several cards change on one card"),
    }  # fmt: skip
    return texts[name]()
