"""Whose processes NVML's numbers are. In a container those are often the host's numbers, and may name someone else here."""

from __future__ import annotations

import os
from collections.abc import Iterable

from doctor.model import GpuProcess
from doctor.probes import Context
from doctor.probes.nvml_rows import NvmlProcess
from doctor.probes.proc_table import Seen, age_s, command, gpu_files, in_first_pid_namespace, see, uptime_s


def identify(context: Context, listed: Iterable[NvmlProcess]) -> tuple[GpuProcess, ...]:
    """Return NVML's processes with what /proc knows of those that are provably the same.

    Proof is an open /dev/nvidia* file, or that we are in the host's own PID namespace. A number that means no process
    here, or one that holds no card (another container's number that happens to exist), keeps ``command`` None.
    """
    uptime = uptime_s(context)
    numbers_are_ours = in_first_pid_namespace(context)
    return tuple(_identify(context, process, uptime, numbers_are_ours) for process in listed)


def _identify(
    context: Context, process: NvmlProcess, uptime: float | None, numbers_are_ours: bool
) -> GpuProcess:
    anonymous = GpuProcess(
        pid=process.pid, gpu_index=process.gpu_index, used_bytes=process.used_bytes, is_ours=False
    )
    seen = see(context, process.pid)
    if seen is None:
        return anonymous
    files = gpu_files(context, process.pid)
    proven = bool(files) and _still_the_same(context, seen)
    if not proven and (files is not None or not numbers_are_ours):
        return anonymous
    return GpuProcess(
        pid=process.pid,
        gpu_index=process.gpu_index,
        used_bytes=process.used_bytes,
        command=command(context, seen),
        uid=seen.uid,
        is_ours=proven and seen.uid == os.getuid(),
        age_s=age_s(seen, uptime),
    )


def _still_the_same(context: Context, seen: Seen) -> bool:
    """Return whether the number still means the process whose files were listed."""
    again = see(context, seen.pid)
    return again is not None and again.start_ticks == seen.start_ticks
