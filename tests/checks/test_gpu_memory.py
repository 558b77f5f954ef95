"""Who holds the memory of the cards: named where that is certain, hidden where it is, silent where it is little."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.fixes import may_fix
from doctor.model import Container, GpuProcess, GpuProcesses, Gpus, Incident, Process, Processes
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards
from tests.checks.judged import said, the

GIB = 1 << 30
OURS = {
    "vram-held-by-process",
    "orphan-process-holds-vram",
    "gpu-processes-hidden-by-pid-namespace",
    "vram-mostly-used",
}


def used(gib: float, total: float = 24.0) -> Gpus:
    return cards(memory_total_bytes=int(total * GIB), memory_used_bytes=int(gib * GIB))


def listed(*rows: tuple[int, float, str | None]) -> GpuProcesses:
    return GpuProcesses(
        items=tuple(GpuProcess(pid=pid, gpu_index=0, used_bytes=int(gib * GIB), command=command) for pid, gib, command in rows)
    )  # fmt: skip


def holding(pid: int, parent: int, command: str = "python train.py") -> Processes:
    return Processes(
        items=(Process(pid=pid, parent_pid=parent, command=command, gpu_files=("/dev/nvidia0",)),)
    )


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param({"gpus": used(20), "gpu_processes": listed((7, 19.5, "python serve.py")), "container": OUTSIDE}, {"vram-held-by-process", "vram-mostly-used"}, id="a live process, listed by NVML"),
        pytest.param({"gpus": used(11), "gpu_processes": listed(), "processes": holding(7, 1), "container": OUTSIDE}, {"orphan-process-holds-vram"}, id="a worker whose run is gone"),
        pytest.param({"gpus": used(11), "gpu_processes": listed(), "processes": holding(7, 1), "container": Container(inside=True, host_pid_namespace=True)}, {"orphan-process-holds-vram"}, id="the same where all pids are seen"),
        pytest.param({"gpus": used(11), "gpu_processes": listed((7, 10.9, "python train.py")), "processes": holding(7, 1), "container": OUTSIDE}, {"vram-held-by-process"}, id="nohup: parent 1, but NVML lists it"),
        pytest.param({"gpus": used(11), "gpu_processes": listed(), "processes": holding(7, 1), "container": INSIDE}, {"vram-held-by-process"}, id="in a container parent 1 proves nothing"),
        pytest.param({"gpus": used(11), "gpu_processes": listed(), "container": INSIDE}, {"gpu-processes-hidden-by-pid-namespace"}, id="nobody to be seen in a container"),
        pytest.param({"gpus": used(11), "gpu_processes": listed((90210, 10.0, None)), "container": INSIDE}, {"gpu-processes-hidden-by-pid-namespace"}, id="a pid of the host"),
        pytest.param({"gpus": used(11), "gpu_processes": listed(), "container": OUTSIDE}, set(), id="half free, and nobody is hidden"),
        pytest.param({"gpus": used(21), "gpu_processes": listed(), "container": OUTSIDE}, {"vram-mostly-used"}, id="nearly full, whoever it is"),
        pytest.param({"gpus": used(0.5), "gpu_processes": listed((7, 0.4, "Xorg")), "container": OUTSIDE}, set(), id="a display"),
        pytest.param({"gpus": used(20), "incident": Incident(own_gpu_process_bytes=20 * GIB)}, set(), id="all of it is the run itself"),
        pytest.param({"gpus": cards(memory_total_bytes=24 * GIB)}, set(), id="use was not read"),
    ],
)  # fmt: skip
def test_who_holds_the_memory(sections: dict[str, Any], expected: set[str]) -> None:
    assert set(said(**sections)) & OURS == expected


@pytest.mark.parametrize("command", ["python -m ipykernel_launcher -f kernel-9.json", "python train.py"])
def test_advice_ends_one_process_and_resets_nothing(command: str) -> None:
    found = the(
        "vram-held-by-process", gpus=used(20), gpu_processes=listed((3301, 19.0, command)), container=OUTSIDE
    )
    assert "kill 3301" in str(found.advice)
    assert ("Jupyter" in str(found.advice)) is ("ipykernel" in command)
    assert not {"pkill", "killall", "reset"} & set(str(found.advice).split())


def test_a_run_of_ones_own_that_is_at_work_is_a_note() -> None:
    rows = GpuProcesses(
        items=(GpuProcess(pid=7, gpu_index=0, used_bytes=20 * GIB, command="python train.py", is_ours=True),)
    )
    busy = cards(memory_total_bytes=24 * GIB, memory_used_bytes=21 * GIB, utilization_pct=97.0)
    idle = cards(memory_total_bytes=24 * GIB, memory_used_bytes=21 * GIB, utilization_pct=0.0)
    assert said(gpus=busy, gpu_processes=rows, container=OUTSIDE) == {
        "vram-held-by-process": "note",
        "vram-mostly-used": "note",
    }
    assert said(gpus=idle, gpu_processes=rows, container=OUTSIDE)["vram-held-by-process"] == "warn"


def test_another_users_process_is_not_to_be_ended() -> None:
    rows = GpuProcesses(
        items=(GpuProcess(pid=7, gpu_index=0, used_bytes=20 * GIB, command="python", is_ours=False),)
    )
    assert "kill" not in str(
        the("vram-held-by-process", gpus=used(21), gpu_processes=rows, container=OUTSIDE).advice
    )


def test_a_process_without_a_figure_is_not_credited_with_all_of_it() -> None:
    title = str(the("vram-held-by-process", gpus=used(11), gpu_processes=listed(), processes=holding(7, 50), container=INSIDE).title)  # fmt: skip
    assert "has GPU 0 open" in title


def test_a_small_process_beside_a_large_one_is_not_named() -> None:
    given = the("vram-held-by-process", gpus=used(20), gpu_processes=listed((7, 19.0, "python"), (8, 0.3, "Xorg")), container=OUTSIDE)  # fmt: skip
    assert given.subject == "pid 7"


def test_a_process_that_cannot_be_named_is_named_by_its_number_alone() -> None:
    row = GpuProcess(pid=4194001, gpu_index=0, used_bytes=17 * GIB, is_ours=False)
    found = the(
        "vram-held-by-process",
        gpus=cards(memory_total_bytes=24 * GIB, memory_used_bytes=18 * GIB),
        gpu_processes=GpuProcesses(items=(row,)),
        container=OUTSIDE,
    )
    assert str(found.title).startswith("pid 4194001 holds 17.0 of 24.0 GiB")
    assert "cannot be seen from here" in str(found.advice)
    assert {row.fact: row.value for row in found.evidence} == {
        "gpus.items[0].memory_used_bytes": str(18 * GIB),
        "gpu_processes.items[0].pid": "4194001",
        "gpu_processes.items[0].used_bytes": str(17 * GIB),
    }


@pytest.mark.parametrize(("is_ours", "offered"), [(True, True), (None, True), (False, False)])
def test_a_cure_is_offered_for_ones_own_process_only(is_ours: bool | None, offered: bool) -> None:
    row = GpuProcess(pid=77, gpu_index=0, used_bytes=17 * GIB, is_ours=is_ours, command="python train.py")
    found = the(
        "vram-held-by-process",
        gpus=cards(memory_total_bytes=24 * GIB, memory_used_bytes=18 * GIB),
        gpu_processes=GpuProcesses(items=(row,)),
        container=OUTSIDE,
    )
    assert may_fix(found) is offered
