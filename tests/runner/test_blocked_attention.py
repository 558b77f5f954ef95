"""Attention with dropout in blocks: torch's own attention times a mask, forward and backward, whatever the blocks' size."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from runner import blocked_attention, estimate_parts
from runner.blocked_attention import attention_in_blocks, blocks

pytestmark = pytest.mark.train
SAMPLES, HEADS, LENGTH, WIDTH = 3, 4, 17, 8
NEXT_TO_NOTHING = 1e-6
"""Rounded to steps of 1/65,536 nothing is dropped."""


def attention(*tensors: torch.Tensor, **options: Any) -> torch.Tensor:
    """As whoever calls it by its name in torch."""
    found: torch.Tensor = functional.scaled_dot_product_attention(*tensors, **options)
    return found


def tensors(
    dtype: torch.dtype = torch.float32, heads: int = HEADS, keys: int = LENGTH, width: int = WIDTH
) -> list[Any]:
    draw = torch.Generator().manual_seed(3)
    shapes = ((HEADS, LENGTH, WIDTH), (heads, keys, WIDTH), (heads, keys, width))
    return [torch.randn(SAMPLES, *shape, generator=draw).to(dtype).requires_grad_() for shape in shapes]


def padded(keys: int = LENGTH) -> torch.Tensor:
    mask = torch.ones(SAMPLES, 1, LENGTH, keys, dtype=torch.bool)
    mask[1, ..., keys // 2 :] = False
    mask[2, :, 3] = False  # a query that sees nothing
    return mask


def added(mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def gradients(answer: torch.Tensor, of: list[torch.Tensor]) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(4)
    return list(torch.autograd.grad(answer, of, torch.randn(answer.shape, generator=draw).to(answer.dtype)))


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing hidden": ({}, {}),
    "padding, and a query that sees nothing": ({}, {"attn_mask": padded()}),
    "padding as added numbers": ({}, {"attn_mask": added(padded())}),
    "one mask for all samples": ({}, {"attn_mask": padded()[1:2]}),
    "causal": ({}, {"is_causal": True}),
    "a scale of its own": ({}, {"scale": 0.3}),
    "more keys than queries": ({"keys": 23}, {"attn_mask": padded(23)}),
    "values of another width": ({"width": 5}, {}),
    "heads that share keys": ({"heads": 2}, {"enable_gqa": True}),
}


@pytest.mark.parametrize("fitting", [1, 3 * LENGTH * LENGTH, 1 << 20], ids=["a head", "three heads", "all"])
@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)], ids=["fp32", "bf16"]
)
@pytest.mark.parametrize("case", CASES)
def test_where_nothing_is_dropped_it_is_torchs_attention(
    case: str, dtype: torch.dtype, close: float, fitting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked_attention, "BLOCK_SCORES", fitting)
    shapes, options = CASES[case]
    options = {name: one.to(dtype) if torch.is_tensor(one) and one.is_floating_point() else one for name, one in options.items()}  # fmt: skip
    given = tensors(dtype, **shapes)
    wanted = attention(*given, **options)
    with attention_in_blocks():
        found = attention(*given, dropout_p=NEXT_TO_NOTHING, **options)
    for one, other in zip(
        [found, *gradients(found, given)], [wanted, *gradients(wanted, given)], strict=True
    ):
        torch.testing.assert_close(one, other, rtol=close, atol=close)


@pytest.mark.parametrize("fitting", [1, 1 << 20], ids=["a head at a time", "all at once"])
def test_what_is_dropped_in_the_forward_pass_is_dropped_in_the_backward_pass(
    fitting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked_attention, "BLOCK_SCORES", fitting)
    query, key, _ = tensors()
    value = (
        torch.eye(LENGTH).expand(SAMPLES, HEADS, LENGTH, LENGTH).clone().requires_grad_()
    )  # shows the probabilities
    with attention_in_blocks():
        torch.manual_seed(5)
        found = attention(query, key, value, dropout_p=0.25)
    weights = torch.softmax(query @ key.mT / math.sqrt(WIDTH), -1)
    kept = found.detach() != 0
    plain = (weights * kept / 0.75) @ value
    torch.testing.assert_close(found, plain)
    for one, other in zip(
        gradients(found, [query, key, value]), gradients(plain, [query, key, value]), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_the_share_that_is_dropped_is_the_one_asked_for(dropout: float) -> None:
    value = torch.eye(512).expand(2, 4, 512, 512)
    query = torch.zeros(2, 4, 512, 8)
    with attention_in_blocks():
        found = attention(query, query, value, dropout_p=dropout)
    count = found.numel()
    assert abs(float((found == 0).float().mean()) - dropout) < 4 * math.sqrt(
        dropout * (1 - dropout) / count
    ) + 1 / (1 << 17)
    assert float(found.sum(-1).mean()) == pytest.approx(1.0, abs=0.01)


def test_masks_follow_torchs_own_generator() -> None:
    given = tensors()

    def attended(seed: int | None) -> torch.Tensor:
        if seed is not None:
            torch.manual_seed(seed)
        with attention_in_blocks():
            return attention(*given, dropout_p=0.1)

    first, again, next_one, other = attended(1), attended(1), attended(None), attended(2)
    assert torch.equal(first, again)
    assert not torch.equal(first, next_one), "each layer draws masks of its own"
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "options", [{}, {"attn_mask": padded()}, {"is_causal": True}], ids=["plain", "padded", "causal"]
)
def test_without_dropout_it_is_torchs_to_the_bit(options: dict[str, Any]) -> None:
    given = tensors()
    with attention_in_blocks():
        found = attention(*given, **options)
    assert torch.equal(found, attention(*given, **options))


@pytest.mark.parametrize(
    ("shape", "keys", "fitting"),
    [((3, 4, 17, 8), 17, 1), ((3, 4, 17, 8), 17, 600), ((40, 12, 64, 32), 64, 1 << 20), ((1, 2, 4096, 64), 4096, 1 << 20), ((5, 3, 1, 8), 9, 60)],
    ids=["smaller than a head", "two heads", "many samples", "one long sample", "one query"],
)  # fmt: skip
def test_blocks_cover_everything_once(
    shape: tuple[int, ...], keys: int, fitting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked_attention, "BLOCK_SCORES", fitting)
    seen = torch.zeros(shape[:2])
    for block in blocks(shape, keys):
        seen[block] += 1
        assert seen[block].numel() * shape[2] * keys <= max(fitting, shape[2] * keys)
    assert torch.equal(seen, torch.ones(shape[:2]))


def test_the_memory_arithmetic_knows_the_size_of_a_block() -> None:
    assert estimate_parts.BLOCK_SCORES == blocked_attention.BLOCK_SCORES


def test_a_layer_that_is_computed_again_meets_the_same_masks() -> None:
    def dropped(*of: torch.Tensor) -> torch.Tensor:
        return attention(*of, dropout_p=0.2) * 2

    found = []
    for again in (False, True):
        given = tensors()
        torch.manual_seed(6)
        with attention_in_blocks():
            answer = checkpoint(dropped, *given, use_reentrant=False) if again else dropped(*given)
            answer.square().sum().backward()
        found.append([answer, *(one.grad for one in given)])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_under_autocast_it_computes_and_answers_in_the_lower_precision() -> None:
    given = tensors()
    with torch.autocast("cpu", dtype=torch.bfloat16), attention_in_blocks():
        found = attention(*given, dropout_p=0.1)
    assert found.dtype == torch.bfloat16
    assert [one.dtype for one in gradients(found, given)] == [torch.float32] * 3
