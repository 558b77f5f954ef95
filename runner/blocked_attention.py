"""Attention with dropout on the CPU, a block of scores at a time. torch's fused kernel has no dropout there, and its plain one
keeps every score, mask and factor of the batch: memory by the square of the length, most of it touched once.

Kept for the backward pass are queries, keys, values and a seed; scores are computed again and the random numbers drawn
again. The seed comes from torch's own generator, so that a continued run, and a recomputed layer, meet the same masks.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

BLOCK_SCORES = 1 << 20
"""Scores in flight at a time: few enough to stay in the caches with their gradients, many enough for one call. The memory
arithmetic has it too (runner/estimate_parts.py)."""
LEVELS = 1 << 16
"""Sixteen random bits decide on a score: a probability is exact to 1/65,536."""


class Asked(NamedTuple):
    """The arguments of ``torch.nn.functional.scaled_dot_product_attention``, in its order."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    attn_mask: torch.Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


@contextlib.contextmanager
def attention_in_blocks() -> Iterator[None]:
    """While it is entered, attention with dropout on CPU tensors is computed in blocks. All else is torch's own.

    To be entered for the backward pass too, where recomputed layers run their forward pass. It puts a function in torch's place,
    since a ``TorchFunctionMode`` is off in there.
    """
    usual = functional.scaled_dot_product_attention

    def attention(*args: Any, **kwargs: Any) -> torch.Tensor:
        asked = Asked(*args, **kwargs)
        return _attended(asked) if _is_for_blocks(asked) else usual(*args, **kwargs)

    functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = usual


def _is_for_blocks(asked: Asked) -> bool:
    query, key, mask = asked.query, asked.key, asked.attn_mask
    return (
        0.0 < asked.dropout_p < 1.0
        and query.device.type == "cpu"
        and query.dim() == key.dim() == 4
        and query.shape[0] == key.shape[0]
        and query.is_floating_point()
        and query.dtype != torch.float64
        and (mask is None or (mask.dim() == 4 and not mask.requires_grad))
    )


def _attended(asked: Asked) -> torch.Tensor:
    query, key, value = asked.query, asked.key, asked.value
    if torch.is_autocast_enabled("cpu"):
        low = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(low), key.to(low), value.to(low)
    if asked.enable_gqa and key.shape[1] != query.shape[1]:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(query.shape[-1]) if asked.scale is None else asked.scale
    query, key, value = (query * scale).contiguous(), key.contiguous(), value.contiguous()
    bias, seen = _bias_of(asked, query)
    found: torch.Tensor = _Blocks.apply(query, key, value, bias, asked.dropout_p, _seed())
    return found if seen is None else found * seen


def _seed() -> int:
    drawn = torch.randint(1 << 62, ())
    return int(drawn) if type(drawn) is torch.Tensor else 0  # a fake one has no value


def _bias_of(asked: Asked, query: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return what is added to the scores, and 0 for each query that sees nothing: its answer is zero, as torch's is.

    Finite where torch adds minus infinity, so that no row becomes a division by zero.
    """
    mask, lowest = asked.attn_mask, torch.finfo(query.dtype).min / 2
    if asked.is_causal:
        mask = torch.ones(query.shape[2], asked.key.shape[2], dtype=torch.bool).tril()[None, None]
    if mask is None:
        return None, None
    hidden = ~mask if mask.dtype == torch.bool else mask < lowest
    bias = torch.zeros(mask.shape, dtype=query.dtype) if mask.dtype == torch.bool else mask.to(query.dtype)
    return bias.masked_fill(hidden, lowest), (~hidden).any(-1, keepdim=True).to(query.dtype)


class _Blocks(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
    """Queries, keys, values: (batch, heads, length, width), the queries with their scale; bias: as many or 1 of each of (batch, heads, queries, keys)."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, bias: Any, dropout: float, seed: int) -> Any:
        ctx.save_for_backward(query, key, value, bias)
        ctx.dropout, ctx.seed = dropout, seed
        answer = torch.empty(*query.shape[:3], value.shape[3], dtype=query.dtype)
        draw = _Draw(dropout, seed)
        for block in blocks(query.shape, key.shape[2]):
            kept = _probabilities(query[block], key[block], _part(bias, block))
            kept *= draw.factors(kept)
            torch.mul(kept @ value[block], draw.grown, out=answer[block])
        return answer

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator,unused-ignore]
    def backward(ctx: Any, gradient: Any) -> Any:
        query, key, value, bias = ctx.saved_tensors
        dropout, seed = ctx.dropout, ctx.seed
        found = tuple(
            torch.empty_like(one, memory_format=torch.contiguous_format) for one in (query, key, value)
        )
        draw = _Draw(dropout, seed)
        for block in blocks(query.shape, key.shape[2]):
            above = gradient[block] * draw.grown
            shares = _probabilities(query[block], key[block], _part(bias, block))
            factors = draw.factors(shares)
            found[2][block] = (shares * factors).mT @ above
            inner = (above @ value[block].mT).mul_(factors)
            inner = torch._softmax_backward_data(inner, shares, -1, inner.dtype)
            found[0][block] = inner @ key[block]
            found[1][block] = inner.mT @ query[block]
        return *found, None, None, None


def blocks(shape: torch.Size | tuple[int, ...], keys: int) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, heads, queries, ...) into parts of samples and heads of at most ``BLOCK_SCORES`` scores, or one head."""
    samples, heads, queries = shape[:3]
    fitting = max(1, BLOCK_SCORES // max(1, queries * keys))
    of_samples, of_heads = max(1, fitting // heads), min(heads, fitting)
    for sample in range(0, samples, of_samples):
        for head in range(0, heads, of_heads):
            yield slice(sample, sample + of_samples), slice(head, head + of_heads)


def _part(bias: torch.Tensor | None, block: tuple[slice, slice]) -> torch.Tensor | None:
    """Return a block's part of what is added, whose samples and heads may stand for all."""
    if bias is None:
        return None
    samples, heads = (
        part if count > 1 else slice(None) for part, count in zip(block, bias.shape, strict=False)
    )
    return bias[samples, heads]


def _probabilities(query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    scores = query @ key.mT
    if bias is not None:
        scores += bias
    return torch.softmax(scores, -1)


class _Draw:
    """What each score is multiplied with, block after block: 0 or 1; ``grown`` makes up for the zeros."""

    def __init__(self, dropout: float, seed: int) -> None:
        dropped = round(dropout * LEVELS)
        self.grown = LEVELS / (LEVELS - dropped)
        self._first_kept = dropped - LEVELS // 2
        self._source = numpy.random.SFC64(seed)  # a third of the time that torch's own takes

    def factors(self, scores: torch.Tensor) -> torch.Tensor:
        """Return a factor for each score, in its type."""
        count = scores.numel()
        words = -(-count // 4)
        if type(scores) is torch.Tensor:
            bits = torch.from_numpy(self._source.random_raw(words).view(numpy.int16))
        else:  # a fake one: sizes are all that counts
            bits = torch.empty(4 * words, dtype=torch.int16)
        bits = bits[:count].view(scores.shape)
        return torch.ge(bits, self._first_kept, out=torch.empty_like(scores))
