"""What holds for every machine: no check breaks, answers repeat, evidence can be looked up, newer never gets worse."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.checks import facts_at
from doctor.judge import judge
from doctor.model import (
    SECTIONS,
    Container,
    Driver,
    Environment,
    Facts,
    FoundLibrary,
    Gpu,
    GpuProcesses,
    Gpus,
    Host,
    KernelLog,
    Libraries,
    Packages,
    Platform,
    Processes,
    Python,
    Reading,
    Snapshot,
    Torch,
    ok,
    t,
)
from tests.checks.gpu_box import cards, driver
from tests.checks.judged import loud, said, torch

ODD = st.sampled_from([
    "", "550.90.07", "470.57.02", "640.1", "12.4", "13.0", "2.6.0+cu124", "2.11.0", "8.9", "14.0", "sm_90", "compute_120",
    "NVIDIA GeForce RTX 4090", "Tesla V100", "-1", "0,9", "MIG-a,MIG-b", "/usr/local/cuda/compat/libcuda.so.1", "libcudnn.so.9",
    "NVRM: Xid (PCI:0000:01:00): 79, x", "nvidia-cudnn-cu12", "torch", "\x1b[31mred\x1b[0m", "版本", "{name}", "a.b.c", "\udce9",
])  # fmt: skip
TEXTS = ODD | st.text(max_size=12)
NUMBERS = st.integers(-1, 1 << 40)


def values_for(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's type, odd ones included."""
    origin, arguments = getattr(hint, "__origin__", None), get_args(hint)
    if hint is str:
        return TEXTS
    if hint is bool:
        return st.booleans()
    if hint is int:
        return NUMBERS
    if hint is float:
        return st.floats(0, 1e6)
    if origin is tuple:
        return st.lists(values_for(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXTS, values_for(arguments[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return records(hint)
    if arguments:
        return st.one_of([st.none() if one is type(None) else values_for(one) for one in arguments])
    return st.none()


def records(kind: Any) -> st.SearchStrategy[Any]:
    """Return records of ``kind`` with some of their fields filled."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "unread"}
    required = {name for name in hints if name in _required(kind)}
    return st.fixed_dictionaries(
        {name: values_for(hints[name]) for name in required},
        optional={name: values_for(hint) for name, hint in hints.items() if name not in required},
    ).map(lambda fields: kind(**fields))


def _required(kind: Any) -> set[str]:
    return {field.name for field in msgspec.structs.fields(kind) if field.required}


OURS = (
    "host", "container", "platform", "driver", "gpus", "gpu_processes", "kernel_log", "python", "packages", "torch",
    "libraries", "environment", "processes",
)  # fmt: skip


def readings(section: str) -> st.SearchStrategy[Reading[Any]]:
    failed: st.SearchStrategy[Reading[Any]] = st.just(Reading(status="failed", why=t("no answer")))
    absent: st.SearchStrategy[Reading[Any]] = st.just(Reading(status="absent"))
    return st.one_of(records(SECTIONS[section]).map(ok), st.just(Reading(status="skipped")), failed, absent)


MACHINES = st.fixed_dictionaries({name: readings(name) for name in OURS}).map(
    lambda sections: Snapshot(facts=Facts(**sections))
)
CALMLY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@CALMLY
@given(MACHINES)
def test_no_machine_breaks_a_check(machine: Snapshot) -> None:
    assert judge(machine).crashed == ()


@CALMLY
@given(MACHINES)
def test_the_same_machine_gets_the_same_answer(machine: Snapshot) -> None:
    assert judge(machine) == judge(machine)


@pytest.mark.parametrize("section", OURS)
def test_what_could_not_be_read_is_never_called_passed(section: str) -> None:
    machine = Snapshot(facts=Facts(**{section: Reading(status="failed", why=t("no answer"))}))
    report = judge(machine)
    needing = {name for one in report.unanswered for name in one.checks}
    assert not needing & set(report.passed)


VERSIONS = st.tuples(st.integers(390, 720), st.integers(0, 200), st.integers(0, 20)).map(
    lambda parts: "{}.{:02d}.{:02d}".format(*parts)
)
BUILDS = st.sampled_from(
    ["1.12.0+cu102", "1.13.1+cu117", "2.3.1+cu121", "2.7.1+cu118", "2.9.0+cu128", "2.15.0+cu132"]
)


@CALMLY
@given(VERSIONS, VERSIONS, BUILDS)
def test_a_newer_driver_never_adds_driver_too_old(one: str, other: str, build: str) -> None:
    older, newer = sorted((one, other), key=lambda version: [int(part) for part in version.split(".")])
    given_newer = said(driver=driver(newer), torch=torch(build), gpus=cards("Tesla T4", "7.5"))
    if "driver-too-old-for-torch-cuda" in given_newer:
        given_older = said(driver=driver(older), torch=torch(build), gpus=cards("Tesla T4", "7.5"))
        assert "driver-too-old-for-torch-cuda" in given_older


@CALMLY
@given(
    BUILDS,
    st.sets(
        st.sampled_from(["sm_70", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_90"]), min_size=1
    ),
)
def test_more_architectures_never_add_a_missing_one(build: str, arches: set[str]) -> None:
    own = Torch(version=build, cuda="12.4", arch_list=tuple(sorted(arches)))
    more = msgspec.structs.replace(own, arch_list=(*own.arch_list, "sm_75") if own.arch_list else ("sm_75",))
    facts = {"gpus": cards("NVIDIA H200", "9.0"), "driver": driver("570.124.06", "12.8")}
    if "gpu-arch-not-in-torch-build" in said(torch=more, **facts):
        assert "gpu-arch-not-in-torch-build" in said(torch=own, **facts)


@pytest.mark.parametrize("arches", [None, ("sm_90", "sm_140"), ("sm_140f", "compute_140")])
def test_a_machine_of_the_future_has_nothing_above_note(arches: tuple[str, ...] | None) -> None:
    future = {
        "host": Host(kernel="9.1.0", glibc="2.58", uid=0, capabilities_effective=0xA80425FB),
        "container": Container(inside=True, host_pid_namespace=False),
        "platform": Platform(name="a cloud of the future"),
        "driver": driver("720.11.03", "16.2", kernel_module_version="720.11.03", nvml_error=0, cuda_init_error=0),
        "gpus": cards("NVIDIA X9000", "14.3", 2, memory_total_bytes=1 << 40, memory_used_bytes=1 << 29),
        "gpu_processes": GpuProcesses(),
        "kernel_log": KernelLog(lines=("NVRM: Xid (PCI:0000:01:00): 412, something new",)),
        "python": Python(version="3.19.0"),
        "packages": Packages(complete=False),
        "torch": Torch(version="5.2.0+cu160", cuda="16.0", arch_list=arches),
        "libraries": Libraries(items=(FoundLibrary(soname="libcudnn.so.11", path="/x/libcudnn.so.11", version="11.2", found_by="LD_LIBRARY_PATH"),)),
        "environment": Environment(variables={"LD_LIBRARY_PATH": "/x", "CUDA_VISIBLE_DEVICES": "0,1"}),
        "processes": Processes(),
    }  # fmt: skip
    assert loud(**future) == {}
    assert said(**future)["driver-unknown-to-this-version"] == "note"


def test_every_piece_of_evidence_can_be_looked_up() -> None:
    sick = Facts(
        driver=ok(Driver(version="470.1", cuda_version="11.4", kernel_module_version="460.1", cuda_init_error=802, nvswitch=True, device_nodes={"/dev/nvidia0": "EPERM"})),
        gpus=ok(Gpus(items=(Gpu(index=0, name="NVIDIA GeForce RTX 4090", compute_capability="8.9", throttle_reasons=("hw-thermal",), memory_total_bytes=24 << 30, memory_used_bytes=20 << 30, power_limit_w=200.0, power_default_limit_w=450.0, unread={"utilization_pct": "Not Supported"}), Gpu(index=1, name="NVIDIA GeForce RTX 4090", compute_capability="8.9", error="GPU is lost")))),
        container=ok(Container(inside=True, host_pid_namespace=False)),
        gpu_processes=ok(GpuProcesses()),
        host=ok(Host(capabilities_effective=0, services={"nvidia-fabricmanager": "failed"})),
        torch=ok(torch("2.9.0+cu128")),
        kernel_log=ok(KernelLog(lines=("NVRM: Xid (PCI:0000:01:00): 79, x", "NVRM: Xid (PCI:0000:01:00): 31, x", "pcieport AER: Corrected error"))),
        environment=ok(Environment(variables={"CUDA_VISIBLE_DEVICES": "9", "LD_LIBRARY_PATH": "/x"})),
        platform=ok(Platform(name="runpod", gpus_rented=4)),
    )  # fmt: skip
    found = judge(Snapshot(facts=sick)).findings()
    assert len(found) > 10
    for finding in found:
        for row in finding.evidence:
            facts_at(sick, row.fact)
