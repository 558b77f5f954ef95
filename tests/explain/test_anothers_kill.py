"""The kernel log names a process that was killed for memory: that confirms nothing of another one that the log names."""

from __future__ import annotations

import pytest

from doctor.explain import explain
from doctor.model import Container, Facts, KernelLog, Snapshot, ok

KERNEL = "Memory cgroup out of memory: Killed process 21644 (python) total-vm:900000kB"
LINE = "  traceback : Signal 9 (SIGKILL) received by PID {pid}\n"


def confirmed(pid: int, host_pid_namespace: bool | None) -> list[str]:
    facts = Facts(
        kernel_log=ok(KernelLog(lines=(KERNEL,))),
        container=ok(Container(host_pid_namespace=host_pid_namespace)),
    )
    found = explain(LINE.format(pid=pid), Snapshot(facts=facts))
    return [finding.id for item in found.known for finding in item.confirmed]


@pytest.mark.parametrize(
    ("pid", "host_pid_namespace", "is_confirmed"),
    [
        pytest.param(21644, True, True, id="the very process"),
        pytest.param(24111, True, False, id="another one"),
        pytest.param(24111, False, True, id="a container's own numbers cannot be compared"),
        pytest.param(24111, None, True, id="nobody knows whose numbers"),
    ],
)
def test_a_kill_confirms_its_own_process_alone(
    pid: int, host_pid_namespace: bool | None, is_confirmed: bool
) -> None:
    assert ("process-killed-for-memory" in confirmed(pid, host_pid_namespace)) == is_confirmed
