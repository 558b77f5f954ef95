"""The loop on a real card: precision by capability, clocks, and continuing to the bit with deterministic
kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.plan import MachineFacts
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import events, final_hash, make_run, outcome, train

pytestmark = [pytest.mark.train, pytest.mark.gpu]


@pytest.fixture
def card() -> MachineFacts:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no usable NVIDIA GPU here")
    major, minor = torch.cuda.get_device_capability(0)
    return MachineFacts(
        device="cuda",
        compute_capability=f"{major}.{minor}",
        gpu_name=torch.cuda.get_device_name(0),
        gpu_count=torch.cuda.device_count(),
        cpu_cores_usable=4,
        torch_version=torch.__version__,
    )


@pytest.mark.parametrize("precision", ["auto", "fp16", "fp32"])
def test_a_run_learns_on_the_card(card: MachineFacts, tmp_path: Path, precision: str) -> None:
    run = make_run(tmp_path, [f"train.precision={precision}", "train.epochs=4"], machine=card)
    assert train(run) == 0, outcome(run)
    assert events(run, "run-started")[0].data["device"] == card.gpu_name
    assert events(run, "evaluation")[-1].data["accuracy"] > 0.9
    for event in events(run, "step"):
        assert 0 < sum(event.data["split"].values()) <= event.data["seconds"] * 1.5


@pytest.mark.parametrize("precision", ["auto", "fp16"])
def test_stopped_and_resumed_equals_never_stopped_on_the_card(
    card: MachineFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    overrides = [f"train.precision={precision}", "train.deterministic=true", "train.workers=2"]
    whole, parts = (make_run(tmp_path, overrides, name, machine=card) for name in ("whole", "parts"))
    assert train(whole) == 0, outcome(whole)
    assert train(parts, stop=StopAfter(14)) == 143
    assert train(parts, resume=True) == 0
    assert final_hash(parts) == final_hash(whole)
