"""Xids as they come: the kernel log's new lines with the card they are of, else NVML's word, else why neither can be had."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from doctor.gpu_meter import GpuMeter
from doctor.model import Gpu, Text
from doctor.probes import Context
from doctor.probes.nvml_rates import NvmlXid, Rates
from doctor.probes.nvml_rows import NvmlProcess
from doctor.probes.xid_watch import LOOK_EVERY_S, XidWatch

CARDS = [
    Gpu(index=0, name="H100", pci_address="0000:04:00.0"),
    Gpu(index=1, name="H100", pci_address="0000:05:00.0"),
]


class Driver:
    """An NVML reader of two cards."""

    def __init__(self, unread: str | None = "Not Supported", cards: list[Gpu] | None = None) -> None:
        self.is_waiting = False
        self.processes: tuple[NvmlProcess, ...] = ()
        self.processes_unread = ""
        self.rates: dict[int, Rates] = {}
        self.xids: list[NvmlXid] = []
        self.xids_unread = unread
        self.cards = CARDS if cards is None else cards

    def sample(self, timeout_s: float = 0.0) -> list[Gpu]:
        return self.cards

    def close(self) -> None: ...


def meter(driver: Driver) -> GpuMeter:
    gpus = GpuMeter(reader=driver)
    gpus.sample()
    return gpus


def record(xid: int, pci: str, seconds: float = 1.0) -> str:
    """A line of /dev/kmsg."""
    return f"4,17,{int(seconds * 1e6)},-;NVRM: Xid (PCI:{pci}): {xid}, pid=77, something\n SUBSYSTEM=pci\n"


class Watched:
    """A machine whose kernel log is a file."""

    def __init__(self, root: Path, before: str = "", driver: Driver | None = None) -> None:
        (root / "dev").mkdir(parents=True)
        self.log = root / "dev/kmsg"
        self.log.write_text(before)
        self.watch = XidWatch(Context(root=root), clock=lambda: 5000.0)
        self.gpus = meter(driver or Driver())
        self.now = 0.0

    def look(self, more: str = "") -> list[tuple[str, dict[str, Any]]]:
        with open(self.log, "a") as file:
            file.write(more)
        self.now += LOOK_EVERY_S
        return list(self.watch.look(self.now, self.gpus))


def test_a_new_line_is_told_once_with_card_time_and_meaning(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m")
    assert machine.look() == [("sample-xids", {"source": "kernel log"})]
    ((kind, data),) = machine.look(record(79, "0000:05:00", time.monotonic() - 3))
    assert (kind, data["number"], data["fault"], data["gpu_index"]) == ("xid", 79, "hardware", 1)
    assert data["meaning"] == "the GPU has fallen off the bus"
    assert data["at"] == pytest.approx(4997, abs=1)
    assert machine.look() == []


def test_what_stood_there_before_is_not_of_this_run(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m", before=record(79, "0000:04:00"))
    assert [kind for kind, _ in machine.look()] == ["sample-xids"]


def test_a_half_written_record_waits_for_its_rest(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m")
    whole = record(31, "0000:04:00")
    machine.look(whole[:30])
    assert [data["number"] for kind, data in machine.look(whole[30:]) if kind == "xid"] == [31]


def test_another_tenants_card_is_not_taken_for_ours(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m")
    machine.look()
    ((_, data),) = machine.look(record(79, "0000:c1:00"))
    assert data["is_ours"] is False
    unknown = Watched(tmp_path / "n", driver=Driver(cards=[Gpu(index=0, name="X")]))
    unknown.look()
    ((_, data),) = unknown.look(record(79, "0000:c1:00"))
    assert "is_ours" not in data, "whose it is cannot be told where our own address is not known"


def test_a_flood_is_cut(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m")
    machine.look()
    assert len(machine.look(record(31, "0000:04:00") * 5000)) == 20


def test_nobody_looks_more_often_than_every_ten_seconds(tmp_path: Path) -> None:
    machine = Watched(tmp_path / "m")
    machine.look()
    machine.now -= LOOK_EVERY_S / 2
    assert machine.look(record(79, "0000:04:00"))[:1] == [], "5 s after the look before"


def no_log(tmp_path: Path, driver: Driver) -> tuple[XidWatch, GpuMeter]:
    (tmp_path / "bare").mkdir()
    return XidWatch(Context(root=tmp_path / "bare"), clock=lambda: 5000.0), meter(driver)


def test_without_a_kernel_log_nvml_tells(tmp_path: Path) -> None:
    driver = Driver(unread="")
    watch, gpus = no_log(tmp_path, driver)
    ((kind, data),) = watch.look(0.0, gpus)
    assert (kind, data["source"]) == ("sample-xids", "NVML")
    driver.xids.append(NvmlXid(gpu_index=1, number=48))
    ((_, data),) = watch.look(20.0, gpus)
    assert data == {"number": 48, "fault": "hardware", "meaning": "uncorrectable (double bit) memory error", "pci": "0000:05:00", "at": 5000.0, "gpu_index": 1}  # fmt: skip


def test_where_neither_can_be_read_the_reasons_are_said_once(tmp_path: Path) -> None:
    watch, gpus = no_log(tmp_path, Driver(unread="Insufficient Permissions"))
    ((kind, data),) = watch.look(0.0, gpus)
    assert kind == "sample-xids"
    assert isinstance(data["why"], Text)
    assert "/dev/kmsg" in str(data["why"])
    assert "NVML: Insufficient Permissions" in str(data["why"])
    assert list(watch.look(20.0, gpus)) == []


def test_a_log_that_can_only_be_read_whole_gives_its_new_lines(tmp_path: Path) -> None:
    root = tmp_path / "m"
    (root / "var/log").mkdir(parents=True)
    log = root / "var/log/kern.log"
    log.write_text("Nov 30 10:00:00 box kernel: NVRM: Xid (PCI:0000:04:00): 13, old\n")
    watch, gpus = XidWatch(Context(root=root), clock=lambda: 5000.0), meter(Driver())
    assert [kind for kind, _ in watch.look(0.0, gpus)] == ["sample-xids"]
    with open(log, "a") as file:
        file.write("Nov 30 11:00:00 box kernel: NVRM: Xid (PCI:0000:04:00): 31, new\n")
    ((_, data),) = watch.look(20.0, gpus)
    assert (data["number"], data["gpu_index"], data["at"]) == (31, 0, 5000.0)
