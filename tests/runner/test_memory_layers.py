"""A deep model's memory from two shallow ones: equal to the byte with the whole model walked, or not given at all."""

from __future__ import annotations

from typing import Any

import pytest

from runner.child.memory_layers import ALIKE, are_alike, extended, shallow_configs

SMALL = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 9,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
DEEP: dict[str, dict[str, Any]] = {
    "bert": SMALL, "roberta": SMALL, "xlm-roberta": SMALL, "camembert": SMALL, "electra": {**SMALL, "embedding_size": 16},
    "deberta-v2": {**SMALL, "relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True,
                   "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0},
    "ernie": SMALL, "gemma": {**SMALL, "head_dim": 16, "num_key_value_heads": 1},
    "distilbert": {"vocab_size": 400, "dim": 32, "n_layers": 9, "n_heads": 2, "hidden_dim": 64},
    "gpt2": {"vocab_size": 400, "n_embd": 32, "n_layer": 9, "n_head": 2},
    "llama": SMALL, "mistral": {**SMALL, "num_key_value_heads": 1}, "qwen2": {**SMALL, "num_key_value_heads": 2},
    "qwen3": {**SMALL, "head_dim": 16, "num_key_value_heads": 1},
}  # fmt: skip
STEP = {
    "num_labels": 2, "sequence_length": 16, "precision": "fp32", "optimizer": "adamw", "attention": "auto",
    "gradient_checkpointing": False, "accumulation": 1, "lora_rank": 0, "device": "cuda", "mode": "fake",
}  # fmt: skip


def both_ways(kind: str, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the shallow models give and what the whole model gives."""
    from runner.child.trace_memory import trace

    task = (
        "causal-lm" if kind in ("gpt2", "gemma", "llama", "mistral", "qwen2", "qwen3") else "classification"
    )
    request = {**STEP, "config": {"model_type": kind, **DEEP[kind]}, "task": task, **changes}
    rows = [trace(request, 4), trace({**request, "whole": True}, 4)]
    for row in rows:
        row.pop("segments")
    return rows[0], rows[1]


@pytest.mark.train
@pytest.mark.parametrize("kind", sorted(ALIKE))
def test_three_and_four_layers_give_the_whole_model_to_the_byte(kind: str) -> None:
    shallow, whole = both_ways(kind)
    assert shallow == whole


@pytest.mark.train
@pytest.mark.parametrize("kind", ["bert", "deberta-v2", "gpt2", "llama"])
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"precision": "bf16", "gradient_checkpointing": True, "accumulation": 2}, id="bf16 with checkpointing, accumulated"),
        pytest.param({"precision": "bf16-pure", "optimizer": "adamw-foreach", "attention": "eager"}, id="weights in bf16, eager, foreach"),
        pytest.param({"precision": "bf16", "lora_rank": 2, "optimizer": "adamw-loop", "device": "cpu"}, id="LoRA on the CPU"),
    ],
)  # fmt: skip
def test_so_they_do_however_it_is_trained(kind: str, changes: dict[str, Any]) -> None:
    shallow, whole = both_ways(kind, **changes)
    assert shallow == whole


@pytest.mark.train
@pytest.mark.parametrize("optimizer", ["adamw-8bit", "sgd", "sgd-momentum"])
def test_every_optimizer_grows_evenly_with_the_layers(optimizer: str) -> None:
    shallow, whole = both_ways("bert", optimizer=optimizer)
    assert shallow == whole


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        pytest.param({"model_type": "modernbert"}, 22, id="every third layer looks at everything"),
        pytest.param({"model_type": "albert"}, 12, id="its layers are one"),
        pytest.param({"model_type": "qwen2", "use_sliding_window": True}, 28, id="some layers look through a window"),
        pytest.param({"model_type": "llama", "layer_types": ["full_attention", "sliding_attention"]}, 16, id="kinds of layers"),
        pytest.param({"model_type": "bert"}, 6, id="shallow itself"),
        pytest.param({"model_type": "never-seen"}, 40, id="nobody looked at it"),
    ],
)  # fmt: skip
def test_what_is_not_known_to_be_alike_is_walked_whole(config: dict[str, Any], layers: int) -> None:
    assert shallow_configs(config, layers) == []


def test_the_shallow_models_differ_in_depth_alone() -> None:
    config = {"model_type": "distilbert", "dim": 64, "layer_types": ["full_attention"] * 12}
    assert shallow_configs(config, 12) == [
        {"model_type": "distilbert", "dim": 64, "n_layers": 3},
        {"model_type": "distilbert", "dim": 64, "n_layers": 4},
    ]


def row_of(layers: int, middle: list[int], extra: int = 0) -> dict[str, Any]:
    """A forward whose layers keep 10, ``middle`` ... and 10 bytes, each with a passing 5 on top (``extra`` in the second)."""
    segments, live = [], 100
    segments.append(("forward", -1, live, live))
    for layer, kept in enumerate([10, *middle, 10]):
        segments.append(("forward", layer, live, live + kept + 5 + (extra if layer == 1 else 0)))
        live += kept
    segments.append(("forward", -1, live, live + 30))
    return {"segments": segments, "layers_bytes": [10, *middle, 10], "weights_bytes": 100 + layers, "attention": "sdpa", "batch": 1}  # fmt: skip


def test_each_segment_has_its_own_line() -> None:
    found = extended(row_of(3, [7]), row_of(4, [7, 7]), 24)
    assert found is not None
    assert found["phases"] == {"forward": 100 + 20 + 22 * 7 + 30}
    assert found["weights_bytes"] == 124
    assert found["layers_bytes"] == [10, *[7] * 22, 10]


@pytest.mark.parametrize(
    "four",
    [
        pytest.param(row_of(4, [7, 8]), id="one keeps more"),
        pytest.param(row_of(4, [7, 7], extra=3), id="one needs more while it runs"),
    ],
)
def test_layers_that_differ_by_a_byte_extend_nothing(four: dict[str, Any]) -> None:
    assert not are_alike(four["segments"])
    assert extended(row_of(3, [7]), four, 24) is None
