"""What the child's rows of rates and Xids mean: values, and why there are none. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doctor.model import Record, Text, t

RATE_FIELDS = (
    "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s", "nvlink_errors", "sm_active_pct", "tensor_active_pct",
)  # fmt: skip
NOT_SUPPORTED, NO_PERMISSION, NO_FUNCTION = 3, 4, 13
# Code -> what NVML calls it, where that is all there is to say.
_WORDS = {NOT_SUPPORTED: "Not Supported", NO_PERMISSION: "Insufficient Permissions"}


class Rates(Record, frozen=True):
    """One card's, of the seconds before they were read."""

    values: dict[str, float] = {}
    """By names of :data:`RATE_FIELDS`; bytes a second, percent, a count of errors since the driver was loaded."""
    unread: dict[str, str | Text] = {}


class NvmlXid(Record, frozen=True):
    """An Xid as NVML told of it: no more than its number."""

    gpu_index: int | None
    number: int


def rates_of(row: Mapping[str, Any]) -> Rates:
    """Return one card's rates from the child's row."""
    if row.get("failed"):
        return Rates(unread=dict.fromkeys(RATE_FIELDS, str(row["failed"])))
    values = {str(name): round(float(value), 1) for name, value in row.get("values", {}).items()}
    unread = {str(name): reason(code) for name, code in row.get("unread", {}).items()}
    return Rates(values=values, unread={name: why for name, why in unread.items() if name not in values})


def reason(code: int) -> str | Text:
    """Return why a value was not read, from NVML's code."""
    if code == NO_FUNCTION:
        return t("not told by this driver")
    return _WORDS.get(code, f"NVML {code}")


def xids_of(row: Mapping[str, Any]) -> list[NvmlXid]:
    return [NvmlXid(gpu_index=index, number=number) for index, number in row.get("events", ())]


def xids_reason(row: Mapping[str, Any]) -> str:
    """Return why NVML tells of no Xids, in its own words; empty: it does."""
    return str(reason(row["unread"])) if row.get("unread") is not None else ""
