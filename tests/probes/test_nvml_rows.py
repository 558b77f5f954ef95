"""Numbers and masks of NVML, turned into words."""

from __future__ import annotations

import pytest

from doctor.model import Gpu
from doctor.probes.nvml_rows import (
    clock_event_names,
    cuda_version,
    fabric_of,
    gpu_of,
    link_name,
    nvml_library_version,
    pci_address,
    processes_of,
)


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0, ()),
        (0x1, ("idle",)),
        (0x84, ("power-cap", "power-brake")),
        (0x68, ("hw-slowdown", "sw-thermal", "hw-thermal")),
        (0x8000000000000000, ("unknown-0x8000000000000000",)),
    ],
)
def test_clock_event_bits(mask: int, names: tuple[str, ...]) -> None:
    assert clock_event_names(mask) == names


@pytest.mark.parametrize(
    ("given", "kernel"),
    [
        ("00000000:0A:00.0", "0000:0a:00.0"),
        ("00010000:C1:00.0", "00010000:c1:00.0"),
        ("0000:81:00.0", "0000:81:00.0"),
        ("?", "?"),
    ],
)
def test_pci_address_is_written_as_the_kernel_writes_it(given: str, kernel: str) -> None:
    assert pci_address(given) == kernel


@pytest.mark.parametrize(
    ("number", "version"), [(12040, "12.4"), (11080, "11.8"), (13000, "13.0"), (14010, "14.1")]
)
def test_cuda_version(number: int, version: str) -> None:
    assert cuda_version(number) == version


@pytest.mark.parametrize(
    ("given", "version"),
    [("12.550.54.15", "550.54.15"), ("13.580.65.06", "580.65.06"), ("450.80.02", "450.80.02")],
)
def test_the_library_version_is_without_the_cuda_major(given: str, version: str) -> None:
    assert nvml_library_version(given) == version


@pytest.mark.parametrize(
    ("links", "name"),
    [({"level": 50, "nvlinks": 12}, "NV12"), ({"level": 50, "nvlinks": 0}, "SYS"), ({"level": 20, "nvlinks": 0}, "PXB"),
     ({"level": 70, "nvlinks": 0}, None), ({"unread": "Not Supported"}, None)],
)  # fmt: skip
def test_the_worst_link_is_named_as_nvidia_smi_names_it(links: dict[str, object], name: str | None) -> None:
    assert link_name(links) == name


def test_the_old_memory_call_leaves_reserved_unknown() -> None:
    card = gpu_of({"index": 0, "memory": {"total": 10, "used": 4, "free": 6}})
    assert (card.memory_used_bytes, card.memory_reserved_bytes) == (4, None)


def test_zero_is_a_value_and_not_a_gap() -> None:
    card = gpu_of({"index": 0, "utilization_pct": 0, "mig_enabled": 0, "power_mw": 0, "throttle_mask": 0})
    assert (card.utilization_pct, card.mig_enabled, card.power_w, card.throttle_reasons) == (
        0,
        False,
        0.0,
        (),
    )


def test_a_card_that_could_not_be_opened_has_only_its_error() -> None:
    assert gpu_of({"index": 3, "error": "GPU is lost", "error_code": 15}) == Gpu(
        index=3, error="GPU is lost", error_code=15
    )


def test_a_process_listed_twice_is_given_once() -> None:
    row = {"index": 1, "processes": [[7, 100], [7, 100], [8, None]]}
    assert [(one.pid, one.used_bytes) for one in processes_of(row)] == [(7, 100), (8, None)]


def test_a_fabric_that_no_card_has_is_unknown_not_broken() -> None:
    assert fabric_of([{"index": 0}, {"index": 1, "fabric_state": 0}]) is None
