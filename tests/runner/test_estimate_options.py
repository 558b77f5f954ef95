"""Each option's memory beside values worked out by hand, in both ways of predicting."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.exact_memory import Traced, as_estimate
from runner.estimate import MemoryEstimate, MemoryRequest, estimate, phase_parts
from runner.model_shapes import shape_of

MIB = 1 << 20
BERT = {"model_type": "bert"}
P = 109_483_778
"""Parameters of BERT-base with two labels."""
LAYER = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 768 + 3072 + 4 * 768
EMBEDDING = (30522 + 512 + 2) * 768 + 2 * 768
HEAD = 768 * 768 + 768 + 768 * 2 + 2
LORA_8 = 8 * 12 * (4 * 768) + HEAD
"""Rank x layers x (query and value, in and out), and the head that is always trained."""


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(**{"config": BERT, "batch_size": 1, "sequence_length": 8, **changes})


def part(found: MemoryEstimate, name: str) -> int:
    return sum(one.size_bytes for one in found.parts if one.name == name)


@pytest.mark.parametrize(
    ("changes", "weights", "gradients", "optimizer"),
    [
        pytest.param({}, 4 * P, 4 * P, 8 * P, id="AdamW in fp32: 4 + 4 + 8 bytes"),
        pytest.param({"precision": "bf16"}, 4 * P, 4 * P, 8 * P, id="autocast leaves all three in fp32"),
        pytest.param({"precision": "bf16-pure"}, 2 * P, 2 * P, 4 * P, id="weights in bf16: half of each"),
        pytest.param({"optimizer": "sgd"}, 4 * P, 4 * P, 0, id="SGD has no state"),
        pytest.param({"optimizer": "sgd-momentum"}, 4 * P, 4 * P, 4 * P, id="momentum is one more"),
        pytest.param({"optimizer": "adamw-8bit"}, 4 * P, 4 * P, 2 * P + 2 * 4 * P // 256, id="8 bits: two bytes, and a scale each 256"),
        pytest.param({"lora_rank": 8}, 4 * (P + 8 * 12 * 4 * 768), 4 * LORA_8, 8 * LORA_8, id="LoRA: adapters and head alone have gradients"),
        pytest.param({"cards": 4, "sharding": "ddp"}, 4 * P, 2 * 4 * P, 8 * P, id="DDP: gradients once more in its buckets"),
        pytest.param({"cards": 4, "sharding": "zero1"}, 4 * P, 4 * P, 2 * P, id="ZeRO-1: a quarter of the states"),
        pytest.param({"cards": 4, "sharding": "zero2"}, 4 * P, P, 2 * P, id="ZeRO-2: and of the gradients"),
        pytest.param({"cards": 4, "sharding": "zero3"}, P + 4 * (2 * LAYER + EMBEDDING), P, 2 * P, id="ZeRO-3: and of the weights, two layers gathered"),
        pytest.param({"offload": True}, 4 * P, 4 * P, 0, id="offloaded states are on the host"),
        pytest.param({"cards": 8, "sharding": "zero2", "optimizer": "adamw-8bit"}, 4 * P, 4 * P // 8, (2 * P + 2 * 4 * P // 256) // 8, id="8 bits over 8 cards"),
        pytest.param({"cards": 2, "sharding": "zero1", "lora_rank": 8}, 4 * (P + 8 * 12 * 4 * 768), 4 * LORA_8, 4 * LORA_8, id="adapters over 2 cards"),
    ],
)  # fmt: skip
def test_what_an_update_holds(changes: dict[str, Any], weights: int, gradients: int, optimizer: int) -> None:
    phases = estimate_phase(asked(**changes), "optimizer")
    assert (phases["weights"], phases["gradients"], phases["optimizer"]) == (weights, gradients, optimizer)


def estimate_phase(request: MemoryRequest, phase: str) -> dict[str, int]:
    from runner.estimate import phase_parts
    from runner.model_shapes import shape_of

    return phase_parts(request, shape_of(request.config))[phase]


def test_accumulation_keeps_gradients_through_the_forward() -> None:
    once, twice = (estimate_phase(asked(accumulation=times), "forward")["gradients"] for times in (1, 2))
    assert (once, twice) == (0, 4 * P)


def test_the_host_takes_weights_gradients_and_states_of_all_cards_together() -> None:
    found = estimate(asked(offload=True, cards=4, sharding="zero2"))
    assert found.host_bytes == 16 * P


def test_checkpointing_keeps_a_layers_input_and_one_layer_at_a_time() -> None:
    request = asked(batch_size=4, sequence_length=128, gradient_checkpointing=True)
    boundary, each = 4 * 128 * 768 * 4, estimate(request).layers_bytes[0]
    outer = estimate_phase(request, "forward")["activations"] - 12 * boundary
    assert estimate_phase(request, "backward")["activations"] == outer + 12 * boundary + each


def traced(peak: int) -> Traced:
    row = {
        "batch": 1, "phases": {"forward": peak // 2, "optimizer": peak}, "weights_bytes": 4 * P, "gradients_bytes": 4 * P,
        "after_step_bytes": 12 * P, "after_forward_bytes": 13 * P, "parameters": P, "trainable": P, "layers_bytes": [], "attention": "sdpa",
    }  # fmt: skip
    return Traced((row,), "fake")


@pytest.mark.parametrize(
    ("changes", "saved"),
    [
        pytest.param(
            {"cards": 4, "sharding": "zero1"}, 6 * P, id="ZeRO-1 takes three quarters of 8 bytes off"
        ),
        pytest.param({"cards": 4, "sharding": "zero2"}, 9 * P, id="ZeRO-2 three of 4 more"),
        pytest.param({"cards": 4, "sharding": "ddp"}, -4 * P, id="DDP adds its buckets"),
    ],
)
def test_a_traced_run_on_several_cards_is_the_trace_less_what_they_share(changes: dict[str, Any], saved: int) -> None:  # fmt: skip
    alone = as_estimate(asked(), traced(16 * P))
    shared = as_estimate(asked(**changes), traced(16 * P))
    assert alone.allocated_bytes == 16 * P
    assert alone.allocated_bytes - shared.allocated_bytes == pytest.approx(saved, abs=4)
    assert sum(one.size_bytes for one in shared.parts) == shared.peak_bytes


def test_a_cpu_holds_the_interpreter_and_what_its_allocator_keeps_in_place_of_a_context() -> None:
    cpu, card = estimate(asked(device="cpu")), estimate(asked())
    assert part(cpu, "process") == 500 * MIB
    assert part(cpu, "context") == part(card, "process") == 0
    assert part(card, "context") == 540 * MIB
    assert part(estimate(asked(cards=2)), "context") == 840 * MIB


@pytest.mark.parametrize("checkpointed", [False, True])
def test_under_zero3_no_16_bit_copy_outlives_its_layer(checkpointed: bool) -> None:
    """Of BERT's 12 layers two are gathered; the copies of the other ten are not there."""
    asks = [
        asked(precision="bf16", cards=4, sharding=stage, gradient_checkpointing=checkpointed)
        for stage in ("zero2", "zero3")
    ]
    whole, sharded = (phase_parts(one, shape_of(one.config, one.task, one.num_labels)) for one in asks)
    assert whole["forward"]["workspace"] - sharded["forward"]["workspace"] == 2 * 10 * LAYER
    if not checkpointed:
        assert whole["backward"]["workspace"] - sharded["backward"]["workspace"] == 2 * 10 * LAYER


def test_seventy_billion_fit_on_many_cards() -> None:
    """16 bytes a parameter over 1,024 cards are 1.1 GB; what is left is a few layers, the vocabulary and one sequence."""
    config = {
        "model_type": "llama", "vocab_size": 128256, "tie_word_embeddings": False, "hidden_size": 8192,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,
    }  # fmt: skip
    found = estimate(
        MemoryRequest(config=config, task="causal-lm", precision="bf16", batch_size=1, sequence_length=2048,
                      gradient_checkpointing=True, sharding="zero3", cards=1024)
    )  # fmt: skip
    assert 16 * found.parameters / 1024 < found.peak_bytes < 40 * 2**30
