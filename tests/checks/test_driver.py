"""The driver's version against torch's CUDA, the kernel module, the cards; neighbours and innocent twins in each table."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Gpus, Host, KernelLog, Reading
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards, driver, rented
from tests.checks.judged import loud, said, the, torch

WINDOWS, WSL = Host(wheel_platform="win_amd64"), Host(wsl=True)


@pytest.mark.parametrize(
    ("version", "cuda", "build"),
    [
        pytest.param("470.57.02", "11.4", "2.3.1+cu121", id="driver of the CUDA 11 time, CUDA 12 build"),
        pytest.param("470.57.02", None, "2.3.1+cu121", id="the same without the driver's own word"),
        pytest.param("525.60.11", None, "2.4.0+cu121", id="just below the first that runs CUDA 12"),
        pytest.param("575.57.08", "12.9", "2.13.0+cu130", id="CUDA 12.9 driver, CUDA 13 build"),
        pytest.param("450.51.06", "11.0", "1.10.0+cu113", id="11.0 driver below 450.80.02, 11.3 build"),
        pytest.param("418.87", "10.1", "1.12.0+cu102", id="10.2 build needs 440.33"),
        pytest.param("580.95.05", "13.0", "3.0.0+cu140", id="a future major, by what the driver serves"),
    ],
)
def test_a_driver_below_the_minimum_of_the_major_is_too_old(
    version: str, cuda: str | None, build: str
) -> None:
    given = loud(driver=driver(version, cuda), torch=torch(build), gpus=cards("Tesla T4", "7.5"))
    assert given.get("driver-too-old-for-torch-cuda") == "fail"


@pytest.mark.parametrize(
    ("version", "cuda", "build"),
    [
        pytest.param("525.60.13", "12.0", "2.6.0+cu126", id="exactly the minimum, minor version compatibility"),
        pytest.param("450.80.02", "11.0", "2.0.1+cu118", id="11.0 driver, 11.8 build"),
        pytest.param("535.261.03", "12.2", "2.10.0+cu128", id="12.2 driver, 12.8 build"),
        pytest.param("580.65.06", "13.0", "2.15.0+cu132", id="13.0 driver, 13.2 build"),
        pytest.param("999.1", "19.0", "1.13.1+cu117", id="a driver of the far future"),
        pytest.param("999.1", None, "2.14.0+cu130", id="the same without its own word"),
        pytest.param("615.71.09", "13.4", "1.12.0+cu102", id="old build, new driver"),
        pytest.param("550.90.07", "12.4", "2.9.0+cpu", id="no CUDA in the build: another check's question"),
        pytest.param("", "12.4", "2.13.0", id="a torch that does not tell its CUDA"),
    ],
)  # fmt: skip
def test_a_driver_that_is_enough_is_not_called_old(version: str, cuda: str | None, build: str) -> None:
    given = said(driver=driver(version or None, cuda), torch=torch(build), gpus=cards("Tesla T4", "7.5"))
    assert "driver-too-old-for-torch-cuda" not in given


@pytest.mark.parametrize(
    ("host", "version", "too_old"),
    [
        pytest.param(WINDOWS, "526.98", True, id="Windows, below 527.41"),
        pytest.param(WINDOWS, "528.49", False, id="Windows, above it"),
        pytest.param(WSL, "566.36", False, id="WSL shows the Windows number"),
        pytest.param(WSL, "516.94", True, id="WSL on a driver of the CUDA 11 time"),
    ],
)
def test_windows_numbers_are_judged_by_the_windows_minimum(host: Host, version: str, too_old: bool) -> None:
    given = said(driver=driver(version), torch=torch("2.5.1+cu124"), gpus=cards(), host=host)
    assert ("driver-too-old-for-torch-cuda" in given) is too_old


@pytest.mark.parametrize(
    ("machine", "build", "command"),
    [
        pytest.param(("470.182.03", "11.4", "Tesla T4", "7.5"), "2.1.0+cu121", "torch==2.1.0+cu118", id="same release"),
        pytest.param(("550.90.07", "12.4", "NVIDIA H100 80GB HBM3", "9.0"), "2.11.0+cu130", "torch==2.11.0+cu126", id="the last index of its major"),
        pytest.param(("470.182.03", "11.4", "Tesla T4", "7.5"), "2.11.0+cu130", "torch==2.7.1+cu118", id="the nearest release that has one"),
        pytest.param(("550.90.07", "12.4", "NVIDIA GeForce RTX 5090", "12.0"), "2.12.0+cu130", "torch==2.11.0+cu128", id="and that has code for the card"),
    ],
)  # fmt: skip
def test_the_advice_names_a_build_that_runs_here(
    machine: tuple[str, str, str, str], build: str, command: str
) -> None:
    version, cuda, name, capability = machine
    found = the(
        "driver-too-old-for-torch-cuda",
        driver=driver(version, cuda),
        torch=torch(build),
        gpus=cards(name, capability),
        container=INSIDE,
    )
    assert f"install {command}" in str(found.advice)


def test_a_tenant_is_not_told_to_replace_the_driver() -> None:
    facts: dict[str, Any] = {
        "driver": driver("470.1", "11.4"),
        "torch": torch("2.1.0+cu121"),
        "gpus": cards("Tesla T4", "7.5"),
    }
    inside = str(the("driver-too-old-for-torch-cuda", container=INSIDE, **facts).advice)
    rental = str(the("driver-too-old-for-torch-cuda", platform=rented("lambda"), **facts).advice)
    own = str(the("driver-too-old-for-torch-cuda", container=OUTSIDE, **facts).advice)
    assert "driver replaced" not in inside + rental
    assert "driver replaced" in own


@pytest.mark.parametrize(
    ("platform", "word"),
    [
        ("runpod", "filter by CUDA version"),
        ("autodl", "offers show the highest CUDA"),
        ("lambda", "rent a machine"),
    ],
)
def test_how_another_host_is_found_depends_on_the_platform(platform: str, word: str) -> None:
    found = the("driver-too-old-for-torch-cuda", driver=driver("550.90.07", "12.4"), torch=torch("2.12.0+cu130"), gpus=cards(), platform=rented(platform), container=INSIDE)  # fmt: skip
    assert word in str(found.advice)


def test_nothing_published_runs_here_is_said_so() -> None:
    found = the(
        "driver-too-old-for-torch-cuda",
        driver=driver("470.57.02", "11.4"), torch=torch("2.12.0+cu130"), gpus=cards("NVIDIA GeForce RTX 5090", "12.0"),
    )  # fmt: skip
    assert "No published torch build" in str(found.advice)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param({"nvml_error": 18}, True, id="NVML says so"),
        pytest.param({"kernel_module_version": "535.129.03", "nvml_library_version": "535.161.07"}, True, id="two versions, NVML not asked"),
        pytest.param({"kernel_module_version": "535.129.03", "nvml_library_version": "535.129.03"}, False, id="one version"),
        pytest.param({"kernel_module_version": "535.129.03", "nvml_library_version": "535.161.07", "nvml_error": 0}, False, id="two, but NVML works"),
        pytest.param({"kernel_module_version": "535.129.03", "nvml_error": 999}, False, id="another error"),
        pytest.param({"kernel_module_version": "550.54.15"}, False, id="the library is not known", marks=()),
    ],
)  # fmt: skip
def test_module_and_library_of_two_versions(fields: dict[str, Any], found: bool) -> None:
    version = "550.54.15" if fields.get("kernel_module_version") == "550.54.15" else None
    assert ("nvml-driver-library-mismatch" in said(driver=driver(version, **fields))) is found


def test_a_container_is_restarted_a_machine_of_ones_own_rebooted() -> None:
    inside = str(the("nvml-driver-library-mismatch", driver=driver(nvml_error=18), container=INSIDE).advice)
    own = str(the("nvml-driver-library-mismatch", driver=driver(nvml_error=18), container=OUTSIDE).advice)
    assert "rmmod" not in inside
    assert "apt-mark hold" in own


LEGACY = (
    "NVRM: The NVIDIA Tesla V100-SXM2-16GB GPU installed in this system is",
    "NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please",
    "NVRM:  information.  The 595.45.04 NVIDIA driver will ignore",
)


@pytest.mark.parametrize(
    ("version", "name", "capability", "level"),
    [
        pytest.param("590.48.01", "Tesla V100-SXM2-16GB", "7.0", "warn", id="V100 under 590"),
        pytest.param("610.43.02", "Tesla P100-PCIE-16GB", "6.0", "warn", id="P100 under 610"),
        pytest.param(
            "580.95.05", "Tesla V100-SXM2-16GB", "7.0", None, id="V100 under 580, the last that drives it"
        ),
        pytest.param("595.45.04", "Tesla T4", "7.5", None, id="Turing under 595"),
    ],
)
def test_a_card_that_the_driver_branch_dropped(
    version: str, name: str, capability: str, level: str | None
) -> None:
    assert said(driver=driver(version), gpus=cards(name, capability)).get("gpu-dropped-by-driver") == level


def test_a_dropped_card_that_works_is_not_doubted() -> None:
    assert "gpu-dropped-by-driver" not in said(
        driver=driver("590.48.01", cuda_init_error=0), gpus=cards("Tesla V100-SXM2-16GB", "7.0")
    )


def test_the_kernel_log_names_a_dropped_card_that_nvml_no_longer_lists() -> None:
    found = the("gpu-dropped-by-driver", driver=driver("595.45.04"), kernel_log=KernelLog(lines=LEGACY))
    assert (found.level, found.subject) == ("fail", "Tesla V100-SXM2-16GB")
    assert "branch 580" in str(found.advice)


def test_a_card_that_wants_the_open_kernel_module() -> None:
    log = KernelLog(lines=("NVRM: installed in this system requires use of the NVIDIA open kernel modules.",))
    given = said(driver=driver("570.124.06", pci_gpu_count=1), gpus=Reading(status="absent"), kernel_log=log)
    assert given["gpu-needs-open-kernel-module"] == "fail"
    assert "gpu-needs-open-kernel-module" not in said(
        driver=driver("570.124.06"), kernel_log=KernelLog(lines=LEGACY)
    )


def test_a_driver_newer_than_the_table_is_a_note() -> None:
    assert said(driver=driver("640.21.03", "14.1"), gpus=cards())["driver-unknown-to-this-version"] == "note"
    assert "driver-unknown-to-this-version" not in said(driver=driver("620.10"), gpus=cards())


NO_CARDS: Reading[Gpus] = Reading(status="absent")


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param({"driver": driver("470.57.02", nvml_error=9, pci_gpu_count=0), "gpus": NO_CARDS}, {}, id="the driver's files on a machine without a card"),
        pytest.param({"driver": driver("470.57.02", nvml_error=9), "gpus": Reading(status="failed")}, {"no-gpu-visible": "fail"}, id="not loaded: loading it comes first"),
        pytest.param({"driver": driver("470.57.02", nvml_error=12), "gpus": NO_CARDS}, {}, id="libcuda in the image of a CPU machine"),
        pytest.param({"driver": driver("470.57.02", nvml_error=0), "gpus": cards()}, {"driver-too-old-for-torch-cuda": "fail"}, id="loaded and too old"),
        pytest.param({"driver": driver("470.57.02", nvml_error=0), "gpus": Reading(status="skipped")}, {"driver-too-old-for-torch-cuda": "fail"}, id="loaded, cards not looked at"),
        pytest.param({"driver": driver("470.57.02", kernel_module_version="470.57.02", nvml_error=12), "gpus": NO_CARDS}, {"driver-too-old-for-torch-cuda": "fail", "no-gpu-visible": "fail"}, id="the host's module is loaded, the container has no card"),
    ],
)  # fmt: skip
def test_a_driver_that_is_not_loaded_is_not_judged_by_its_version(
    sections: dict[str, Any], expected: dict[str, str]
) -> None:
    assert loud(torch=torch("2.9.1+cu128"), **sections) == expected


def test_the_same_version_is_no_evidence_twice() -> None:
    found = the(
        "nvml-driver-library-mismatch",
        driver=driver("570.124.06", nvml_library_version="570.124.06", nvml_error=18),
    )
    values = [row.value for row in found.evidence]
    assert values.count("570.124.06") == 1
    assert "18" in values
