"""What was measured here: kept by model, card, torch and way of training, laid over later plans, and over no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.corrected import corrected, scaled_peak
from doctor.corrections import (
    Measurement,
    Point,
    Tuned,
    correction_for,
    key_of,
    read_kept,
    remember,
    tuned_for,
)
from runner.estimate import MemoryRequest, estimate

MB = 1 << 20
BERT = {"model_type": "bert"}
CARD, TORCH = "NVIDIA GeForce RTX 4090", "2.13.0+cu126"


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(
        **{"config": BERT, "batch_size": 16, "sequence_length": 128, "precision": "bf16", **changes}
    )


def measurement(*pairs: tuple[int, int], **changes: Any) -> Measurement:
    """A measurement of (foretold, measured) MB at growing batch."""
    points = tuple(
        Point(batch=1 << index, length=128, predicted_bytes=foretold * MB, measured_bytes=measured * MB)
        for index, (foretold, measured) in enumerate(pairs)
    )
    return Measurement(
        key=key_of(asked(**changes), CARD, TORCH), at="2026-11-30T10:00:00+00:00", points=points
    )


def tuned(batch: int, length: int, **changes: Any) -> Tuned:
    key = key_of(asked(**changes), CARD, TORCH)
    return Tuned(key=key, at="2026-11-30T10:00:00+00:00", length=length, batch=batch, process_bytes=1, limit_bytes=2, complete=True)  # fmt: skip


def test_the_ratio_is_that_of_the_largest_point_and_the_error_how_far_the_large_ones_lie_apart() -> None:
    found = measurement((100, 90), (600, 660), (1000, 1200))
    assert found.ratio == pytest.approx(1.2)
    assert found.error == pytest.approx(1 - 1.1 / 1.2)


def test_a_single_point_is_not_taken_for_exact() -> None:
    assert measurement((1000, 1100)).error == pytest.approx(0.03)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_corrected_plan_adds_up_and_its_tensors_are_the_measured_share(device: str) -> None:
    request = asked(device=device)
    before = estimate(request)
    after = corrected(before, request, measurement((1000, 1200)))
    assert sum(part.size_bytes for part in after.parts) == after.peak_bytes
    assert after.allocated_bytes == round(1.2 * before.allocated_bytes)
    assert after.low_bytes < after.peak_bytes < after.high_bytes
    (why,) = [str(part.why) for part in after.parts if part.name == "correction"]
    assert "120 %" in why and CARD in why and TORCH in why and "2026-11-30" in why


def test_a_corrected_range_is_narrower_than_arithmetics() -> None:
    request = asked()
    before, after = estimate(request), corrected(estimate(request), request, measurement((1000, 1000)))
    assert after.high_bytes - after.low_bytes < before.high_bytes - before.low_bytes


def test_neighbours_are_foretold_by_the_same_share() -> None:
    request = asked()
    found = estimate(request)
    assert scaled_peak(request, 1.0) == found.peak_bytes
    assert scaled_peak(request, 1.5) == found.peak_bytes + round(0.5 * found.allocated_bytes)


def test_what_was_kept_is_read_back_and_the_newest_of_a_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "doctor" / "memory.json"
    remember(path, measurement((1000, 1100)))
    remember(path, measurement((1000, 1300)))
    remember(path, tuned(24, 128))
    kept, trouble = read_kept(path)
    assert trouble is None
    found = correction_for(kept, key_of(asked(), CARD, TORCH))
    assert found is not None and found.ratio == pytest.approx(1.3)
    assert len(kept.measured) == 1
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("card", "torch", "changes"),
    [
        pytest.param("NVIDIA A10", TORCH, {}, id="another card"),
        pytest.param(CARD, "2.12.0+cu126", {}, id="another torch"),
        pytest.param(CARD, TORCH, {"precision": "fp32"}, id="another precision"),
        pytest.param(CARD, TORCH, {"gradient_checkpointing": True}, id="with checkpointing"),
        pytest.param(CARD, TORCH, {"config": {**BERT, "num_hidden_layers": 6}}, id="a shallower model"),
        pytest.param(CARD, TORCH, {"lora_rank": 8}, id="adapters only"),
    ],
)
def test_a_measurement_speaks_for_nothing_else(
    card: str, torch: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    remember(tmp_path / "memory.json", measurement((1000, 1300)))
    kept, _ = read_kept(tmp_path / "memory.json")
    assert correction_for(kept, key_of(asked(**changes), card, torch)) is None


def test_names_and_weights_take_no_part_in_what_a_model_is() -> None:
    named = asked(config={**BERT, "_name_or_path": "bert-base-uncased", "transformers_version": "5.24.0"})
    assert key_of(named, CARD, TORCH) == key_of(asked(), CARD, TORCH)


def test_a_file_that_cannot_be_read_is_said_and_nothing_is_taken_from_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text('{"measured": 7}')
    kept, trouble = read_kept(path)
    assert kept.measured == []
    assert trouble is not None and str(path) in str(trouble)


def test_no_file_is_no_trouble(tmp_path: Path) -> None:
    assert read_kept(tmp_path / "memory.json")[1] is None


@pytest.mark.parametrize(
    ("length", "accumulated", "batch"),
    [
        pytest.param(128, 1, 40, id="as long"),
        pytest.param(100, 1, 40, id="shorter ones take less"),
        pytest.param(256, 1, 20, id="longer than the one, as long as the other"),
        pytest.param(512, 1, None, id="longer than any that was tried"),
        pytest.param(100, 2, 20, id="in parts: only what was tried in parts"),
    ],
)
def test_a_tuned_batch_is_taken_where_it_was_the_worse_case(
    length: int, accumulated: int, batch: int | None
) -> None:
    tried = [tuned(40, 128), tuned(20, 256, accumulation=2)]
    found = tuned_for(tried, key_of(asked(accumulation=accumulated), CARD, TORCH), length)
    assert (found.batch if found else None) == batch


def test_a_measurement_survives_json() -> None:
    found = measurement((1000, 1100))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Measurement) == found
