"""Transfer rates, GPM, NVLink errors and Xids: what the sampler has is what the stand-in driver said, and gaps have reasons."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from doctor.gpu_meter import GpuMeter
from doctor.probes.nvml import NvmlReader
from doctor.probes.nvml_rates import NvmlXid
from runner.text import t
from tests.nvml.build import environment, has_compiler, write_scenario

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler for the stand-in NVML")
HOPPER = {
    "gpu.gpm": 1, "gpu0.gpm.2": 81.5, "gpu0.gpm.5": 37.5, "gpu0.gpm.20": 300, "gpu0.gpm.21": 1200, "gpu0.gpm.60": 20000, "gpu0.gpm.61": 10000,
    "gpu.nvlink_errors": 0, "gpu0.nvlink_errors.2.1": 5,
}  # fmt: skip
AMPERE = {
    "gpu.pcie_throughput_kb.0": 1500, "gpu.pcie_throughput_kb.1": 25_000, "gpu.nvlink.0": 1, "gpu.nvlink.1": 1, "gpu.nvlink_errors": 0,
    "gpu.field_per_s.138": 2_000_000, "gpu.field_per_s.139": 1_000_000,
}  # fmt: skip
OLD_DRIVER = {
    "error.nvmlGpmQueryDeviceSupport": 13, "error.nvmlDeviceGetFieldValues": 13, "error.nvmlDeviceGetNvLinkState": 13,
    "error.nvmlDeviceGetPcieThroughput": 13, "error.nvmlEventSetCreate": 13,
}  # fmt: skip


def sampled(path: Path, base: str, changes: Mapping[str, object], looks: int = 2) -> list[dict[str, Any]]:
    """Return the cards after some looks, a moment apart."""
    meter = GpuMeter(reader=NvmlReader(environment(write_scenario(path / "s.conf", base, changes))))
    try:
        for _ in range(looks):
            answer = meter.sample()
            time.sleep(0.2)
    finally:
        meter.close()
    assert "gpus" in answer, answer
    cards: list[dict[str, Any]] = answer["gpus"]
    return cards


def test_a_hopper_card_tells_its_activity_and_rates_through_gpm(tmp_path: Path) -> None:
    first, second, *_ = sampled(tmp_path, "8xh100", HOPPER)
    expected = {
        "sm_active_pct": 81.5, "tensor_active_pct": 37.5, "pcie_tx_bytes_per_s": 300 << 20, "pcie_rx_bytes_per_s": 1200 << 20,
        "nvlink_rx_bytes_per_s": 20000 << 20, "nvlink_tx_bytes_per_s": 10000 << 20, "nvlink_errors": 5,
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    assert second["nvlink_errors"] == 0
    assert "sm_active_pct" not in second, "a metric that the card refused is no 0"


def test_an_older_card_tells_pcie_by_its_counter_and_nvlink_by_two_looks(tmp_path: Path) -> None:
    (card,) = sampled(tmp_path, "healthy-4090", AMPERE)
    assert (card["pcie_tx_bytes_per_s"], card["pcie_rx_bytes_per_s"]) == (1.5e6, 25e6)
    assert card["nvlink_tx_bytes_per_s"] == pytest.approx(2_000_000 * 1024, rel=0.01)
    assert card["nvlink_rx_bytes_per_s"] == pytest.approx(1_000_000 * 1024, rel=0.01)
    assert card["unread"]["sm_active_pct"] == "Not Supported"


def test_a_rate_needs_two_looks_and_is_no_zero_before(tmp_path: Path) -> None:
    (card,) = sampled(tmp_path, "healthy-4090", AMPERE, looks=1)
    assert "nvlink_tx_bytes_per_s" not in card
    assert "nvlink_tx_bytes_per_s" not in card["unread"]


def test_a_driver_without_these_calls_costs_their_values_only(tmp_path: Path) -> None:
    (card,) = sampled(tmp_path, "healthy-4090", OLD_DRIVER)
    assert card["temperature_c"] == 34
    told = t("not told by this driver")
    names = ("sm_active_pct", "pcie_rx_bytes_per_s", "nvlink_tx_bytes_per_s", "nvlink_errors")
    assert [card["unread"][name] for name in names] == [told] * 4


def test_a_card_that_is_lost_keeps_no_rates_and_the_others_do(tmp_path: Path) -> None:
    cards = sampled(tmp_path, "lost-card", {"gpu.pcie_throughput_kb.0": 7, "gpu.pcie_throughput_kb.1": 8})
    assert [card.get("pcie_tx_bytes_per_s") for card in cards] == [7000, 7000, None, None]


def test_nvml_tells_each_xid_once_with_its_card(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.conf", "8xh100", {})
    now = [1000.0]
    meter = GpuMeter(reader=NvmlReader(environment(path), clock=lambda: now[0]), clock=lambda: now[0])
    told: list[list[NvmlXid] | str | None] = [meter.take_xids()]
    try:
        for xid in (None, "79 (one)", "79 (one)", "31"):
            write_scenario(path, "8xh100", {"gpu3.xid": xid} if xid else {})
            meter.sample()
            told.append(meter.take_xids())
            now[0] += 11
    finally:
        meter.close()
    assert told == [None, [], [NvmlXid(gpu_index=3, number=79)], [], [NvmlXid(gpu_index=3, number=31)]]


def test_where_nvml_may_not_tell_of_xids_it_says_why(tmp_path: Path) -> None:
    path = write_scenario(tmp_path / "s.conf", "8xh100", {"error.nvmlDeviceRegisterEvents": 4})
    meter = GpuMeter(reader=NvmlReader(environment(path)))
    try:
        meter.sample()
        assert meter.take_xids() == "Insufficient Permissions"
    finally:
        meter.close()
