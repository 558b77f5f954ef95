"""Which cards are there, which of them a program may use, and whether they can talk to each other."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Gpus, Host, Reading
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards, driver, gpu, rented
from tests.checks.judged import said, the, torch, variables

ABSENT: Reading[Gpus] = Reading(status="absent")
NO_NODES = {"/dev/nvidia0": "ENOENT", "/dev/nvidiactl": "ENOENT"}


@pytest.mark.parametrize(
    ("sections", "level"),
    [
        pytest.param({"driver": driver(None, kernel_module_version="570.1", nvml_error=12, device_nodes=NO_NODES), "container": INSIDE}, "fail", id="container without --gpus"),
        pytest.param({"driver": driver(None, nvml_error=9, pci_gpu_count=1)}, "fail", id="module not loaded"),
        pytest.param({"driver": driver(None, nvml_error=9)}, "fail", id="module not loaded, bus not seen"),
        pytest.param({"driver": driver(None, nvml_error=9, pci_gpu_count=0)}, "note", id="driver's libraries on a machine without a card"),
        pytest.param({"platform": rented("vast", gpus_rented=1)}, "fail", id="rented and not there"),
        pytest.param({"driver": Reading(status="absent")}, "note", id="a laptop without a card"),
        pytest.param({"platform": rented("autodl", no_gpu_mode=True), "driver": driver(None, kernel_module_version="570.1")}, "note", id="started without a card on purpose"),
    ],
)  # fmt: skip
def test_no_gpu(sections: dict[str, Any], level: str) -> None:
    assert said(gpus=ABSENT, **sections)["no-gpu-visible"] == level


def test_no_gpu_is_not_said_where_nobody_looked_or_one_is_there() -> None:
    assert "no-gpu-visible" not in said(driver=driver())
    assert "no-gpu-visible" not in said(driver=driver(), gpus=cards())
    assert "no-gpu-visible" not in said(driver=driver(), gpus=Reading(status="failed"))


@pytest.mark.parametrize(
    ("platform", "word"),
    [("runpod", "pod"), ("autodl", "AutoDL"), ("slurm", "--gres=gpu:1"), ("kubernetes", "nvidia.com/gpu")],
)
def test_where_to_get_a_gpu_depends_on_the_platform(platform: str, word: str) -> None:
    found = the("no-gpu-visible", gpus=ABSENT, driver=driver(None, kernel_module_version="570.1"), platform=rented(platform), container=INSIDE)  # fmt: skip
    assert word in str(found.advice)
    assert "install" not in str(found.advice)


@pytest.mark.parametrize(
    ("count", "sections", "level"),
    [
        pytest.param(3, {"platform": rented("runpod", gpus_rented=4)}, "fail", id="three of four rented"),
        pytest.param(4, {"platform": rented("runpod", gpus_rented=4)}, None, id="all four"),
        pytest.param(3, {"driver": driver(pci_gpu_count=4), "container": OUTSIDE}, "warn", id="one on the bus does not answer"),
        pytest.param(1, {"driver": driver(pci_gpu_count=8), "container": INSIDE}, None, id="one given to a container of eight"),
    ],
)  # fmt: skip
def test_fewer_cards_than_there_should_be(count: int, sections: dict[str, Any], level: str | None) -> None:
    assert said(gpus=cards(count=count), **sections).get("fewer-gpus-than-rented") == level


@pytest.mark.parametrize(
    ("value", "count", "level"),
    [
        pytest.param("4", 4, "fail", id="one past the last"),
        pytest.param("0,1,7", 4, "warn", id="two are left"),
        pytest.param("7,0", 4, "fail", id="a wrong one hides all after it"),
        pytest.param("", 1, "fail", id="empty hides all"),
        pytest.param("-1", 2, "fail", id="-1 hides all"),
        pytest.param("0,0", 2, "fail", id="named twice"),
        pytest.param("all", 2, "fail", id="a word"),
        pytest.param("GPU-ffff", 1, "fail", id="a UUID of another machine"),
        pytest.param("GPU-aaaa", 1, None, id="the beginning of a UUID that is here"),
        pytest.param("3,1", 4, None, id="in any order"),
        pytest.param(" 0 , 1 ", 2, None, id="spaces are tolerated"),
        pytest.param("0", 1, None, id="the only one"),
        pytest.param("MIG-1111", 1, None, id="one MIG instance"),
        pytest.param("0，1", 4, "warn", id="a full-width comma"),
        pytest.param("0;1", 4, "warn", id="a semicolon"),
        pytest.param("0 1", 4, "warn", id="a blank"),
        pytest.param("10,11", 16, None, id="numbers of two digits"),
    ],
)
def test_cuda_visible_devices(value: str, count: int, level: str | None) -> None:
    given = said(
        gpus=cards(count=count, uuid="GPU-aaaa-bbbb"), environment=variables(CUDA_VISIBLE_DEVICES=value), driver=driver()
    )  # fmt: skip
    assert given.get("cuda-visible-devices-invalid") == level


def test_cards_that_were_not_counted_are_not_out_of_range() -> None:
    uncounted = Gpus(items=(gpu(),), unread={"items": "not counted"})  # type: ignore[dict-item]
    assert "cuda-visible-devices-invalid" not in said(
        gpus=uncounted, environment=variables(CUDA_VISIBLE_DEVICES="3")
    )


@pytest.mark.parametrize(
    ("value", "cuda", "level"),
    [
        ("MIG-a,MIG-b", "12.4", "warn"),
        ("MIG-a,MIG-b", "13.0", "note"),
        ("MIG-a", "12.4", None),
        ("0,1", "12.4", None),
    ],
)
def test_several_mig_instances(value: str, cuda: str, level: str | None) -> None:
    given = said(gpus=cards("NVIDIA H100 PCIe", "9.0", 2, mig_enabled=True), environment=variables(CUDA_VISIBLE_DEVICES=value), driver=driver(cuda=cuda))  # fmt: skip
    assert given.get("mig-multiple-instances-unsupported") == level


@pytest.mark.parametrize(
    ("name", "version", "set_to", "found"),
    [
        pytest.param("NVIDIA GeForce RTX 4080 SUPER", "535.129.03", None, True, id="two 4080 under 535"),
        pytest.param("NVIDIA GeForce RTX 4090", "550.40.07", None, False, id="the first driver that says no"),
        pytest.param("NVIDIA GeForce RTX 4090", "535.129.03", "1", False, id="switched off"),
        pytest.param("NVIDIA GeForce RTX 4090", "535.129.03", "0", True, id="explicitly on"),
        pytest.param("NVIDIA GeForce RTX 3090", "535.129.03", None, False, id="a 3090 has peer copies"),
        pytest.param("NVIDIA RTX 4000 Ada Generation", "535.129.03", None, False, id="not a GeForce"),
        pytest.param("NVIDIA L40S", "535.129.03", None, False, id="not a GeForce either"),
    ],
)  # fmt: skip
def test_direct_copies_between_geforce_40(name: str, version: str, set_to: str | None, found: bool) -> None:
    environment = variables(NCCL_P2P_DISABLE=set_to) if set_to else variables()
    given = said(gpus=cards(name, "8.9", 2), driver=driver(version), environment=environment)
    assert ("nccl-p2p-hang-risk" in given) is found


def test_one_card_has_nobody_to_copy_to() -> None:
    assert "nccl-p2p-hang-risk" not in said(gpus=cards(), driver=driver("525.85.05"), environment=variables())


@pytest.mark.parametrize(
    ("name", "machine", "link", "level"),
    [
        pytest.param(
            "NVIDIA RTX A6000", "QEMU Standard PC", "PHB", "warn", id="workstation cards passed through"
        ),
        pytest.param("NVIDIA RTX A6000", "QEMU Standard PC", "NV4", None, id="joined by NVLink"),
        pytest.param("NVIDIA RTX A6000", "", "PHB", None, id="bare metal"),
        pytest.param("NVIDIA A10G", "Amazon EC2 g5.12xlarge", "PHB", None, id="a large cloud"),
        pytest.param("NVIDIA A100 80GB PCIe", "QEMU", "SYS", "note", id="data center cards"),
    ],
)
def test_direct_copies_in_a_virtual_machine(name: str, machine: str, link: str, level: str | None) -> None:
    gpus = Gpus(items=cards(name, "8.6", 2).items, topology_worst_link=link)
    given = said(
        gpus=gpus, driver=driver("550.90.07"), environment=variables(), host=Host(virtual_machine=machine)
    )
    assert given.get("nccl-p2p-hang-risk") == level


def test_an_unknown_future_card_is_a_note() -> None:
    given = said(
        gpus=cards("NVIDIA X900", "14.0"), driver=driver("720.1", "15.0"), torch=torch("4.0.0+cu150")
    )
    assert given["gpu-unknown-to-this-version"] == "note"
    assert set(given.values()) == {"note"}


def test_an_instance_without_its_card_is_told_what_it_is_good_for_meanwhile() -> None:
    found = the(
        "no-gpu-visible", gpus=ABSENT, platform=rented("autodl", no_gpu_mode=True), driver=driver(None)
    )
    assert "good for downloads, installing and editing" in str(found.title), (
        "a note is shown as its title alone"
    )
    assert "doctor stage" in str(found.advice)
    assert "with its GPU" in str(found.advice)
