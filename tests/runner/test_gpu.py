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


FROZEN_TRUNK = 'train.freeze=[{parameters="bert.embeddings.*"}, {parameters="bert.encoder.*"}]'
TRUNK_ON_HOST = 'model.device_map={"bert.embeddings"=0, "bert.encoder"="cpu", "bert.pooler"=0, "dropout"=0, "classifier"=0}'
ELSEWHERE = {
    "AdamW's state on the host": (["train.offload=optimizer"], []),
    "parameters on the host": (["train.offload=parameters"], []),
    "spread by accelerate": (["model.device_map=auto"], []),
    "a frozen trunk on the host": ([TRUNK_ON_HOST, FROZEN_TRUNK], [FROZEN_TRUNK]),
}


@pytest.mark.parametrize(("elsewhere", "here"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_what_lies_beside_the_card_learns_as_on_it(
    card: MachineFacts, tmp_path: Path, elsewhere: list[str], here: list[str]
) -> None:
    """On another device AdamW rounds differently: the losses agree, the bits need not."""
    common = ["train.precision=fp32", "model.dropout=0.0", "train.steps=10"]
    moved = make_run(tmp_path, [*common, *elsewhere], "moved", machine=card)
    plain = make_run(tmp_path, [*common, *here], "plain", machine=card)
    assert train(moved) == 0, outcome(moved)
    assert train(plain) == 0, outcome(plain)
    for one, other in zip(events(moved, "step"), events(plain, "step"), strict=True):
        assert one.data["loss"] == pytest.approx(other.data["loss"], abs=2e-3)


def test_parameters_on_the_host_take_less_of_the_card(card: MachineFacts, tmp_path: Path) -> None:
    import torch

    wide = 'model.config={model_type="bert", hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048, max_position_embeddings=64}'
    peaks = {}
    for offload in ("none", "optimizer", "parameters"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        run = make_run(tmp_path, [wide, f"train.offload={offload}", "train.steps=4"], offload, machine=card)
        assert train(run) == 0, outcome(run)
        peaks[offload] = torch.cuda.max_memory_allocated()
    assert peaks["parameters"] < peaks["optimizer"] < peaks["none"]
