"""A plan's choices, by machine."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from runner import plan as plan_module
from runner.plan import MachineFacts, Plan, PlanError, decode_plan, encode_plan, make_plan
from runner.profile import load_profile
from runner.seeds import PURPOSES, seed_for
from tests.runner.test_profile import GOOD, written

CPU = MachineFacts(device="cpu", cpu_cores_usable=1.5, torch_version="2.13.0+cpu")


def plan_for(tmp_path: Path, machine: MachineFacts, *overrides: str) -> Plan:
    return make_plan(load_profile(written(tmp_path, GOOD), overrides), machine, "2026-11-30T00:00:00Z")


def gpu(capability: str) -> MachineFacts:
    return MachineFacts(
        device="cuda", compute_capability=capability, gpu_name="card", gpu_count=1, cpu_cores_usable=8
    )


@pytest.mark.parametrize(
    ("machine", "precision"),
    [
        pytest.param(gpu("6.1"), "fp32", id="pascal has no tensor cores"),
        pytest.param(gpu("7.0"), "fp16", id="volta emulates bf16"),
        pytest.param(gpu("7.5"), "fp16", id="turing emulates bf16"),
        pytest.param(gpu("8.0"), "bf16", id="ampere"),
        pytest.param(gpu("12.0"), "bf16", id="blackwell, not smaller than 8.0 as text would be"),
        pytest.param(gpu(""), "fp32", id="capability not read"),
        pytest.param(CPU, "fp32", id="cpu without bf16 units"),
        pytest.param(
            msgspec.structs.replace(CPU, cpu_flags=("avx512_bf16",)), "bf16", id="cpu with avx512_bf16"
        ),
    ],
)
def test_precision_follows_the_hardware(tmp_path: Path, machine: MachineFacts, precision: str) -> None:
    plan = plan_for(tmp_path, machine)
    assert plan.settings.precision == precision
    assert any(decision.name == "train.precision" and str(decision.why) for decision in plan.decisions)


def test_bf16_asked_for_on_turing_is_kept_with_a_warning(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, gpu("7.5"), "train.precision=bf16")
    why = next(str(decision.why) for decision in plan.decisions if decision.name == "train.precision")
    assert plan.settings.precision == "bf16" and "emulated" in why


@pytest.mark.parametrize(
    ("torch_version", "fused"), [("2.3.1", False), ("2.4.0", True), ("2.13.0+cpu", True), ("", False)]
)
def test_fused_adamw_on_the_cpu_needs_torch_2_4(tmp_path: Path, torch_version: str, fused: bool) -> None:
    machine = msgspec.structs.replace(CPU, torch_version=torch_version)
    assert plan_for(tmp_path, machine).settings.fused is fused


def test_what_must_be_set_before_python_is_in_the_environment(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, gpu("8.0"), "train.deterministic=true")
    assert plan.environment["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert 0 <= int(plan.environment["PYTHONHASHSEED"]) < 2**32
    assert plan_for(tmp_path, CPU).environment["OMP_NUM_THREADS"] == "1", "a quota of 1.5 cores is one thread"


def test_the_network_is_off_unless_the_profile_names_a_hub(tmp_path: Path) -> None:
    assert "HF_HUB_OFFLINE" not in plan_for(tmp_path, CPU).environment
    assert plan_for(tmp_path, CPU, "model.hub=''", "model.path=x").environment["HF_HUB_OFFLINE"] == "1"


def test_a_plan_reads_back_whole(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, gpu("8.9"))
    assert decode_plan(encode_plan(plan)) == plan
    assert plan.run_name_base == "mine"


def test_the_digest_is_of_the_numbers_not_of_the_hour(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, CPU)
    later = make_plan(plan.profile, CPU, "2027-01-01T00:00:00Z")
    assert later.digest == plan.digest != plan_for(tmp_path, CPU, "train.lr=1e-5").digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.replace(b"3e-05", b"4e-05").replace(b"0.00003", b"0.00004"), "changed after"),
        (lambda data: data[: len(data) // 2], "not a plan"),
        (lambda data: b"{}", "not a plan"),
        (lambda data: data.replace(b'"schema": 1', b'"schema": 99'), "newer"),
    ],
    ids=["a number changed", "cut in half", "empty", "of the future"],
)
def test_a_plan_that_cannot_be_trusted_is_refused(tmp_path: Path, change: object, words: str) -> None:
    data = encode_plan(plan_for(tmp_path, CPU))
    assert callable(change) and change(data) != data
    with pytest.raises(PlanError, match=words):
        decode_plan(change(data))


def test_no_two_purposes_share_a_seed() -> None:
    seeds = [
        seed_for(seed, purpose, number)
        for seed in (0, 1, 42, 43)
        for purpose in PURPOSES
        for number in range(50)
    ]
    assert len(set(seeds)) == len(seeds)
    assert seed_for(42, "order", 1) != seed_for(43, "order", 0)


def test_a_plan_written_before_a_setting_existed_is_still_read(tmp_path: Path) -> None:
    tree = json.loads(encode_plan(plan_for(tmp_path, CPU)))
    del tree["profile"]["train"]["label_smoothing"]  # as if that release had not known it
    tree["digest"] = plan_module._digest_of_tree(tree)
    assert decode_plan(json.dumps(tree)).profile.train.label_smoothing == 0.0
