"""How often the kernel stopped a container at its CPU limit, from both versions of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.probes.host_meter import CpuLimit


def v2(root: Path, quota: str, periods: int, stopped: int) -> None:
    (root / "cpu.max").write_text(f"{quota} 100000\n")
    (root / "cpu.stat").write_text(
        f"usage_usec 9\nnr_periods {periods}\nnr_throttled {stopped}\nthrottled_usec 5\n"
    )


def v1(root: Path, quota: str, periods: int, stopped: int) -> None:
    (root / "cpu").mkdir(exist_ok=True)
    (root / "cpu/cpu.cfs_quota_us").write_text("-1" if quota == "max" else quota)
    (root / "cpu/cpu.cfs_period_us").write_text("100000")
    (root / "cpu/cpu.stat").write_text(f"nr_periods {periods}\nnr_throttled {stopped}\nthrottled_time 5\n")


@pytest.mark.parametrize("write", [v2, v1], ids=["v2", "v1"])
def test_the_share_is_of_the_periods_between_two_looks(tmp_path: Path, write: object) -> None:
    assert callable(write)
    limit = CpuLimit(tmp_path)
    write(tmp_path, "50000", 100, 90)
    assert limit.sample() == {"cpu_cores_usable": 0.5}
    write(tmp_path, "50000", 110, 94)
    assert limit.sample() == {"cpu_cores_usable": 0.5, "cpu_throttled_pct": 40.0}


@pytest.mark.parametrize("write", [v2, v1], ids=["v2", "v1"])
def test_without_a_limit_nothing_is_said_of_being_stopped(tmp_path: Path, write: object) -> None:
    assert callable(write)
    limit = CpuLimit(tmp_path)
    for periods in (100, 200):
        write(tmp_path, "max", periods, periods)
        sample = limit.sample()
    assert set(sample) == {"cpu_cores_usable"}


def test_no_control_group_is_no_limit(tmp_path: Path) -> None:
    assert set(CpuLimit(tmp_path).sample()) == {"cpu_cores_usable"}
