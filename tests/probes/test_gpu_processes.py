"""A process number from NVML is someone here only when that is proven."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.model import GpuProcess
from doctor.probes import driver
from tests.nvml.build import has_compiler, write_scenario
from tests.probes.nvml_machines import context_on, driver_files, process, write

pytestmark = pytest.mark.skipif(
    not has_compiler(), reason="the stand-in NVML is C, and there is no compiler here"
)


def listed(root: Path, pid: int, *, first_namespace: bool = False) -> GpuProcess:
    """Return what the probe makes of ``pid`` when NVML lists it with 100 MiB."""
    write(root, {**driver_files(), "/proc/uptime": "140.00 500.00\n"})
    (root / "proc/self/ns").mkdir(parents=True)
    (root / "proc/self/ns/pid").symlink_to("pid:[4026531836]" if first_namespace else "pid:[4026532001]")
    scenario = write_scenario(root / "s.conf", "healthy-4090", {"gpu0.compute_process": f"{pid} 100"})
    reading = driver.probe_processes(context_on(scenario, root))
    assert reading.status == "ok"
    assert reading.value is not None
    (one,) = reading.value.items
    assert (one.pid, one.gpu_index, one.used_bytes) == (pid, 0, 100 << 20)
    return one


def test_one_that_holds_the_card_is_ours(tmp_path: Path) -> None:
    process(tmp_path, 100, "python train.py --lr 1e-4", "/dev/nvidia0", "/dev/nvidia-uvm", start=4000)
    one = listed(tmp_path, 100)
    assert (one.command, one.is_ours, one.uid) == ("python train.py --lr 1e-4", True, os.getuid())
    assert one.age_s == 140 - 4000 / os.sysconf("SC_CLK_TCK")


def test_a_number_that_means_nobody_here_has_no_command(tmp_path: Path) -> None:
    one = listed(tmp_path, 4194001)
    assert (one.command, one.is_ours, one.uid) == (None, False, None)


@pytest.mark.parametrize("first_namespace", [False, True], ids=["in a container", "on the host"])
def test_a_number_that_collides_with_a_process_without_the_card_is_not_that_process(
    first_namespace: bool, tmp_path: Path
) -> None:
    process(tmp_path, 100, "bash -l")
    one = listed(tmp_path, 100, first_namespace=first_namespace)
    assert (one.command, one.is_ours) == (None, False)


@pytest.mark.parametrize(
    ("first_namespace", "command"),
    [(True, "python serve.py"), (False, None)],
    ids=["on the host", "in a container"],
)
def test_files_that_may_not_be_listed_prove_nothing_but_the_hosts_numbers_do(
    first_namespace: bool, command: str | None, tmp_path: Path
) -> None:
    process(tmp_path, 100, "python serve.py")
    for link in (tmp_path / "proc/100/fd").iterdir():
        link.unlink()
    (tmp_path / "proc/100/fd").rmdir()
    one = listed(tmp_path, 100, first_namespace=first_namespace)
    assert (one.command, one.is_ours) == (command, False)


def test_a_name_with_terminal_escapes_is_made_safe(tmp_path: Path) -> None:
    process(tmp_path, 100, "python \x1b[2Jx.py", "/dev/nvidia0")
    assert listed(tmp_path, 100).command == "python \\x1b[2Jx.py"
