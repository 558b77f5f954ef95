"""Has torch CUDA at all, and code for the cards."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.fixes import may_fix
from doctor.model import Gpus, Host, Python, Torch
from doctor.tables.torch_builds import runs_by_ptx, runs_natively
from tests.checks.gpu_box import cards, driver, gpu
from tests.checks.judged import packages, said, the, torch, variables


@pytest.mark.parametrize(
    ("arches", "capability", "runs"),
    [
        ("sm_80", "8.6", True), ("sm_80 sm_86", "8.9", True), ("sm_86", "8.0", False), ("sm_80", "8.7", False),
        ("sm_87", "8.7", True), ("sm_80 sm_86", "9.0", False), ("sm_90", "9.0", True), ("sm_90a", "9.0", True),
        ("sm_90", "10.0", False), ("sm_100", "10.3", True), ("sm_100a", "10.3", False), ("sm_100f", "10.3", True),
        ("sm_100", "12.0", False), ("sm_120", "12.1", True), ("sm_121", "12.0", False), ("sm_70", "7.5", True),
        ("sm_75", "7.0", False), ("sm_60", "6.1", True), ("sm_100", "10.1", False), ("compute_90", "9.0", False),
        ("sm_130", "13.2", True), ("nonsense", "8.0", False), ("", "8.0", False),
    ],
)  # fmt: skip
def test_a_binary_runs_on_its_own_major_from_its_minor_on(arches: str, capability: str, runs: bool) -> None:
    assert runs_natively(arches.split(), capability) is runs


@pytest.mark.parametrize(
    ("arches", "capability", "runs"),
    [
        ("compute_90", "12.0", True),
        ("compute_120", "9.0", False),
        ("compute_90a", "10.0", False),
        ("sm_90", "10.0", False),
    ],
)
def test_intermediate_code_runs_on_everything_later(arches: str, capability: str, runs: bool) -> None:
    assert runs_by_ptx(arches.split(), capability) is runs


@pytest.mark.parametrize(
    ("build", "name", "capability", "driven_by", "level"),
    [
        pytest.param("2.5.1+cu124", "NVIDIA GeForce RTX 5080", "12.0", ("570.124.06", "12.8"), "fail", id="Blackwell, build too old"),
        pytest.param("2.9.1+cu130", "Tesla V100-SXM2-32GB", "7.0", ("580.95.05", "13.0"), "fail", id="Volta, CUDA 13 build"),
        pytest.param("2.11.0+cu128", "Tesla V100-SXM2-32GB", "7.0", ("580.95.05", "13.0"), "fail", id="Volta, dropped from cu128 in 2.11"),
        pytest.param("2.10.0+cu128", "Tesla V100-SXM2-32GB", "7.0", ("580.95.05", "13.0"), None, id="Volta, still in cu128 of 2.10"),
        pytest.param("2.14.0+cu126", "Tesla P40", "6.1", ("580.95.05", "13.0"), None, id="Pascal in cu126 of 2.14"),
        pytest.param("1.13.1+cu117", "NVIDIA H100 PCIe", "9.0", ("550.90.07", "12.4"), "fail", id="Hopper before sm_90"),
        pytest.param("1.13.1+cu117", "NVIDIA GeForce RTX 4090", "8.9", ("525.85.05", "12.0"), None, id="Ada by sm_86"),
        pytest.param("2.7.1+cu128", "NVIDIA L4", "8.9", ("570.124.06", "12.8"), None, id="Ada by sm_86, no sm_89 anywhere"),
        pytest.param("2.9.0+cu130", "NVIDIA GB10", "12.1", ("580.95.05", "13.0"), None, id="GB10 by sm_120"),
        pytest.param("2.8.0+cu128", "NVIDIA B300 SXM6 AC", "10.3", ("575.57.08", "12.9"), None, id="B300 by sm_100"),
        pytest.param("2.5.0a0+e000dbd.nv24.10", "NVIDIA GeForce RTX 5090", "12.0", ("570.1", "12.8"), None, id="a vendor's build is not in the table"),
        pytest.param("4.2.0+cu150", "NVIDIA X900", "14.0", ("720.1", "15.0"), None, id="a future build is not in the table"),
    ],
)  # fmt: skip
def test_builds_of_the_release_table(
    build: str, name: str, capability: str, driven_by: tuple[str, str], level: str | None
) -> None:
    given = said(torch=torch(build), gpus=cards(name, capability), driver=driver(*driven_by))
    assert given.get("gpu-arch-not-in-torch-build") == level


def test_the_architectures_read_from_the_files_win_over_the_table() -> None:
    own = Torch(version="2.6.0+cu124", cuda="12.4", arch_list=("sm_80", "sm_120"))
    assert "gpu-arch-not-in-torch-build" not in said(torch=own, gpus=cards("NVIDIA GeForce RTX 5090", "12.0"), driver=driver("570.1", "12.8"))  # fmt: skip


def test_a_capability_is_taken_from_the_name_where_the_driver_does_not_tell() -> None:
    given = said(
        torch=torch("2.6.0+cu124"), gpus=cards("NVIDIA GeForce RTX 5090", ""), driver=driver("570.1", "12.8")
    )
    assert given["gpu-arch-not-in-torch-build"] == "fail"


@pytest.mark.parametrize(
    ("build", "name", "capability", "driven_by", "command"),
    [
        pytest.param("2.9.0+cu128", "Tesla P100-PCIE-16GB", "6.0", ("580.105.08", "13.0"), "torch==2.9.0+cu126", id="dropped: same release, older CUDA"),
        pytest.param("2.6.0+cu124", "NVIDIA GeForce RTX 5090", "12.0", ("570.124.06", "12.8"), "torch==2.7.1+cu128", id="missing: the nearest release that has it"),
        pytest.param("1.12.0+cu102", "NVIDIA GeForce RTX 3090", "8.6", ("470.57.02", "11.4"), "torch==1.12.0+cu113", id="same release, a CUDA that the driver serves"),
        pytest.param("2.13.0+cu130", "Tesla V100-SXM2-16GB", "7.0", ("580.95.05", "13.0"), "torch==2.13.0+cu126", id="Volta on 2.13"),
    ],
)  # fmt: skip
def test_the_advice_names_a_build_that_has_the_code(
    build: str, name: str, capability: str, driven_by: tuple[str, str], command: str
) -> None:
    found = the("gpu-arch-not-in-torch-build", torch=torch(build), gpus=cards(name, capability), driver=driver(*driven_by))  # fmt: skip
    assert f"install {command}" in str(found.advice)
    assert "upgrade" not in str(found.advice).lower()


def test_mates_that_are_installed_are_brought_along_in_the_examined_interpreter() -> None:
    found = the(
        "gpu-arch-not-in-torch-build", torch=torch("2.6.0+cu124"), gpus=cards("NVIDIA GeForce RTX 5090", "12.0"), driver=driver("570.124.06", "12.8"),
        packages=packages(torch="2.6.0", torchvision="0.21.0"), python=Python(version="3.11.9", executable="/root/miniconda3/bin/python"),
    )  # fmt: skip
    assert "/root/miniconda3/bin/python -m pip install torch==2.7.1+cu128 torchvision==0.22.1+cu128 --index-url https://download.pytorch.org/whl/cu128" in str(found.advice)  # fmt: skip


MIXED = Gpus(items=(gpu("NVIDIA GeForce RTX 3090", "8.6", 0), gpu("Tesla P40", "6.1", 1)))


def test_a_mixed_box_is_judged_card_by_card() -> None:
    found = the("gpu-arch-not-in-torch-build", torch=torch("2.9.0+cu128"), gpus=MIXED, driver=driver("580.95.05", "13.0"))  # fmt: skip
    assert (found.subject, found.level) == ("Tesla P40", "fail")
    assert "torch==2.9.0+cu126" in str(found.advice)


def test_a_card_that_the_run_does_not_see_is_a_note() -> None:
    given = said(torch=torch("2.9.0+cu128"), gpus=MIXED, driver=driver("580.95.05", "13.0"), environment=variables(CUDA_VISIBLE_DEVICES="0"))  # fmt: skip
    assert given["gpu-arch-not-in-torch-build"] == "note"


def test_intermediate_code_helps_only_where_the_driver_can_compile_it() -> None:
    own = Torch(version="2.7.0+cu128", cuda="12.8", arch_list=("sm_80", "compute_90"))
    facts: dict[str, Any] = {"torch": own, "gpus": cards("NVIDIA H200", "9.0")}
    assert said(driver=driver("570.124.06", "12.8"), **facts)["gpu-runs-by-ptx-jit"] == "note"
    assert said(driver=driver("535.129.03", "12.2"), **facts)["gpu-arch-not-in-torch-build"] == "fail"


@pytest.mark.parametrize(
    ("own", "gpus", "finding"),
    [
        pytest.param(torch("2.4.1+cpu"), cards(), "torch-cpu-only-build", id="the CPU wheel"),
        pytest.param(
            Torch(version="2.5.1", cuda=""),
            cards(),
            "torch-cpu-only-build",
            id="a conda CPU build without a tag",
        ),
        pytest.param(
            Torch(version="2.6.0+rocm6.2", cuda="", hip="6.2"),
            cards(),
            "torch-rocm-build",
            id="for AMD cards",
        ),
        pytest.param(torch("2.6.0+cu124"), cards(), None, id="a CUDA build"),
        pytest.param(Torch(version="2.6.0"), cards(), None, id="a torch that does not tell"),
        pytest.param(
            torch("2.4.1+cpu"), Gpus(items=(gpu(error="GPU is lost"),)), None, id="no card that answers"
        ),
    ],
)
def test_torch_without_cuda(own: Torch, gpus: Gpus, finding: str | None) -> None:
    given = {"torch-cpu-only-build", "torch-rocm-build"} & set(
        said(torch=own, gpus=gpus, driver=driver("550.90.07", "12.4"))
    )
    assert given == ({finding} if finding else set())


def test_no_card_no_complaint_about_a_cpu_build() -> None:
    from doctor.model import Reading

    assert "torch-cpu-only-build" not in said(torch=torch("2.4.1+cpu"), gpus=Reading(status="absent"))


def test_the_cpu_build_is_replaced_by_the_same_release() -> None:
    found = the("torch-cpu-only-build", torch=torch("2.1.0+cpu"), gpus=cards("NVIDIA GeForce RTX 3080", "8.6"), driver=driver("535.129.03", "12.2"))  # fmt: skip
    assert "torch==2.1.0+cu121" in str(found.advice)


ARM = Host(arch="aarch64")


def test_an_arm_machine_is_not_told_of_x86_wheels() -> None:
    cpu = the("torch-cpu-only-build", torch=torch("2.6.0+cpu"), gpus=cards("NVIDIA GH200 480GB", "9.0"), driver=driver("550.90.07", "12.4"), host=ARM)  # fmt: skip
    assert "ARM" in str(cpu.advice)
    old = the("driver-too-old-for-torch-cuda", torch=torch("2.12.0+cu130"), gpus=cards("NVIDIA GH200 480GB", "9.0"), driver=driver("550.90.07", "12.4"), host=ARM)  # fmt: skip
    assert "ARM" in str(old.advice)


def test_the_release_table_is_not_asked_about_arm_wheels() -> None:
    facts: dict[str, Any] = {
        "gpus": cards("NVIDIA H100 PCIe", "9.0"),
        "driver": driver("580.95.05", "13.0"),
        "host": ARM,
    }
    assert "gpu-arch-not-in-torch-build" not in said(torch=torch("1.13.1+cu117"), **facts)
    own = Torch(version="1.13.1+cu117", cuda="11.7", arch_list=("sm_80", "sm_86"))
    assert "NVIDIA's PyTorch container" in str(the("gpu-arch-not-in-torch-build", torch=own, **facts).advice)


def test_a_torch_newer_than_the_table_is_a_note() -> None:
    assert said(torch=torch("3.1.0+cu140"))["torch-unknown-to-this-version"] == "note"
    assert "torch-unknown-to-this-version" not in said(torch=torch("2.15.0+cu132"))


def test_a_card_newer_than_the_tables_is_not_sent_to_an_old_build() -> None:
    found = the(
        "torch-cpu-only-build",
        torch=torch("2.13.0+cpu"),
        gpus=cards("NVIDIA X900", "14.3"),
        driver=driver("720.11.03", "14.1"),
    )
    assert "newer than this version of the doctor" in str(found.advice)
    assert "torch==2.8" not in str(found.advice)
    assert not may_fix(found), "no fix may install a guess"
    known = the(
        "torch-cpu-only-build", torch=torch("2.13.0+cpu"), gpus=cards(), driver=driver("550.90.07", "12.4")
    )
    assert may_fix(known)


def test_a_mixed_box_with_a_coming_card_says_so_for_the_card_without_code() -> None:
    found = the(
        "gpu-arch-not-in-torch-build",
        torch=torch("2.9.1+cu128"),
        gpus=Gpus(items=(gpu(), gpu("NVIDIA X900", "14.3", 1))),
        driver=driver("720.11.03", "14.1"),
    )
    assert "14.3 is newer" in str(found.advice)
