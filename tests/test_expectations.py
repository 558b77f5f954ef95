"""What a run is expected to take, from its plan: the model's operations, whatever is recomputed on the way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from doctor import service
from doctor.expectations import expected_of
from runner.plan import encode_plan
from runner.rundir import RunDir

ROOT = Path(__file__).parent.parent
RTX_4090 = ROOT / "tests/machines/healthy-4090-runpod.json"
PROFILE = """
[run]
name = "plain"
[model]
config = {model_type = "bert", hidden_size = 256, num_hidden_layers = 4, num_attention_heads = 4, intermediate_size = 1024}
[data]
train = "train.csv"
[train]
max_length = 128
"""


def flops_per_token(folder: Path, *overrides: str) -> float:
    folder.mkdir()
    (folder / "plain.toml").write_text(PROFILE)
    (folder / "train.csv").write_text("text,label\nyes,1\n")
    planned = service.plan_run(str(folder / "plain.toml"), overrides, snapshot=service.load(RTX_4090))
    run = RunDir(folder)
    run.plan.write_bytes(encode_plan(planned.plan))
    shutil.copy(RTX_4090, run.snapshot)
    found = expected_of(run)
    assert found.flops_per_token is not None, found.why
    return found.flops_per_token


def test_recomputation_does_not_raise_a_runs_utilisation(tmp_path: Path) -> None:
    kept = flops_per_token(tmp_path / "kept")
    recomputed = flops_per_token(tmp_path / "recomputed", "model.gradient_checkpointing=true")
    assert recomputed == pytest.approx(kept)
