"""Does CUDA start: device files, a driver that hangs, the fabric manager, compat libraries."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Driver, Environment, Gpus, Host, Reading, t
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards, driver, rented
from tests.checks.judged import said, the

H100 = cards("NVIDIA H100 80GB HBM3", "9.0", 8)
FAILED: Reading[Gpus] = Reading(status="failed", why=t("no answer"))


@pytest.mark.parametrize(
    ("fields", "container", "expected"),
    [
        pytest.param({"nvml_error": 999, "device_nodes": {"/dev/nvidia0": "EPERM"}}, INSIDE, "nvml-lost-in-container", id="revoked in a container"),
        pytest.param({"nvml_error": 4, "device_nodes": {"/dev/nvidiactl": "EACCES"}}, INSIDE, "nvml-lost-in-container", id="no permission in a container"),
        pytest.param({"nvml_error": 999}, INSIDE, "nvml-lost-in-container", id="999 in a container, files not tried"),
        pytest.param({"nvml_error": 4, "device_nodes": {"/dev/nvidia0": "EACCES"}}, OUTSIDE, "gpu-device-permission", id="a user without the group"),
        pytest.param({"nvml_error": 0, "device_nodes": {"/dev/nvidia3": "EPERM", "/dev/nvidia0": ""}}, INSIDE, None, id="another tenant's card, NVML works"),
        pytest.param({"nvml_error": 999, "device_nodes": {"/dev/nvidia0": ""}}, INSIDE, None, id="files open: not revoked"),
        pytest.param({"nvml_error": 0, "device_nodes": {"/dev/nvidia0": ""}}, OUTSIDE, None, id="all well"),
    ],
)  # fmt: skip
def test_who_may_open_the_device_files(fields: dict[str, Any], container: Any, expected: str | None) -> None:
    given = set(said(driver=driver(**fields), container=container))
    assert given & {"nvml-lost-in-container", "gpu-device-permission"} == ({expected} if expected else set())


def test_a_hung_driver_is_a_failure_and_a_question_nobody_could_ask_is_unknown() -> None:
    assert said(driver=driver(hung=True), gpus=FAILED)["gpus-not-readable"] == "fail"
    assert said(driver=driver(), gpus=FAILED)["gpus-not-readable"] == "unknown"
    assert said(driver=driver(nvml_error=999), gpus=FAILED)["gpus-not-readable"] == "fail"


@pytest.mark.parametrize("error", [9, 12, 18])
def test_an_error_with_a_finding_of_its_own_is_not_said_twice(error: int) -> None:
    assert "gpus-not-readable" not in said(driver=driver(nvml_error=error), gpus=FAILED)


@pytest.mark.parametrize(
    ("fields", "service", "gpus", "found"),
    [
        pytest.param({"nvswitch": True, "cuda_init_error": 802}, None, H100, True, id="802 with NVSwitch"),
        pytest.param({"cuda_init_error": 802}, None, H100, True, id="802 on eight SXM cards"),
        pytest.param({"nvswitch": True, "fabric_state": "In Progress"}, None, H100, True, id="the fabric never came up"),
        pytest.param({"nvswitch": True}, "inactive", H100, True, id="service down, CUDA not asked"),
        pytest.param({"nvswitch": True, "fabric_state": "Completed"}, "inactive", H100, False, id="fabric is up, whoever runs it"),
        pytest.param({"nvswitch": True, "cuda_init_error": 0}, "failed", H100, False, id="CUDA starts"),
        pytest.param({"nvswitch": False}, "failed", cards("NVIDIA A40", "8.6", 2), False, id="NVLink bridge, no switch"),
        pytest.param({"cuda_init_error": 802}, None, cards("NVIDIA A10", "8.6", 1), False, id="802 on one PCIe card"),
    ],
)  # fmt: skip
def test_the_fabric_manager(fields: dict[str, Any], service: str | None, gpus: Gpus, found: bool) -> None:
    host = Host(services={"nvidia-fabricmanager": service} if service else {})
    assert ("fabric-manager-not-running" in said(driver=driver(**fields), gpus=gpus, host=host)) is found


def test_any_error_of_cuinit_is_said_and_folds_under_its_cause() -> None:
    assert said(driver=driver(cuda_init_error=803))["cuda-init-fails"] == "fail"
    cause = the("fabric-manager-not-running", driver=driver(cuda_init_error=802, nvswitch=True), gpus=H100)
    assert "cuda-init-fails" in cause.cause_of
    assert "cuda-init-fails" not in said(driver=driver(cuda_init_error=0))


COMPAT = {"libcuda_path": "/usr/local/cuda/compat/libcuda.so.1", "libcuda_version": "575.57.08"}


@pytest.mark.parametrize(
    ("name", "fields", "found"),
    [
        pytest.param("NVIDIA GeForce RTX 3090", {**COMPAT}, True, id="GeForce"),
        pytest.param("NVIDIA A10", {**COMPAT, "cuda_init_error": 804}, True, id="CUDA itself refuses"),
        pytest.param("NVIDIA A100-SXM4-80GB", {**COMPAT}, False, id="a data center card"),
        pytest.param("NVIDIA GeForce RTX 3090", {**COMPAT, "cuda_init_error": 0}, False, id="and yet CUDA starts"),
        pytest.param("NVIDIA GeForce RTX 3090", {**COMPAT, "libcuda_version": "550.90.07"}, False, id="the driver's own under another path"),
        pytest.param("NVIDIA GeForce RTX 3090", {"libcuda_path": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}, False, id="the driver's own"),
    ],
)  # fmt: skip
def test_a_compat_library_in_front_of_the_driver(name: str, fields: dict[str, Any], found: bool) -> None:
    given = said(driver=driver(**fields), gpus=cards(name, "8.6"), environment=Environment())
    assert ("cuda-compat-on-unsupported-gpu" in given) is found


def test_the_fabric_is_the_hosts_business_for_a_tenant() -> None:
    facts: dict[str, Any] = {
        "driver": Driver(version="535.129.03", nvswitch=True, cuda_init_error=802),
        "gpus": H100,
    }
    assert "systemctl" in str(the("fabric-manager-not-running", container=OUTSIDE, **facts).advice)
    assert "systemctl" not in str(
        the("fabric-manager-not-running", platform=rented("runpod"), **facts).advice
    )
