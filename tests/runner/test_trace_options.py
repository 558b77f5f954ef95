"""What a profile can say, in both ways of predicting: the arithmetic beside the walked model, for each setting. One process walks all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import runner.child
from doctor.exact_memory import REQUEST_FIELDS
from runner.estimate import MemoryRequest, estimate
from runner.sections import FreezeRule

CHILD = Path(next(iter(runner.child.__path__)))
BERT = {
    "model_type": "bert",
    "hidden_size": 256,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
LLAMA = {
    "model_type": "llama", "vocab_size": 8000, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 704, "tie_word_embeddings": False,
}  # fmt: skip
EVERY = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def frozen(*patterns: str) -> tuple[FreezeRule, ...]:
    return tuple(FreezeRule(parameters=pattern) for pattern in patterns)


LOWER = frozen("bert.embeddings.*", "bert.encoder.layer.[0-3].*")
CASES: dict[str, dict[str, Any]] = {
    "embeddings frozen": {"freeze": frozen("bert.embeddings.*")},
    "embeddings and four layers frozen": {"freeze": LOWER},
    "the same in bf16": {"freeze": LOWER, "precision": "bf16"},
    "upper layers frozen": {"freeze": frozen("bert.encoder.layer.[3-5].*")},
    "frozen until update 9": {"freeze": (FreezeRule(parameters="bert.*", until=9),)},
    "Llama's lower layers frozen": {"config": LLAMA, "freeze": frozen("model.embed_tokens.*", "model.layers.[0-3].*")},
    "adapters": {"lora_rank": 8},
    "adapters on every layer": {"lora_rank": 8, "lora_targets": ("all-linear",)},
    "adapters with dropout": {"lora_rank": 8, "lora_dropout": 0.1},
    "Llama, adapters on seven layers": {"config": LLAMA, "task": "causal-lm", "lora_rank": 16, "lora_targets": EVERY, "precision": "bf16"},
    "the same with dropout": {"config": LLAMA, "task": "causal-lm", "lora_rank": 16, "lora_targets": EVERY, "lora_dropout": 0.05, "precision": "bf16"},
    "states on the host": {"offload": True},
    "parameters on the host": {"offload_parameters": True, "gradient_checkpointing": True},
    "Llama's parameters on the host, bf16": {"config": LLAMA, "task": "causal-lm", "offload_parameters": True, "gradient_checkpointing": True, "precision": "bf16"},
}  # fmt: skip
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import trace_memory
trace_memory.quiet(__import__("transformers"))
for request in json.load(sys.stdin):
    found = trace_memory.trace(request, request["batch_sizes"][0])
    found.pop("segments")
    print(json.dumps(found), flush=True)
"""


def request_of(name: str) -> MemoryRequest:
    return MemoryRequest(**{"config": BERT, "batch_size": 32, "sequence_length": 128, **CASES[name]})


@pytest.fixture(scope="module")
def walked() -> dict[str, dict[str, Any]]:
    questions = [
        {field: getattr(request_of(name), field) for field in REQUEST_FIELDS}
        | {"batch_sizes": [32], "mode": "fake", "offload_code": str(CHILD.parent / "offload.py")}
        for name in CASES
    ]
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(CHILD)], input=msgspec.json.encode(questions).decode(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(CASES), done.stderr[-2000:]
    return dict(zip(CASES, rows, strict=True))


@pytest.mark.train
@pytest.mark.parametrize("name", CASES)
def test_the_arithmetic_of_a_setting_is_within_fifteen_percent_of_the_walked_model(
    name: str, walked: dict[str, dict[str, Any]]
) -> None:
    counted = estimate(request_of(name))
    assert counted.allocated_bytes == pytest.approx(walked[name]["peak_bytes"], rel=0.15)
    if not request_of(
        name
    ).lora_rank:  # peft trains a classifier's head, our stand-in leaves BERT's pooler out
        assert counted.trainable == pytest.approx(walked[name]["trainable"], rel=0.001)


@pytest.mark.train
def test_parameters_on_the_host_leave_next_to_nothing_of_them_on_the_card(
    walked: dict[str, dict[str, Any]],
) -> None:
    states, parameters = walked["states on the host"], walked["parameters on the host"]
    assert parameters["after_step_bytes"] < 0.05 * states["after_step_bytes"]
    assert states["after_step_bytes"] == pytest.approx(4 * states["parameters"], rel=0.05)
