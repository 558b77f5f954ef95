"""What the deep check says: certain where it is certain, and under its cause where that is known."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.judge import judge
from doctor.model import Deep, DeepDevice, DeepStep, Facts, Gpus, Reading, Snapshot, Workload, ok
from tests.checks.gpu_box import cards, driver
from tests.checks.judged import said, the, torch

A100 = DeepDevice(index=0, name="NVIDIA A100", compute_capability="8.0")
T4 = DeepDevice(index=0, name="Tesla T4", compute_capability="7.5")


def step(name: str, subject: str, status: Any = "ok", detail: str = "", seconds: float = 1.0) -> DeepStep:
    return DeepStep(name=name, subject=subject, status=status, detail=detail, seconds=seconds)


def deep(*steps: DeepStep, **fields: Any) -> Deep:
    return Deep(steps=steps, finished=True, limit_s=60, **fields)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(deep(step("import", "torch"), step("matmul", "cpu")), {}, id="all is well"),
        pytest.param(deep(not_installed=("torch",)), {}, id="no torch is no failure of this check"),
        pytest.param(deep(step("import", "torch", "failed", "OSError: x")), {"torch-import-fails": "fail"}, id="torch raises"),
        pytest.param(deep(step("import", "torch", "crashed", "SIGSEGV")), {"torch-import-fails": "fail"}, id="torch dies"),
        pytest.param(deep(step("begin", "python", "crashed", "exit status 1")), {"torch-import-fails": "fail"}, id="python dies"),
        pytest.param(deep(step("import", "torch", "timed-out")), {"deep-check-timed-out": "warn"}, id="torch hangs"),
        pytest.param(deep(step("import", "transformers", "failed", "ImportError")), {"transformers-import-fails": "fail"}, id="transformers raises"),
        pytest.param(deep(step("matmul", "cpu", "crashed", "SIGILL")), {"cpu-matmul-fails": "fail"}, id="this CPU lacks what torch uses"),
        pytest.param(deep(step("start", "cuda:0", "failed", "CUDA error: ECC")), {"gpu-matmul-fails": "fail"}, id="a card does not start"),
        pytest.param(deep(step("fp16", "cuda:0", "failed", "the result is wrong"), devices=(T4,)), {"gpu-matmul-fails": "fail"}, id="wrong in fp16"),
        pytest.param(deep(step("bf16", "cuda:0", "failed", "not implemented"), devices=(A100,)), {"gpu-matmul-fails": "fail"}, id="bf16 fails where it is promised"),
        pytest.param(deep(step("bf16", "cuda:0", "failed", "not implemented"), devices=(T4,)), {}, id="bf16 fails where nobody promised it"),
        pytest.param(deep(step("matmul", "cuda:0", "timed-out")), {"deep-check-timed-out": "warn"}, id="a card hangs"),
        pytest.param(deep(step("round-trip", "nccl", "failed", "rank 1: unhandled system error"), ranks=4), {"nccl-round-trip-fails": "fail"}, id="NCCL fails"),
        pytest.param(deep(step("round-trip", "nccl", "timed-out", "4 of 4 processes had joined"), ranks=4), {"nccl-round-trip-fails": "fail"}, id="NCCL hangs after all joined"),
        pytest.param(deep(step("round-trip", "nccl", "timed-out", "1 of 4 processes had joined"), ranks=4), {"nccl-round-trip-fails": "warn"}, id="not all had joined yet"),
        pytest.param(deep(step("round-trip", "gloo", "failed", "rank 0: no address"), ranks=2), {"nccl-round-trip-fails": "note"}, id="gloo where nobody needs it"),
    ],
)  # fmt: skip
def test_what_was_tried_is_judged(facts: Deep, expected: dict[str, str]) -> None:
    assert said(deep=facts) == expected


UNSEEN = deep(step("import", "torch"), step("see-gpus", "torch.cuda", "failed", "RuntimeError: too old"), cuda_available=False)  # fmt: skip


def test_torch_without_a_gpu_is_a_fault_only_where_there_is_one() -> None:
    assert said(deep=UNSEEN, gpus=cards())["torch-sees-no-gpu"] == "fail"
    absent: Reading[Gpus] = Reading(status="absent")
    assert "torch-sees-no-gpu" not in said(deep=UNSEEN, gpus=absent)
    assert "torch-sees-no-gpu" not in said(deep=deep(cuda_available=True), gpus=cards())


@pytest.mark.parametrize(
    ("sections", "cause"),
    [
        pytest.param({"torch": torch("2.6.0+cpu"), "driver": driver()}, "torch-cpu-only-build", id="a CPU build"),
        pytest.param({"torch": torch("2.12.0+cu130"), "driver": driver("535.54.03", "12.2")}, "driver-too-old-for-torch-cuda", id="an old driver"),
        pytest.param({"torch": torch("2.6.0+cu124"), "driver": driver(cuda_init_error=999)}, "cuda-init-fails", id="CUDA does not start"),
    ],
)  # fmt: skip
def test_the_known_cause_has_it_as_its_symptom(sections: dict[str, Any], cause: str) -> None:
    readings = {name: ok(one) for name, one in {"deep": UNSEEN, "gpus": cards(), **sections}.items()}
    diagnoses = judge(Snapshot(facts=Facts(**readings))).diagnoses
    under = {item.id for one in diagnoses if one.finding.id == cause for item in one.symptoms}
    assert "torch-sees-no-gpu" in under


@pytest.mark.parametrize(
    ("megabytes_per_s", "run_reads", "past_cache", "level"),
    [
        pytest.param(30, "/data/train", True, "warn", id="slow, and the run reads there"),
        pytest.param(30, "/other", True, "note", id="slow, and the run reads elsewhere"),
        pytest.param(30, None, True, "note", id="slow, and no run is known"),
        pytest.param(30, "/data", False, "note", id="slow through the cache is not sure"),
        pytest.param(300, "/data", True, "note", id="fast"),
    ],
)
def test_the_measured_read_speed(
    megabytes_per_s: int, run_reads: str | None, past_cache: bool, level: str
) -> None:
    measured = deep(
        step("read", "/data", seconds=5.0), read_path="/data", read_bytes=150 << 20, read_files=3,
        read_bytes_per_s=megabytes_per_s << 20, read_past_cache=past_cache,
    )  # fmt: skip
    found = the("data-read-speed", deep=measured, workload=Workload(data_path=run_reads))
    assert (found.level, found.subject) == (level, "/data")
    assert str(float(megabytes_per_s)) in str(found.title)


def test_a_few_bytes_measure_no_disk() -> None:
    little = deep(step("read", "/data", seconds=0.01), read_path="/data", read_bytes=1 << 20, read_bytes_per_s=30 << 20)  # fmt: skip
    assert said(deep=little) == {}


def test_an_out_of_memory_is_called_one() -> None:
    full = deep(step("start", "cuda:0", "failed", "OutOfMemoryError: CUDA out of memory."))
    assert "memory" in str(the("gpu-matmul-fails", deep=full).title)
