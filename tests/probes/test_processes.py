"""The walk over /proc: what it keeps, what it leaves, and that it says what it did not reach."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from doctor.model import Processes, Reading
from doctor.probes import Context, processes
from tests.probes.nvml_machines import process, write

KERNEL_THREAD = 0x00200000


def probe(root: Path, *, gpu: bool = True) -> Reading[Processes]:
    write(root, {"/proc/uptime": "140.00 500.00\n", **({"/dev/nvidia0": ""} if gpu else {})})
    return processes.probe(Context(root=root, environ={}, cwd=root))


def kept(reading: Reading[Processes]) -> dict[int, str]:
    assert reading.status == "ok"
    assert reading.value is not None
    return {one.pid: one.command for one in reading.value.items}


@pytest.mark.parametrize(
    ("command", "files", "is_kept"),
    [
        ("python -u train.py", (), True),
        ("/opt/conda/bin/python3.11 -m torch.distributed.run x.py", (), True),
        ("pt_main_thread", (), False),
        ("python -m ipykernel_launcher -f kernel-9.json", (), True),
        ("python -m http.server", (), False),
        ("bash train.sh", (), False),
        ("vim train.py", (), False),
        ("nvidia-persistenced", ("/dev/nvidiactl", "/dev/nvidia0"), True),
        ("some-server", ("/dev/nvidia0",), True),
        ("python -I -S -c x /env/site-packages/doctor/probes/nvml_child.py y", ("/dev/nvidia0",), False),
    ],
)
def test_holders_of_a_card_and_trainings_are_kept(
    command: str, files: tuple[str, ...], is_kept: bool, tmp_path: Path
) -> None:
    process(tmp_path, 100, command, *files)
    assert kept(probe(tmp_path)) == ({100: command} if is_kept else {})


def test_a_holder_comes_with_its_files_its_age_and_its_state(tmp_path: Path) -> None:
    process(
        tmp_path, 100, "python x.py", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidia0", start=4000, state="D"
    )
    reading = probe(tmp_path)
    assert reading.value is not None
    (one,) = reading.value.items
    assert one.gpu_files == ("/dev/nvidia-uvm", "/dev/nvidia0")
    assert (one.state, one.parent_pid, one.age_s, one.is_ours) == ("D", 1, 100.0, True)
    assert one.command == "[python]", (
        "the command line of a stuck process is not read: that could hang us too"
    )


def test_kernel_threads_and_half_gone_processes_are_passed_over(tmp_path: Path) -> None:
    process(tmp_path, 2, "", "/dev/nvidia0", flags=KERNEL_THREAD)
    write(tmp_path, {"/proc/300/status": "Name: gone\n", "/proc/301/stat": "301 (broken"})
    assert kept(probe(tmp_path)) == {}


def test_a_process_that_may_not_be_looked_into_is_counted_and_is_no_error(tmp_path: Path) -> None:
    process(tmp_path, 100, "some-server")
    for link in (tmp_path / "proc/100/fd").iterdir():
        link.unlink()
    (tmp_path / "proc/100/fd").rmdir()
    reading = probe(tmp_path)
    assert kept(reading) == {}
    assert reading.value is not None
    assert reading.value.unread["gpu_files"].params == {"count": 1}


def test_without_a_card_nobodys_files_are_missed(tmp_path: Path) -> None:
    process(tmp_path, 100, "some-server")
    for link in (tmp_path / "proc/100/fd").iterdir():
        link.unlink()
    (tmp_path / "proc/100/fd").rmdir()
    reading = probe(tmp_path, gpu=False)
    assert reading.value is not None
    assert reading.value.unread == {}


def test_what_was_not_reached_in_time_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in range(100, 130):
        process(tmp_path, pid, "python train.py")
    monkeypatch.setattr(processes, "BUDGET_S", -1.0)
    reading = probe(tmp_path)
    assert reading.value is not None
    assert reading.value.unread["items"].params == {"reached": 0, "all": 30}


def test_ten_thousand_names_leave_time_to_look_at_what_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the names takes longer than the looking may: the trainings are looked at all the same."""
    for pid in range(100, 130):
        process(tmp_path, pid, "python train.py")
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) * 0.01)
    reading = probe(tmp_path)
    assert reading.value is not None
    assert reading.value.items


def test_names_that_were_not_reached_in_time_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(100, 130):
        process(tmp_path, pid, "python train.py")
    monkeypatch.setattr(processes, "LIST_BUDGET_S", -1.0)
    reading = probe(tmp_path)
    assert reading.value is not None
    assert reading.value.unread["items"].params == {"reached": 0, "all": 30}


def test_a_flood_of_trainings_is_bounded_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in range(100, 110):
        process(tmp_path, pid, "python train.py")
    monkeypatch.setattr(processes, "KEEP", 3)
    reading = probe(tmp_path)
    assert sorted(kept(reading)) == [107, 108, 109], "the newest"
    assert reading.value is not None
    assert "items" in reading.value.unread


def test_a_machine_without_proc_reads_failed(tmp_path: Path) -> None:
    reading = processes.probe(Context(root=tmp_path, environ={}, cwd=tmp_path))
    assert reading.status == "failed"
    assert "/proc" in str(reading.why)


def test_we_ourselves_are_not_among_them() -> None:
    reading = processes.probe(Context())
    assert os.getpid() not in kept(reading)
