"""Video memory held by a process of one's own: ended by its number and start time. Others' are explained, not touched. Pure."""

from __future__ import annotations

import re

from doctor.fixes import fix
from doctor.model import Finding, Fix, Processes, Snapshot, StopProcess, Text, t

_PID = re.compile(r"pid (\d+)$")


@fix("vram-held-by-process", "orphan-process-holds-vram")
def end_the_holder(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    match = _PID.match(finding.subject)
    seen = snapshot.facts.processes.value or Processes()
    process = next((item for item in seen.items if match and item.pid == int(match[1])), None)
    if process is None:
        return t(
            "the process is not one that can be seen in /proc here: it may be another container's, and is not touched"
        )
    if process.is_ours is not True:
        return t(
            "process {pid} belongs to another user: ask them, or use another card (CUDA_VISIBLE_DEVICES)",
            pid=process.pid,
        )
    if process.started_ticks is None:
        return t(
            "when process {pid} was started is not known, so that it cannot be told from a later one of that number: look at it and end it by hand",
            pid=process.pid,
        )
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("end process {pid} ({command}), and no other", pid=process.pid, command=process.command),
        steps=(StopProcess(pid=process.pid, started_ticks=process.started_ticks, command=process.command),),
        touches=("gpus", "gpu_processes", "processes"),
        risk=t("what it has not saved is lost: it is asked to end first, and gets ten seconds"),
        only_when_asked=True,
    )  # fmt: skip
