"""The kernel's log: which lines are kept, and that a log that may not be read is not a quiet one."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.probes import Context, kernel_log
from tests.probes.nvml_machines import write

XID = "4,901,5678901234,-;NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
QUIET = ["6,0,0,-;Linux version 5.15.0-105-generic", "6,1,10,-;usb 1-1: new device", " SUBSYSTEM=usb"]


def context(root: Path) -> Context:
    return Context(root=root, environ={}, cwd=root)


@pytest.mark.parametrize(
    "message",
    [
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 27 LTSSM Fault Up",
        "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-1",
        "Memory cgroup out of memory: Killed process 4121 (python) total-vm:90000kB",
    ],
)
def test_lines_of_gpus_pcie_and_killed_processes_are_kept(message: str) -> None:
    assert kernel_log.parse_kmsg([*QUIET, f"3,2,1500000,-;{message}"]).lines == (f"[    1.500000] {message}",)


@pytest.mark.parametrize(
    "message", ["usb 1-1: new device", "EXT4-fs (sda1): mounted", "systemd[1]: Started Daily aerial survey"]
)
def test_other_lines_are_left(message: str) -> None:
    assert kernel_log.parse_kmsg([f"6,0,0,-;{message}"]).lines == ()


def test_a_ring_that_lost_its_beginning_is_not_complete() -> None:
    log = kernel_log.parse_kmsg([XID])
    assert (len(log.lines), log.complete) == (1, False)
    assert "overwritten" in str(log.unread["lines"])
    assert kernel_log.parse_kmsg(QUIET).complete


def test_a_card_that_writes_thousands_of_lines_is_bounded_to_the_newest() -> None:
    records = [
        f"4,{number},{number}000000,-;NVRM: Xid (PCI:0000:01:00): 31, number {number}"
        for number in range(5000)
    ]
    log = kernel_log.parse_kmsg(records)
    assert len(log.lines) == kernel_log.KEEP_LINES
    assert log.lines[-1].endswith("number 4999")
    assert not log.complete


def test_escapes_in_a_message_are_made_safe() -> None:
    (line,) = kernel_log.parse_kmsg(["4,0,0,-;NVRM: name=\x1b[31mx"]).lines
    assert "\x1b" not in line


def test_the_ring_is_read_where_the_device_is_there(tmp_path: Path) -> None:
    write(tmp_path, {"/dev/kmsg": "\n".join([*QUIET, XID]) + "\n"})
    reading = kernel_log.probe(context(tmp_path))
    assert (reading.status, reading.source) == ("ok", "/dev/kmsg (dmesg)")
    assert reading.value is not None
    assert reading.value.lines == (f"[ 5678.901234] {XID.partition(';')[2]}",)


def test_syslogs_file_is_read_where_the_ring_may_not_be(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "/var/log/kern.log": "Mar  5 host kernel: NVRM: Xid (PCI:0000:01:00): 48\nMar  5 host kernel: usb 1-1\n"
        },
    )
    reading = kernel_log.probe(context(tmp_path))
    assert (reading.status, reading.source) == ("ok", "/var/log/kern.log")
    assert reading.value is not None
    assert len(reading.value.lines) == 1
    assert not reading.value.complete


def test_a_log_that_may_not_be_read_is_failed_with_every_refusal(tmp_path: Path) -> None:
    (tmp_path / "var/log/kern.log").mkdir(parents=True)
    reading = kernel_log.probe(context(tmp_path))
    assert (reading.status, reading.value) == ("failed", None)
    for place in ("/dev/kmsg", "/var/log/kern.log", "/var/log/dmesg"):
        assert place in str(reading.why)


def test_the_text_of_the_system_call_is_read_like_the_ring() -> None:
    log = kernel_log.parse_dmesg(
        "<5>[    0.000000] Linux version 5.15\n<4>[   12.500000] NVRM: Xid (PCI:0000:01:00): 31\n"
    )
    assert (log.lines, log.complete) == (("[   12.500000] NVRM: Xid (PCI:0000:01:00): 31",), True)
    assert not kernel_log.parse_dmesg("<4>[   12.500000] NVRM: Xid (PCI:0000:01:00): 31\n").complete
