"""Shared memory, the container's limit, killed processes, a fragmented allocator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Container, Gpu, Gpus, Host, Incident, KernelLog, Mount, Storage, Workload
from tests.checks.judged import loud, packages, said, the, torch, variables

MB, GB = 1 << 20, 1 << 30
SHM = "shm-too-small"


def shm(size_mb: int) -> Storage:
    return Storage(
        mounts=(Mount(path="/dev/shm", fstype="tmpfs", size_bytes=size_mb * MB, free_bytes=size_mb * MB),)
    )


INSIDE, OUTSIDE = Container(inside=True), Container(inside=False)
BUS = ("RuntimeError: DataLoader worker (pid 231) is killed by signal: Bus error.",)


@pytest.mark.parametrize(
    ("machine", "level"),
    [
        pytest.param(
            {"storage": shm(64), "container": INSIDE, "workload": Workload(num_workers=4)},
            "warn",
            id="64 MB and workers",
        ),
        pytest.param({"storage": shm(64), "container": INSIDE}, "note", id="64 MB, workers unknown"),
        pytest.param(
            {"storage": shm(64), "container": INSIDE, "workload": Workload(num_workers=0, source="x")},
            None,
            id="64 MB, no workers",
        ),
        pytest.param(
            {"storage": shm(64), "container": INSIDE, "gpus": Gpus(items=(Gpu(), Gpu(index=1)))},
            "warn",
            id="64 MB and two cards",
        ),
        pytest.param({"storage": shm(64), "container": OUTSIDE}, None, id="no container, workers unknown"),
        pytest.param(
            {"storage": shm(512), "container": INSIDE, "workload": Workload(num_workers=16)},
            "warn",
            id="512 MB for 16 workers",
        ),
        pytest.param(
            {"storage": shm(512), "container": INSIDE, "workload": Workload(num_workers=2)},
            None,
            id="512 MB for two",
        ),
        pytest.param(
            {"storage": shm(1024), "incident": Incident(log_lines=BUS)}, "warn", id="a log that shows it"
        ),
        pytest.param(
            {"storage": shm(65536), "incident": Incident(log_lines=BUS)},
            None,
            id="a bus error with 64 GB is something else",
        ),
    ],
)
def test_shared_memory(machine: dict[str, Any], level: str | None) -> None:
    assert said(**machine).get(SHM) == level


def test_advice_for_a_pod_is_not_dockers() -> None:
    pod = Container(inside=True, kind="kubernetes")
    advice = str(the(SHM, storage=shm(64), container=pod, workload=Workload(num_workers=2)).advice)
    assert "emptyDir" in advice
    assert "--shm-size" not in advice


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(0, 32))
def test_more_shared_memory_never_adds_a_finding(one: int, other: int, workers: int) -> None:
    small, large = sorted((one, other))
    run = Workload(num_workers=workers, source="x")
    worse, better = (
        said(storage=shm(size), container=INSIDE, workload=run).get(SHM) for size in (small, large)
    )
    assert better is None or worse is not None


LIMIT = "cgroup-memory-below-host"
HOST = Host(memory_total_bytes=500 * GB)


@pytest.mark.parametrize(
    ("container", "incident", "level"),
    [
        pytest.param(
            Container(memory_limit_bytes=8 * GB, memory_current_bytes=6 * GB, oom_kill_count=1),
            None,
            "warn",
            id="killed before",
        ),
        pytest.param(Container(memory_limit_bytes=8 * GB), Incident(exit_code=137), "warn", id="exit 137"),
        pytest.param(
            Container(memory_limit_bytes=8 * GB, memory_current_bytes=8 * GB - 1),
            None,
            "note",
            id="full of page cache is ordinary",
        ),
        pytest.param(
            Container(memory_limit_bytes=120 * GB, oom_kill_count=0),
            None,
            "note",
            id="every rented container",
        ),
        pytest.param(Container(memory_limit_unlimited=True), None, None, id="no limit"),
        pytest.param(Container(memory_limit_bytes=499 * GB), None, None, id="the host's own size"),
    ],
)
def test_the_containers_memory(container: Container, incident: Incident | None, level: str | None) -> None:
    machine = {"container": container, "host": HOST} | ({"incident": incident} if incident else {})
    assert said(**machine).get(LIMIT) == level


def test_kills_are_named_from_every_source() -> None:
    line = "[123.4] Out of memory: Killed process 4121 (python) total-vm:90GB"
    found = the("process-killed-for-memory", kernel_log=KernelLog(lines=("eth0 up", line)))
    assert "python (pid 4121)" in str(found.title)
    assert found.level == "note"
    assert said(container=Container(oom_kill_count=2))["process-killed-for-memory"] == "note"
    ended = said(container=Container(oom_kill_count=2), incident=Incident(exit_code=137))
    assert ended["process-killed-for-memory"] == "warn"
    neighbours = said(container=Container(inside=True), kernel_log=KernelLog(lines=(line,)))
    assert "process-killed-for-memory" not in neighbours
    assert said(incident=Incident(exit_code=137))["process-killed-for-memory"] == "note"
    assert said(incident=Incident(exit_code=137, oom_killed=True))["process-killed-for-memory"] == "warn"
    assert said(incident=Incident(exit_code=1), container=Container(oom_kill_count=0)) == {}


FRAGMENTED = "allocator-fragmentation"


@pytest.mark.parametrize(
    ("allocated_gb", "reserved_gb", "tried_gb", "found"),
    [
        pytest.param(60, 74, 2, True, id="14 GB unused, 2 GB refused"),
        pytest.param(72, 74, 4, False, id="the unused part was too small anyway"),
        pytest.param(20, 20.5, 0.2, False, id="half a GB unused is ordinary"),
        pytest.param(0, 0, 2, False, id="nothing reserved: the card was full of others"),
        pytest.param(10, 16, 1, True, id="a smaller card"),
    ],
)
def test_fragmentation_is_memory_held_and_not_used(
    allocated_gb: float, reserved_gb: float, tried_gb: float, found: bool
) -> None:
    ended = Incident(
        torch_allocated_bytes=int(allocated_gb * GB),
        torch_reserved_bytes=int(reserved_gb * GB),
        oom_tried_bytes=int(tried_gb * GB),
    )
    assert (FRAGMENTED in said(incident=ended)) is found


ENDED = Incident(torch_allocated_bytes=60 * GB, torch_reserved_bytes=74 * GB, oom_tried_bytes=2 * GB)


@pytest.mark.parametrize(
    ("machine", "advised"),
    [
        pytest.param({"torch": torch("2.8.0+cu128")}, True, id="an ordinary torch"),
        pytest.param({"torch": torch("2.0.1+cu118")}, False, id="a torch that does not know the setting"),
        pytest.param(
            {"environment": variables(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")},
            False,
            id="it is on already",
        ),
        pytest.param(
            {"packages": packages(vllm="0.17.1"), "workload": Workload(colocated=("vllm",))},
            False,
            id="beside an older vLLM",
        ),
        pytest.param(
            {"packages": packages(vllm="0.21.0"), "workload": Workload(colocated=("vllm",))},
            True,
            id="beside a vLLM that copes",
        ),
        pytest.param(
            {"packages": packages(vllm="0.17.1")}, True, id="vLLM is installed but not in the same process"
        ),
    ],
)
def test_expandable_segments_are_advised_where_they_work(machine: dict[str, Any], advised: bool) -> None:
    advice = str(the(FRAGMENTED, incident=ENDED, **machine).advice)
    assert ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in advice) is advised


def test_ghost_memory_of_a_context_is_not_fragmentation() -> None:
    assert (
        loud(
            incident=Incident(torch_allocated_bytes=0, torch_reserved_bytes=0, own_gpu_process_bytes=430 * MB)
        )
        == {}
    )
