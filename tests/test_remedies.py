"""What to turn on until it fits: six scenes as users meet them, each with the fewest steps, in order, and with its price."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.card_state import CardState
from doctor.memory_plan import Remedy
from doctor.model_config import find_config
from doctor.remedies import remedies
from runner.estimate import MemoryRequest, estimate

GIB = 1 << 30
NOWHERE = Path("/nonexistent")
RTX_3060 = CardState(
    name="NVIDIA GeForce RTX 3060", total_bytes=12 * GIB, free_bytes=12 * GIB, compute_capability="8.6"
)
RTX_4090 = CardState(
    name="NVIDIA GeForce RTX 4090", total_bytes=24 * GIB, free_bytes=24 * GIB, compute_capability="8.9"
)
T4 = CardState(name="Tesla T4", total_bytes=15 * GIB, free_bytes=15 * GIB, compute_capability="7.5")
CPU = CardState(name="CPU", total_bytes=2 * GIB, free_bytes=2 * GIB, has_bf16=True)
OLD_CPU = CardState(name="CPU", total_bytes=4 * GIB, free_bytes=4 * GIB)
SMALL = CardState(
    name="NVIDIA GeForce GTX 1650", total_bytes=4 * GIB, free_bytes=4 * GIB, compute_capability="7.5"
)


def asked(model: str, **changes: Any) -> MemoryRequest:
    return MemoryRequest(config=find_config(model, NOWHERE).config, **changes)


SCENES = [
    pytest.param(
        asked("bert-large-uncased", batch_size=32, sequence_length=512, optimizer="adamw-foreach"), RTX_3060,
        [{"precision": "bf16"}, {"batch_size": 8, "accumulation": 4}], True, id="RTX 3060 and BERT-large 32 x 512"),
    pytest.param(
        asked("llama-3.2-1b", task="causal-lm", batch_size=8, sequence_length=2048, precision="bf16", lora_rank=8), RTX_4090,
        [{"batch_size": 2, "accumulation": 4}], True, id="RTX 4090 and Llama 1B with LoRA"),
    pytest.param(
        asked("roberta-large", batch_size=32, sequence_length=256), T4, [{"precision": "fp16"}], True, id="a T4 has no bf16"),
    pytest.param(
        asked("bert-base", batch_size=32, sequence_length=256, device="cpu"), CPU,
        [{"precision": "bf16"}, {"batch_size": 4, "accumulation": 8}, {"lora_rank": 8}], True, id="a CPU with 2 GB"),
    pytest.param(
        asked("bert-base", batch_size=32, sequence_length=256, device="cpu"), OLD_CPU,
        [{"batch_size": 4, "accumulation": 8}], True, id="a CPU without bf16 is not slowed down by it"),
    pytest.param(
        asked("llama-3.2-1b", task="causal-lm", batch_size=4, sequence_length=1024, precision="bf16", cards=2), RTX_4090,
        [{"sharding": "zero1"}, {"gradient_checkpointing": True}], True, id="two cards"),
    pytest.param(
        asked("llama-3.1-8b", task="causal-lm", batch_size=8, sequence_length=4096, precision="bf16"), SMALL,
        [{"batch_size": 1, "accumulation": 8}, {"gradient_checkpointing": True}, {"optimizer": "adamw-8bit"}, {"lora_rank": 8}], False,
        id="nothing makes it fit"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "card", "steps", "fits"), SCENES)
def test_the_advice_of_a_scene(
    request_: MemoryRequest, card: CardState, steps: list[dict[str, Any]], fits: bool
) -> None:
    found = list(remedies(request_, card))
    assert [one.changes for one in found] == steps
    assert found[-1].fits is fits


def after(request: MemoryRequest, found: list[Remedy]) -> MemoryRequest:
    import msgspec

    for remedy in found:
        request = msgspec.structs.replace(request, **remedy.changes)
    return request


@pytest.mark.parametrize(("request_", "card", "steps", "fits"), SCENES)
def test_it_adds_up_and_no_step_can_be_left_out(
    request_: MemoryRequest, card: CardState, steps: list[dict[str, Any]], fits: bool
) -> None:
    found = list(remedies(request_, card))
    assert estimate(after(request_, found)).peak_bytes == found[-1].peak_bytes
    assert estimate(request_).peak_bytes - sum(one.saved_bytes for one in found) == found[-1].peak_bytes
    costly = [
        one for one in found if "precision" not in one.changes and one.changes.get("sharding") != "zero1"
    ]
    for left_out in costly if fits else []:
        rest = [one for one in found if one is not left_out]
        assert estimate(after(request_, rest)).peak_bytes > card.free_bytes


def test_every_step_but_the_last_does_not_fit_yet() -> None:
    found = list(remedies(SCENES[3].values[0], CPU))  # type: ignore[arg-type]
    assert [one.fits for one in found] == [False, False, True]


def test_a_measured_factor_moves_the_advice() -> None:
    request = asked("bert-base", batch_size=32, sequence_length=512, precision="bf16")
    peak = estimate(request).peak_bytes
    card = CardState(name=RTX_4090.name, total_bytes=24 * GIB, free_bytes=peak, compute_capability="8.9")
    assert list(remedies(request, card)) == []
    assert list(remedies(request, card, factor=1.2))[-1].fits


def test_time_is_foretold_by_the_roofline_or_not_at_all() -> None:
    found = list(
        remedies(
            asked("llama-3.2-1b", task="causal-lm", batch_size=8, sequence_length=2048, precision="bf16"),
            RTX_4090,
        )
    )
    by_change = {next(iter(one.changes)): one.time_factor for one in found}
    assert by_change["gradient_checkpointing"] == pytest.approx(4 / 3, rel=0.1)
    sharded = next(remedies(SCENES[5].values[0], RTX_4090))  # type: ignore[arg-type]
    assert sharded.time_factor is None
