"""The exact prediction: the model's own code walked with fake tensors, in a child, and what comes of it when that fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.exact_memory import Traced, as_estimate, trace
from doctor.memory_troubles import NoTrace
from runner.estimate import MemoryRequest, estimate

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", "vocab_size": 2000, **SMALL},
    "deberta-v2": {
        "model_type": "deberta-v2", "vocab_size": 2000, "relative_attention": True, "position_buckets": 32,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
        "position_biased_input": False, "max_relative_positions": -1, **SMALL,
    },
    "modernbert": {"model_type": "modernbert", "vocab_size": 2000, **SMALL},
    "gpt2": {"model_type": "gpt2", "vocab_size": 2000, "n_embd": 64, "n_layer": 2, "n_head": 2},
    "llama": {"model_type": "llama", "vocab_size": 2000, "num_key_value_heads": 1, **SMALL},
}  # fmt: skip


def asked(model: str = "bert", **changes: Any) -> MemoryRequest:
    task = "causal-lm" if model in ("gpt2", "llama") else "classification"
    return MemoryRequest(
        **{"config": CONFIGS[model], "task": task, "batch_size": 8, "sequence_length": 64, **changes}
    )


def traced(request: MemoryRequest, **options: Any) -> Traced:
    return trace(request, sys.executable, os.environ, Path.cwd(), **options)


@pytest.mark.train
@pytest.mark.parametrize("model", sorted(CONFIGS))
def test_a_known_family_is_walked_and_the_arithmetic_agrees(model: str) -> None:
    request = asked(model, batch_size=16, sequence_length=128, precision="bf16")
    found = traced(request, with_line=False)
    assert found.mode == "fake", found.why_real
    exact, counted = as_estimate(request, found), estimate(request)
    assert exact.parameters == counted.parameters
    assert exact.trainable == counted.trainable
    assert counted.allocated_bytes == pytest.approx(exact.allocated_bytes, rel=0.15)
    assert sum(part.size_bytes for part in exact.parts) == exact.peak_bytes


@pytest.mark.train
def test_the_peak_of_another_batch_is_on_the_line_through_two() -> None:
    request = asked(batch_size=8, sequence_length=256)
    line = traced(request)
    doubled = asked(batch_size=16, sequence_length=256)
    measured = as_estimate(doubled, traced(doubled, with_line=False))
    assert as_estimate(doubled, line).peak_bytes == pytest.approx(measured.peak_bytes, rel=0.02)


@pytest.mark.train
def test_checkpointing_keeps_less_and_lora_trains_less() -> None:
    plain = as_estimate(asked(sequence_length=256), traced(asked(sequence_length=256), with_line=False))
    less = asked(sequence_length=256, gradient_checkpointing=True)
    assert as_estimate(less, traced(less, with_line=False)).allocated_bytes < plain.allocated_bytes
    adapters = asked(sequence_length=256, lora_rank=4)
    found = as_estimate(adapters, traced(adapters, with_line=False))
    assert found.trainable < 0.2 * plain.trainable
    assert found.allocated_bytes < plain.allocated_bytes


@pytest.mark.train
def test_small_real_steps_give_the_peaks_of_fake_ones() -> None:
    from doctor.exact_memory import _ask

    request = asked(
        device="cpu", optimizer="adamw-loop", config={**CONFIGS["bert"], "attention_probs_dropout_prob": 0.0}
    )
    rows = {
        mode: _ask(request, (1, 2), mode, sys.executable, os.environ, Path.cwd(), 60.0)[0]
        for mode in ("fake", "real")
    }
    assert [row["phases"] for row in rows["real"]] == [row["phases"] for row in rows["fake"]]


@pytest.mark.train
def test_a_model_that_nothing_can_build_is_said_with_the_librarys_words() -> None:
    with pytest.raises(NoTrace) as caught:
        traced(asked(config={"model_type": "no-such-model"}))
    assert "no-such-model" in str(caught.value)


def test_an_interpreter_without_transformers_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(NoTrace) as caught:
        trace(asked(), str(bare), {}, tmp_path)
    assert "No module named" in str(caught.value)
    assert str(bare) in str(caught.value)


def test_a_child_that_hangs_is_ended_at_its_limit(tmp_path: Path) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(NoTrace) as caught:
        trace(asked(), str(slow), dict(os.environ), tmp_path, limit_s=0.3)
    assert "0.3" in str(caught.value)


def test_each_phase_has_its_own_line_and_the_largest_counts() -> None:
    rows = tuple({"batch": batch, "phases": {"forward": 10 * batch, "optimizer": 100}} for batch in (4, 8))
    found = Traced(rows, "fake")
    assert found.phases(2) == {"forward": 20, "optimizer": 100}
    assert found.phases(20) == {"forward": 200, "optimizer": 100}


def test_a_model_that_needs_what_was_left_out_is_walked_with_everything_before_any_real_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_for: list[tuple[str, bool]] = []

    def ask(_: Any, sizes: Any, mode: str, *__: Any) -> tuple[list[dict[str, Any]], str]:
        lean = bool(__[-1]) if len(__) == 5 else False
        asked_for.append((mode, lean))
        return ([], "ImportError") if lean else ([{"batch": size, "phases": {}} for size in sizes], "")

    monkeypatch.setattr("doctor.exact_memory._ask", ask)
    assert traced(asked()).mode == "fake"
    assert asked_for == [("fake", True), ("fake", False)]
