"""Faults of the hardware: what NVML and the kernel log say; a program's own errors are not among them."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.language import say, use_language
from doctor.model import Gpu, Gpus, KernelLog, Reading
from doctor.tables.xids import read, short_pci
from tests.checks.gpu_box import cards, driver
from tests.checks.judged import findings, said, the


def log(*lines: str) -> KernelLog:
    return KernelLog(lines=lines)


def xid(number: int, pci: str = "0000:01:00", rest: str = "pid=4121, name=python") -> str:
    return f"NVRM: Xid (PCI:{pci}): {number}, {rest}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[ 3.1] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
            (79, "0000:01:00", "hardware"),
        ),
        ("NVRM: Xid (0000:41:00): 31, Ch 0000000b, engmask 00000120", (31, "0000:41:00", "application")),
        ("NVRM: Xid (PCI:0000:C1:00.0): 94, pid=1", (94, "0000:c1:00", "recoverable")),
        ("NVRM: Xid (PCI:0000:01:00): 999, something new", (999, "0000:01:00", "unknown")),
        ("NVRM: GPU at PCI:0000:01:00: GPU-fbc0fa0b", None),
    ],
)
def test_an_xid_line_is_read(line: str, expected: tuple[int, str, str] | None) -> None:
    found = read(line)
    assert (None if found is None else (found.number, found.pci, found.kind)) == expected


@pytest.mark.parametrize("address", ["00000000:0A:00.0", "0000:0a:00.0", "0000:0a:00"])
def test_addresses_of_nvml_and_kernel_are_one(address: str) -> None:
    assert short_pci(address) == "0000:0a:00"


@pytest.mark.parametrize(
    ("number", "level"),
    [
        (79, "fail"),
        (48, "fail"),
        (95, "fail"),
        (119, "fail"),
        (64, "fail"),
        (74, "warn"),
        (94, "warn"),
        (63, "note"),
    ],
)
def test_an_xid_of_the_hardware_on_a_card_whose_address_is_not_known(number: int, level: str) -> None:
    assert said(gpus=cards(), kernel_log=log(xid(number)))["gpu-hardware-fault"] == level


@pytest.mark.parametrize("number", [13, 31, 43, 45, 69])
def test_an_error_of_a_program_is_no_fault_of_the_card(number: int) -> None:
    given = said(gpus=cards(), kernel_log=log(xid(number)))
    assert given["gpu-application-error"] == "note"
    assert "gpu-hardware-fault" not in given


def test_an_unknown_number_is_named_and_not_judged() -> None:
    given = said(gpus=cards(), kernel_log=log(xid(999)))
    assert given["gpu-xid-unknown"] == "note"
    assert "gpu-hardware-fault" not in given


def test_a_card_of_another_tenant_is_a_note() -> None:
    given = said(gpus=cards(pci_address="0000:81:00.0"), kernel_log=log(xid(79, "0000:01:00")))
    assert given["gpu-hardware-fault"] == "note"


def test_a_card_that_answers_again_is_a_warning() -> None:
    well = cards(pci_address="0000:01:00.0", recovery_action="none")
    assert said(gpus=well, kernel_log=log(xid(119)))["gpu-hardware-fault"] == "warn"
    assert (
        said(gpus=cards(pci_address="0000:01:00.0"), kernel_log=log(xid(119)))["gpu-hardware-fault"] == "fail"
    )


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        pytest.param({"error": "GPU is lost", "error_code": 15}, "fail", id="lost"),
        pytest.param({"error": "Insufficient Permissions", "error_code": 4}, None, id="may not be asked"),
        pytest.param({"ecc_uncorrected_volatile": 3}, "fail", id="uncorrectable errors"),
        pytest.param(
            {"ecc_uncorrected_volatile": 0, "ecc_uncorrected_aggregate": 7}, None, id="long ago, none since"
        ),
        pytest.param({"row_remap_failed": True}, "fail", id="remapping failed"),
        pytest.param({"row_remap_pending": True}, "warn", id="remapping waits"),
        pytest.param({"retired_pages_pending": True}, "warn", id="page retirement waits"),
        pytest.param({"recovery_action": "gpu-reset"}, "fail", id="asks for a reset"),
        pytest.param({"recovery_action": "none", "row_remap_pending": False}, None, id="well"),
    ],
)
def test_what_nvml_says_of_a_card(fields: dict[str, Any], level: str | None) -> None:
    assert said(gpus=cards("NVIDIA A100-SXM4-40GB", "8.0", **fields)).get("gpu-hardware-fault") == level


def test_all_that_is_said_of_one_card_is_one_finding() -> None:
    sick = cards(pci_address="0000:01:00.0", error="GPU is lost", ecc_uncorrected_volatile=2)
    found = the("gpu-hardware-fault", gpus=sick, kernel_log=log(xid(48), xid(79), xid(79)))
    assert len(found.evidence) == 6, "two from NVML, three from the log, the address"
    assert "does not answer" in str(found.title)


def test_two_sick_cards_are_two_findings() -> None:
    given = findings(
        gpus=Reading(status="skipped"), kernel_log=log(xid(79, "0000:01:00"), xid(79, "0000:02:00"))
    )
    assert [item.id for item in given] == ["gpu-hardware-fault"] * 2


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", "note"),
        ("pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error received: 0000:01:00.0", "warn"),
    ],
)
def test_link_errors_alone(line: str, level: str) -> None:
    given = said(gpus=cards(), kernel_log=log(line))
    assert given == {"pcie-link-errors": level}


def test_a_fatal_error_of_the_switch() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 27 LTSSM Fault Up"
    assert said(gpus=cards(), kernel_log=log(line))["gpu-hardware-fault"] == "warn"
    harmless = line.replace("Fatal", "Non-fatal")
    assert "gpu-hardware-fault" not in said(gpus=cards(), kernel_log=log(harmless))


def test_a_quiet_log_and_healthy_cards_say_nothing() -> None:
    assert (
        said(gpus=cards(), kernel_log=log("NVRM: loading NVIDIA UNIX x86_64 Kernel Module"), driver=driver())
        == {}
    )


def test_one_card_is_named_one_way_and_its_address_is_evidence() -> None:
    lost = Gpu(index=2, error="GPU is lost", error_code=15)
    bad = Gpu(index=1, name="NVIDIA A100-SXM4-40GB", pci_address="0000:04:00.0", ecc_uncorrected_volatile=2)
    found = {item.subject: item for item in findings(gpus=Gpus(items=(bad, lost)))}
    assert list(found) == ["GPU 1 (NVIDIA A100-SXM4-40GB)", "GPU 2"]
    assert all(str(item.title).startswith(subject) for subject, item in found.items())
    assert ("gpus.items[0].pci_address", "0000:04:00.0") in {
        (row.fact, row.value) for row in found["GPU 1 (NVIDIA A100-SXM4-40GB)"].evidence
    }


def test_what_an_xid_means_is_said_in_chinese() -> None:
    found = the("gpu-application-error", kernel_log=log(xid(31)))
    use_language("zh")
    try:
        assert "kernel 访问了不属于自己的显存" in say(found.title)
    finally:
        use_language("en")
    assert "a kernel touched memory that is not its own" in str(found.title)
