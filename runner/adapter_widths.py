"""How many values a rank of LoRA takes in one layer of a known model, by the names of the layers that get adapters. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.model_shapes import Shape

ALL = "all-linear"
"""peft's word for every linear layer but the head."""


def projections(shape: Shape) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return (input, output) widths of each linear layer in one block, by the last part of its name."""
    h, i = shape.hidden, shape.inner
    if shape.family == "llama":
        queries, keys = shape.query_width or h, shape.key_width or h
        return {
            "q_proj": ((h, queries),), "k_proj": ((h, keys),), "v_proj": ((h, keys),), "o_proj": ((queries, h),),
            "gate_proj": ((h, i),), "up_proj": ((h, i),), "down_proj": ((i, h),),
        }  # fmt: skip
    if shape.family == "gpt2":
        return {"c_attn": ((h, 3 * h),), "c_proj": ((h, h), (i, h)), "c_fc": ((h, i),)}
    if shape.family == "modernbert":
        return {"Wqkv": ((h, 3 * h),), "Wo": ((h, h), (i, h)), "Wi": ((h, 2 * i),)}
    if shape.family == "distilbert":
        return {**dict.fromkeys(("q_lin", "k_lin", "v_lin", "out_lin"), ((h, h),)), "lin1": ((h, i),), "lin2": ((i, h),)}  # fmt: skip
    query, key, value = (
        ("query_proj", "key_proj", "value_proj") if shape.family == "deberta" else ("query", "key", "value")
    )
    return {**dict.fromkeys((query, key, value), ((h, h),)), "dense": ((h, h), (h, i), (i, h))}


def adapter_width(shape: Shape, targets: Sequence[str]) -> int:
    """Return the sum of (input + output widths) of a layer's adapted projections: what a rank of LoRA costs.

    A name that is not known is taken for the widest layer there is.
    """
    if not targets:
        return shape.adapted_width
    known = projections(shape)
    if ALL in targets:
        return sum(sum(pair) for pairs in known.values() for pair in pairs)
    widest = shape.hidden + shape.inner
    return sum(
        sum(sum(pair) for pair in known[name]) if name in known else widest
        for name in {target.rpartition(".")[2] for target in targets}
    )


def keeps_every_input(shape: Shape, targets: Sequence[str]) -> bool:
    """Do adapters stand where the default has none, so that about every projection keeps its input?"""
    usual = {"query", "value", "query_proj", "value_proj", "q_lin", "v_lin", "q_proj", "v_proj", "c_attn", "Wqkv", "key", "key_proj", "k_lin", "k_proj"}  # fmt: skip
    return any(target.rpartition(".")[2] not in usual for target in targets)


def adapter_inputs(shape: Shape, targets: Sequence[str]) -> int:
    """Return the sum of input widths of a layer's adapted projections: what is kept where adapters drop their inputs."""
    known = projections(shape)
    if ALL in targets:
        return sum(pair[0] for pairs in known.values() for pair in pairs)
    if not targets:
        return shape.hidden * (1 if shape.family in ("gpt2", "modernbert") else 2)
    names = {target.rpartition(".")[2] for target in targets}
    return sum(pair[0] for name in names for pair in known.get(name, ((shape.inner, shape.hidden),)))
