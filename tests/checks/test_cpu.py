"""The CPUs a process really gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Container, Host, Workload
from tests.checks.judged import said, the, variables

QUOTA, THREADS = "cpu-quota-below-host-count", "thread-count-above-cpus"


@pytest.mark.parametrize(
    ("host", "container", "workers", "level"),
    [
        pytest.param(
            Host(cpu_count=12, affinity_count=12), Container(cpu_quota_cores=4.0), 12, "warn", id="quota of 4"
        ),
        pytest.param(
            Host(cpu_count=40, affinity_count=2),
            Container(cpu_quota_unlimited=True),
            20,
            "warn",
            id="affinity of 2",
        ),
        pytest.param(
            Host(cpu_count=128, affinity_count=128),
            Container(cpu_quota_cores=16.0),
            8,
            "note",
            id="few workers",
        ),
        pytest.param(
            Host(cpu_count=128, affinity_count=128),
            Container(cpu_quota_cores=16.0),
            None,
            "note",
            id="workers unknown",
        ),
        pytest.param(
            Host(cpu_count=12, affinity_count=12),
            Container(cpu_quota_unlimited=True),
            12,
            None,
            id="all of them",
        ),
        pytest.param(Host(cpu_count=12), Container(), 12, None, id="neither quota nor mask known"),
        pytest.param(
            Host(cpu_count=2, affinity_count=2),
            Container(cpu_quota_cores=0.5),
            2,
            "warn",
            id="half a CPU counts as one",
        ),
    ],
)
def test_workers_and_cpus(host: Host, container: Container, workers: int | None, level: str | None) -> None:
    run = Workload(num_workers=workers, source="x")
    assert said(host=host, container=container, workload=run).get(QUOTA) == level


def test_the_smaller_of_mask_and_quota_counts() -> None:
    found = the(
        QUOTA,
        host=Host(cpu_count=64, affinity_count=32),
        container=Container(cpu_quota_cores=6.0),
        workload=Workload(num_workers=16),
    )
    assert "num_workers=6" in str(found.advice)


@given(st.floats(0.5, 64), st.floats(0.5, 64), st.integers(0, 64))
def test_more_cpus_never_add_a_finding(one: float, other: float, workers: int) -> None:
    small, large = sorted((one, other))
    host, run = Host(cpu_count=64, affinity_count=64), Workload(num_workers=workers, source="x")
    rank = {None: 0, "note": 1, "warn": 2}
    worse, better = (
        rank[said(host=host, container=Container(cpu_quota_cores=cores), workload=run).get(QUOTA)]
        for cores in (small, large)
    )
    assert better <= worse


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        pytest.param({"OMP_NUM_THREADS": "64"}, "warn", id="64 threads on 8 CPUs"),
        pytest.param({"OMP_NUM_THREADS": "10"}, "note", id="a few more than CPUs"),
        pytest.param({"OMP_NUM_THREADS": "8"}, None, id="as many"),
        pytest.param({"OMP_NUM_THREADS": "4,2"}, None, id="nested levels"),
        pytest.param({"OMP_NUM_THREADS": "0"}, "note", id="zero"),
        pytest.param({"OMP_NUM_THREADS": ""}, "note", id="empty"),
        pytest.param({}, "note", id="not set under a quota far below the host's count"),
    ],
)
def test_thread_variables(environment: dict[str, str], level: str | None) -> None:
    machine: dict[str, Any] = {
        "host": Host(cpu_count=64, affinity_count=64),
        "container": Container(cpu_quota_cores=8.0),
    }
    assert said(environment=variables(**environment), **machine).get(THREADS) == level
