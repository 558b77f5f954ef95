"""Bytes a second from two looks: what the run's processes moved, what the network moved, how full /dev/shm is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.probes.host_rates import HostRates, network_bytes, storage_bytes

IO = "rchar: 9999\nwchar: 8888\nsyscr: 1\nsyscw: 1\nread_bytes: {read}\nwrite_bytes: {write}\ncancelled_write_bytes: 0\n"
NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 777777 10 0 0 0 0 0 0 777777 10 0 0 0 0 0 0
  eth0:{rx} 10 0 0 0 0 0 0 {tx} 9 0 0 0 0 0 0
  eth1: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    look(tmp_path, rx=1000, tx=500)
    for pid in (10, 11):
        (tmp_path / str(pid)).mkdir()
        moved(tmp_path, pid, 0, 0)
    return tmp_path


def look(proc: Path, rx: int, tx: int) -> None:
    (proc / "net" / "dev").write_text(NET.format(rx=rx, tx=tx))


def moved(proc: Path, pid: int, read: int, write: int) -> None:
    (proc / str(pid) / "io").write_text(IO.format(read=read, write=write))


def test_the_first_look_has_no_rates_and_the_second_has_them(proc: Path) -> None:
    rates = HostRates(proc, proc)
    first, unread = rates.sample([10, 11], 100.0)
    assert unread == {}
    assert not [name for name in first if name.endswith("_per_s")]
    moved(proc, 10, 3000, 100)
    moved(proc, 11, 1000, 300)
    look(proc, rx=5000, tx=2500)
    second, _ = rates.sample([10, 11], 102.0)
    assert second["disk_read_bytes_per_s"] == 2000
    assert second["disk_write_bytes_per_s"] == 200
    assert second["network_rx_bytes_per_s"] == 2000
    assert second["network_tx_bytes_per_s"] == 1000


def test_a_worker_that_comes_or_goes_makes_no_jump(proc: Path) -> None:
    rates = HostRates(proc, proc)
    rates.sample([10], 100.0)
    moved(proc, 11, 10**12, 0)
    moved(proc, 10, 500, 0)
    assert rates.sample([10, 11], 101.0)[0]["disk_read_bytes_per_s"] == 500
    assert rates.sample([10, 4711], 102.0)[0]["disk_read_bytes_per_s"] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_what_may_not_be_read_says_why_in_a_real_proc() -> None:
    _, unread = HostRates().sample([1], 0.0)
    assert "Permission denied" in str(unread["disk_read_bytes_per_s"])


def test_what_is_no_such_text_is_named_and_the_rest_is_there(proc: Path) -> None:
    (proc / "net" / "dev").write_text("a\nb\neth0: many\n")
    (proc / "10" / "io").write_text("nonsense")
    data, unread = HostRates(proc, proc).sample([10], 0.0)
    assert set(unread) == {
        "disk_read_bytes_per_s",
        "disk_write_bytes_per_s",
        "network_rx_bytes_per_s",
        "network_tx_bytes_per_s",
    }
    assert data["shm_size_bytes"] > 0


def test_no_shm_is_said(proc: Path) -> None:
    data, unread = HostRates(proc, proc / "none").sample([10], 0.0)
    assert "shm_used_bytes" not in data
    assert str(unread["shm_used_bytes"]) == f"{proc / 'none'} could not be read: No such file or directory"


def test_the_real_files_of_this_kernel_are_understood() -> None:
    assert min(storage_bytes(Path(f"/proc/{os.getpid()}/io").read_text())) >= 0
    assert min(network_bytes(Path("/proc/net/dev").read_text())) >= 0
