"""Checks on the memory of the cards: is it free, and if not, who holds it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check
from doctor.checks.gpu_health import is_busy
from doctor.model import (
    Container,
    Evidence,
    Finding,
    Gpu,
    GpuProcess,
    GpuProcesses,
    Gpus,
    Incident,
    Level,
    Process,
    Processes,
    Reading,
    t,
)

GIB = 1 << 30
BASELINE_BYTES = 700 << 20
"""What a driver, a display or one bare CUDA context takes; never worth a word."""


def gib(size: int | None) -> str:
    return "?" if size is None else f"{size / GIB:.1f}"


def holders(
    gpu: Gpu,
    gpu_processes: Reading[GpuProcesses],
    processes: Reading[Processes],
    pids_are_ours: bool = False,
) -> list[tuple[str, GpuProcess]]:
    """Return who holds memory on ``gpu`` and can be named, with the path of the fact: first NVML's list, then /proc's.

    ``pids_are_ours``: NVML's pids are those of this session's /proc, so that one without a command is a holder too.
    A process of /proc counts when it has this card's device file open and NVML does not list it.
    """
    listed = [
        (f"gpu_processes.items[{index}]", row)
        for index, row in enumerate(gpu_processes.value.items if gpu_processes.value else ())
        if row.gpu_index in (None, gpu.index) and (row.command is not None or pids_are_ours)
    ]
    known = {row.pid for _, row in listed}
    for index, process in enumerate(processes.value.items if processes.value else ()):
        if f"/dev/nvidia{gpu.index}" in process.gpu_files and process.pid not in known:
            row = GpuProcess(
                pid=process.pid,
                gpu_index=gpu.index,
                command=process.command,
                is_ours=process.is_ours,
                age_s=process.age_s,
            )
            listed.append((f"processes.items[{index}]", row))
    return listed  # fmt: skip


def _parent(pid: int, processes: Reading[Processes]) -> Process | None:
    return next(
        (item for item in (processes.value.items if processes.value else ()) if item.pid == pid), None
    )


@check(
    "vram-held-by-process",
    "orphan-process-holds-vram",
    "gpu-processes-hidden-by-pid-namespace",
    "vram-mostly-used",
)
def memory_of_the_cards_is_free(
    gpus: Gpus,
    gpu_processes: Reading[GpuProcesses],
    processes: Reading[Processes],
    container: Reading[Container],
    incident: Reading[Incident],
) -> Iterator[Finding]:
    """Is the memory of the cards free for a new run, and if not, who holds it?"""
    for index, gpu in enumerate(gpus.items):
        own = incident.value.own_gpu_process_bytes if incident.value else None
        used = (gpu.memory_used_bytes or 0) - (own or 0)
        if gpu.error or used < max(GIB, BASELINE_BYTES):
            continue
        # Outside of a container a pid is one of this machine even where its command cannot be read.
        bare = container.value is not None and container.value.inside is False
        found = holders(gpu, gpu_processes, processes, bare)
        path = f"gpus.items[{index}].memory_used_bytes"
        if found:
            yield from _named(gpu, used, path, found, gpu_processes, processes, container)
        elif _cannot_be_seen(gpu_processes, container):
            yield _hidden(gpu, used, path)
        if gpu.memory_total_bytes and used > 0.5 * gpu.memory_total_bytes:
            at_work = is_busy(gpu) and any(row.is_ours for _, row in found)
            yield _mostly_used(gpu, path, "note" if at_work else "warn")


def _cannot_be_seen(gpu_processes: Reading[GpuProcesses], container: Reading[Container]) -> bool:
    """The list is empty or names pids of another namespace, and this is a container with a PID namespace of its own."""
    known = container.value
    return bool(
        known
        and known.inside
        and known.host_pid_namespace is not True
        and gpu_processes.status in ("ok", "absent")
    )


def _named(
    gpu: Gpu,
    used: int,
    path: str,
    found: list[tuple[str, GpuProcess]],
    gpu_processes: Reading[GpuProcesses],
    processes: Reading[Processes],
    container: Reading[Container],
) -> Iterator[Finding]:
    """Yield one finding a holder: an orphan where that is certain, else a process with a name."""
    for fact, row in sorted(found, key=lambda pair: -(pair[1].used_bytes or 0))[:4]:
        held = row.used_bytes if row.used_bytes is not None else used if len(found) == 1 else None
        if held is not None and held < max(GIB, 0.05 * (gpu.memory_total_bytes or 0)):
            continue
        proof = (
            Evidence(fact=path, value=str(gpu.memory_used_bytes)),
            *(
                Evidence(fact=f"{fact}.{field}", value=str(value))
                for field, value in (
                    ("pid", row.pid),
                    ("used_bytes", row.used_bytes),
                    ("command", row.command),
                )
                if value is not None
            ),
        )
        if _lost_its_parent(row.pid, found, processes) and _is_orphan(row, gpu_processes, container):
            yield _orphan(gpu, row, used if held is None else held, proof)
        else:
            yield _held(gpu, row, held, proof)


def _lost_its_parent(pid: int, found: list[tuple[str, GpuProcess]], processes: Reading[Processes]) -> bool:
    """Whether the process, or the holder of the card that started it, now hangs on pid 1."""
    holders = {row.pid for _, row in found}
    process, seen = _parent(pid, processes), {pid}
    while process and process.parent_pid in holders - seen:
        seen.add(process.parent_pid or 0)
        process = _parent(process.parent_pid or 0, processes)
    return process is not None and process.parent_pid == 1


def _is_orphan(row: GpuProcess, gpu_processes: Reading[GpuProcesses], container: Reading[Container]) -> bool:
    """NVML no longer counts the process as a user of the card, on a machine whose pids are all visible.

    A parent of 1 alone says little: nohup and setsid make one too, and in a container pid 1 starts everything.
    """
    visible = container.value is not None and (
        container.value.inside is False or container.value.host_pid_namespace is True
    )
    listed = {item.pid for item in (gpu_processes.value.items if gpu_processes.value else ())}
    return visible and gpu_processes.status == "ok" and row.pid not in listed


def _who(row: GpuProcess) -> str:
    return f"pid {row.pid} ({row.command})" if row.command else f"pid {row.pid}"


def _orphan(gpu: Gpu, row: GpuProcess, held: int, proof: tuple[Evidence, ...]) -> Finding:
    return Finding(
        id="orphan-process-holds-vram",
        level="warn",
        subject=f"pid {row.pid}",
        title=t("{who} outlived the run that started it and still holds GPU {index}: {held} GiB in use, by no program that NVML lists", who=_who(row), index=gpu.index, held=gib(held)),
        evidence=proof,
        advice=t("Look at it (ps -o pid,ppid,etime,cmd -p {pid}), then end exactly this one: kill {pid}", pid=row.pid),
        cause_of=("vram-mostly-used",),
        fix="stop-process",
    )  # fmt: skip


def _held(gpu: Gpu, row: GpuProcess, held: int | None, proof: tuple[Evidence, ...]) -> Finding:
    free = (
        None
        if gpu.memory_total_bytes is None or gpu.memory_used_bytes is None
        else gpu.memory_total_bytes - gpu.memory_used_bytes
    )
    share = (held or gpu.memory_used_bytes or 0) / gpu.memory_total_bytes if gpu.memory_total_bytes else None
    working = row.is_ours is True and is_busy(gpu)
    level: Level = "note" if working or (share is not None and share < 0.1) else "warn"
    jupyter = "ipykernel" in (row.command or "")
    if jupyter:
        advice = t(
            "It is a Jupyter kernel: shut it down in Jupyter (Running > Shut Down), or end exactly this process after a look at it: kill {pid}",
            pid=row.pid,
        )
    elif row.command is None:
        advice = t(
            "Whose it is cannot be seen from here: ask who else uses this machine, or use another card (CUDA_VISIBLE_DEVICES)."
        )
    elif row.is_ours is False:
        advice = t("It belongs to another user: ask them, or use another card (CUDA_VISIBLE_DEVICES).")
    else:
        advice = t(
            "If it is not meant to run, look at it (ps -o pid,user,etime,cmd -p {pid}) and end exactly this one: kill {pid}",
            pid=row.pid,
        )
    return Finding(
        id="vram-held-by-process",
        level=level,
        subject=f"pid {row.pid}",
        title=t("{who} holds {held} of {total} GiB on GPU {index}; {free} GiB are free", who=_who(row), held=gib(held), total=gib(gpu.memory_total_bytes), index=gpu.index, free=gib(free))
        if row.used_bytes is not None
        else t("{who} has GPU {index} open, of which {used} of {total} GiB are in use; {free} GiB are free", who=_who(row), used=gib(gpu.memory_used_bytes), total=gib(gpu.memory_total_bytes), index=gpu.index, free=gib(free)),
        evidence=proof,
        advice=advice,
        cause_of=("vram-mostly-used",),
        fix="" if row.is_ours is False else "stop-process",
    )  # fmt: skip


def _hidden(gpu: Gpu, used: int, path: str) -> Finding:
    return Finding(
        id="gpu-processes-hidden-by-pid-namespace",
        level="note",
        subject=f"GPU {gpu.index}",
        title=t("{used} GiB on GPU {index} are held by processes that cannot be seen from this container", used=gib(used), index=gpu.index),
        evidence=(Evidence(fact=path, value=str(gpu.memory_used_bytes)),),
        advice=t("Count your own use by torch.cuda.memory_allocated(). When all of it should be yours, restart the instance: an old process of yours ends with it. Only the host, or a container with --pid=host, can name the processes."),
    )  # fmt: skip


def _mostly_used(gpu: Gpu, path: str, level: Level) -> Finding:
    total = gpu.memory_total_bytes or 0
    return Finding(
        id="vram-mostly-used",
        level=level,
        subject=f"GPU {gpu.index}",
        title=t("only {free} of {total} GiB are free on GPU {index}", free=gib(total - (gpu.memory_used_bytes or 0)), total=gib(total), index=gpu.index),
        evidence=(Evidence(fact=path, value=str(gpu.memory_used_bytes)),),
        advice=t("See who holds it: nvidia-smi, and in a container: fuser -v /dev/nvidia{index}. Processes of another tenant cannot be ended from here; another card or machine can be taken.", index=gpu.index),
    )  # fmt: skip
