"""What a step costs in operations: the model's own for its utilisation, those that are carried out for its time."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.roofline import model_flops, step_flops, step_time
from runner.estimate import MemoryRequest
from runner.model_shapes import shape_of

CONFIG = {"model_type": "bert"}
CARD = {"name": "a card", "tflops": 165.0, "bandwidth_gbs": 1008.0}


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(**{"config": CONFIG, "precision": "bf16", **changes})


def test_what_is_recomputed_is_no_work_of_the_model_and_takes_its_time_all_the_same() -> None:
    shape = shape_of(CONFIG)
    kept, recomputed = asked(), asked(gradient_checkpointing=True)
    assert model_flops(recomputed, shape) == model_flops(kept, shape) == step_flops(kept, shape)
    assert step_flops(recomputed, shape) == pytest.approx(step_flops(kept, shape) * 4 / 3, rel=0.01)
    times = [step_time(one, CARD) for one in (kept, recomputed)]
    assert times[0] is not None and times[1] is not None and times[1].compute_s > times[0].compute_s


def test_six_operations_a_parameter_and_token() -> None:
    request = asked(batch_size=1, sequence_length=8)  # so short that attention does not count
    shape = shape_of(CONFIG)
    of_layers = shape.layers * shape.layer_parameters + shape.head_parameters
    assert model_flops(request, shape) == pytest.approx(6 * of_layers * 8, rel=0.01)
