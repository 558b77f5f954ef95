"""Literal texts of the kernel and what is read from them."""

from __future__ import annotations

import pytest

from doctor.probes.driver_sources import ProcCard, parse_nvrm_version, parse_open_module, parse_proc_card
from doctor.probes.nvidia_smi import FIELDS, parse_query

CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16-I3)  Thu Jan 23\n"
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021\nGCC version:  gcc version 9.3.0\n"


@pytest.mark.parametrize(
    ("banner", "version", "is_open"),
    [
        (CLOSED, "550.54.15", False),
        (OPEN, "570.86.15", True),
        (OLD, "470.57.02", False),
        ("", "", None),
        ("garbage 1.2\n", "", None),
    ],
    ids=["closed", "open", "old", "missing", "something else"],
)
def test_the_nvrm_banner(banner: str, version: str, is_open: bool | None) -> None:
    assert (parse_nvrm_version(banner), parse_open_module(banner)) == (version, is_open)


def test_a_card_in_proc() -> None:
    text = "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 16\nGPU UUID: \t GPU-9a\nVideo BIOS: \t 92.00.45.00.03\nBus Location: \t 0000:07:00.0\n"
    assert parse_proc_card("0000:07:00.0", text) == ProcCard(
        "0000:07:00.0", "NVIDIA A100-SXM4-80GB", "GPU-9a"
    )


@pytest.mark.parametrize(
    "output",
    [
        "",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "No devices were found\n",
        "0, only, three\n",
    ],
)
def test_what_is_no_query_row_is_no_card(output: str) -> None:
    assert parse_query(output, FIELDS) is None


def test_a_value_that_nvidia_smi_does_not_know_is_none() -> None:
    row = "0, Tesla K80, GPU-1, 00000000:01:00.0, 11441, [N/A], [Unknown Error], 470.57.02, [N/A]"
    found = parse_query(row, FIELDS)
    assert found is not None
    (card,), driver = found
    assert (card.memory_total_bytes, card.memory_used_bytes, card.compute_capability, driver) == (
        11441 << 20,
        None,
        "",
        "470.57.02",
    )
