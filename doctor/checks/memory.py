"""Checks on memory: shared memory for workers, the container's limit, processes killed, a fragmented allocator. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.storage import gb, mount_evidence
from doctor.checks.versions import below, torch_version, within
from doctor.model import (
    Container,
    Environment,
    Evidence,
    Finding,
    Gpus,
    Host,
    Incident,
    KernelLog,
    Level,
    Packages,
    Reading,
    Storage,
    Text,
    Torch,
    Workload,
    t,
)

MB, GB = 1 << 20, 1 << 30
SHM_OF_DOCKER = 64 * MB
# RuntimeError: DataLoader worker (pid 231) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.
_SHM_TROUBLE = re.compile(
    r"Bus error|out of shared memory|unable to (open|mmap) shared memory|/dev/shm.*No space left",
    re.IGNORECASE,
)


@check("shm-too-small")
def workers_have_shared_memory(
    storage: Storage, container: Reading[Container], workload: Reading[Workload], incident: Reading[Incident],
    gpus: Reading[Gpus],
) -> Iterator[Finding]:  # fmt: skip
    """Is /dev/shm large enough for the batches of loader workers, and for NCCL between several cards?"""
    mount = next((item for item in storage.mounts if item.path == "/dev/shm"), None)
    size = mount.size_bytes if mount else None
    if mount is None or size is None or size >= 2 * GB:
        return
    workers = workload.value.num_workers if workload.value else None
    failed = any(_SHM_TROUBLE.search(line) for line in (incident.value.log_lines if incident.value else ()))
    cards = len(gpus.value.items) if gpus.value else 0
    inside = bool(container.value and container.value.inside)
    level = _shm_level(size, workers, failed, cards, inside)
    if level is None:
        return
    yield Finding(
        id="shm-too-small",
        level=level,
        subject="/dev/shm",
        title=t(
            "/dev/shm has {size} MB for {workers} loader {workers:worker|workers}: they die with a bus error when a batch does not fit",
            size=size // MB,
            workers=workers,
        )
        if workers
        else t(
            "/dev/shm has {size} MB: loader workers die with a bus error when a batch does not fit, and NCCL between several cards needs it too",
            size=size // MB,
        ),
        evidence=(
            *mount_evidence(storage, mount, "size_bytes"),
            *evidence(
                workload__num_workers=workers,
                container__inside=container.value.inside if container.value else None,
            ),
        ),
        advice=_shm_advice(container.value),
    )


def _shm_level(size: int, workers: int | None, failed: bool, cards: int, inside: bool) -> Level | None:
    """Only workers that are known, several cards, or a log that shows it make it more than a note."""
    if failed or (size <= SHM_OF_DOCKER and (workers or (inside and cards > 1 and workers != 0))):
        return "warn"
    if workers == 0:
        return None
    if workers and size < workers * 64 * MB:
        return "warn"
    return "note" if inside and size <= SHM_OF_DOCKER else None


def _shm_advice(container: Container | None) -> Text:
    if container and container.kind == "kubernetes":
        return t(
            'Mount an emptyDir with medium: Memory at /dev/shm in the pod. Where that cannot be had: num_workers=0, or torch.multiprocessing.set_sharing_strategy("file_system").'
        )
    return t(
        'Start the container with --shm-size=8g or --ipc=host. Where that cannot be had: num_workers=0, or torch.multiprocessing.set_sharing_strategy("file_system").'
    )


@check("cgroup-memory-below-host")
def the_container_limit_is_seen(
    container: Container, host: Reading[Host], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Is the memory of the container less than what free and psutil show?"""
    limit, total = container.memory_limit_bytes, host.value.memory_total_bytes if host.value else None
    kills = container.oom_kill_count or 0
    ended = incident.value
    killed = bool(kills or (ended and (ended.oom_killed or ended.exit_code == 137)))
    if not limit or container.memory_limit_unlimited or limit >= (0.95 * total if total else 1 << 60):
        return
    if total is None and not killed:
        return
    used = container.memory_current_bytes
    yield Finding(
        id="cgroup-memory-below-host",
        level="warn" if killed else "note",
        subject=f"{gb(limit)} GB",
        title=t(
            "this container may use {limit} GB ({left} GB are left), while free and psutil show the host's {total} GB; {kills} {kills:process was|processes were} already killed for memory",
            limit=gb(limit),
            left=gb(max(0, limit - used)),
            total=gb(total or 0),
            kills=kills,
        )
        if kills and used is not None and total is not None
        else t(
            "this container may use {limit} GB of memory, and a process was killed for it", limit=gb(limit)
        )
        if total is None
        else t(
            "this container may use {limit} GB of memory, while free and psutil show the host's {total} GB",
            limit=gb(limit),
            total=gb(total),
        ),
        evidence=evidence(
            container__memory_limit_bytes=limit,
            container__memory_current_bytes=used,
            container__oom_kill_count=container.oom_kill_count,
            host__memory_total_bytes=total,
            incident__exit_code=ended.exit_code if ended else None,
        ),
        advice=t(
            "Keep workers, prefetch and data held in memory within {limit} GB (fewer num_workers, smaller prefetch_factor, memory-mapped data), or rent more memory. The figure: cat /sys/fs/cgroup/memory.max",
            limit=gb(limit),
        ),
        cause_of=("process-killed-for-memory",) if killed else (),
    )


# Out of memory: Killed process 4121 (python) total-vm:... | Memory cgroup out of memory: Killed process 77 (pt_main_thread)
_KILLED = re.compile(r"[Oo]ut of memory: Killed process (\d+) \(([^)]*)\)")


@check("process-killed-for-memory")
def no_process_was_killed_for_memory(
    container: Reading[Container], kernel_log: Reading[KernelLog], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Has the kernel killed processes for want of host memory?"""
    # In a container the kernel's log is the host's: a kill in it may be a neighbour's.
    inside = container.value.inside if container.value else None
    lines = kernel_log.value.lines if kernel_log.value and inside is not True else ()
    found = next(
        ((index, match) for index, line in enumerate(lines) if (match := _KILLED.search(line))), None
    )
    count = (container.value.oom_kill_count if container.value else None) or 0
    ended = incident.value
    if not (found or count or (ended and (ended.oom_killed or ended.exit_code == 137))):
        return
    # A kill some time ago is worth knowing; only a run that ended so makes it a warning.
    sure = bool(ended and (ended.oom_killed or (ended.exit_code == 137 and (found or count))))
    yield Finding(
        id="process-killed-for-memory",
        level="warn" if sure else "note",
        subject=found[1][2] if found else "",
        title=t(
            "the kernel killed {name} (pid {pid}) because host memory ran out",
            name=found[1][2],
            pid=found[1][1],
        )
        if found
        else t(
            "{count} {count:process|processes} of this container were killed because its memory ran out",
            count=count,
        )
        if count
        else t("a process ended with 137: killed from outside, most often for want of host memory"),
        evidence=(
            (Evidence(fact=f"kernel_log.lines[{found[0]}]", value=lines[found[0]][:160]),) if found else ()
        )
        + evidence(
            container__oom_kill_count=count or None,
            incident__exit_code=ended.exit_code if ended else None,
            incident__oom_killed=ended.oom_killed if ended else None,
        ),
        advice=t(
            "That is host memory, not the card's: fewer num_workers, a smaller prefetch_factor, memory-mapped data."
        ),
    )


# Tried to allocate 1.50 GiB. ... Of the allocated memory 17.11 GiB is allocated by PyTorch, and 5.43 GiB is reserved by PyTorch but unallocated.
_TRIED = re.compile(r"Tried to allocate (\d+(?:\.\d+)?) ([KMG])iB")
_ALLOCATED = re.compile(
    r"(\d+(?:\.\d+)?) ([KMG])iB is allocated by PyTorch|(\d+(?:\.\d+)?) ([KMG])iB already allocated"
)
_UNALLOCATED = re.compile(r"(\d+(?:\.\d+)?) ([KMG])iB is reserved by PyTorch but unallocated")
# 20.15 GiB already allocated; 1.20 GiB free; 26.01 GiB reserved in total by PyTorch
_RESERVED = re.compile(r"(\d+(?:\.\d+)?) ([KMG])iB reserved in total")
_UNIT = {"K": 1 << 10, "M": MB, "G": GB}


def _amount(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    if match is None:
        return None
    number, unit = [group for group in match.groups() if group is not None]
    return int(float(number) * _UNIT[unit])


def _figures(incident: Incident) -> tuple[int | None, int | None, int | None]:
    """Return (reserved, allocated, tried) in bytes: as recorded, else as torch's own message has them."""
    reserved, allocated, tried = (
        incident.torch_reserved_bytes, incident.torch_allocated_bytes, incident.oom_tried_bytes,
    )  # fmt: skip
    if reserved is not None and allocated is not None and tried:
        return reserved, allocated, tried
    line = next((line for line in incident.log_lines if _TRIED.search(line)), "")
    in_use, spare, total = _amount(_ALLOCATED, line), _amount(_UNALLOCATED, line), _amount(_RESERVED, line)
    if in_use is not None and spare is not None:
        total = in_use + spare
    return total, in_use, _amount(_TRIED, line)


@check("allocator-fragmentation")
def the_allocator_is_not_fragmented(
    incident: Incident, torch: Reading[Torch], packages: Reading[Packages], workload: Reading[Workload],
    environment: Reading[Environment],
) -> Iterator[Finding]:  # fmt: skip
    """Did an allocation fail although torch held enough memory that it did not use?"""
    reserved, allocated, tried = _figures(incident)
    if reserved is None or allocated is None or not tried:
        return
    unused = reserved - allocated
    if unused < max(GB, reserved // 10) or unused < tried:
        return
    yield Finding(
        id="allocator-fragmentation",
        level="warn",
        subject=f"{gb(unused)} GB",
        title=t(
            "an allocation of {tried} GB failed while torch held {unused} GB reserved and unused (of {reserved} GB): fragmentation",
            tried=gb(tried),
            unused=gb(unused),
            reserved=gb(reserved),
        ),
        evidence=evidence(
            incident__torch_reserved_bytes=incident.torch_reserved_bytes,
            incident__torch_allocated_bytes=incident.torch_allocated_bytes,
            incident__oom_tried_bytes=incident.oom_tried_bytes,
            **_said(incident),
        ),
        advice=_fragmentation_advice(
            torch_version(torch, packages), packages.value, workload.value, environment.value
        ),
    )


def _said(incident: Incident) -> dict[str, str]:
    """Return the line with the figures as evidence, where they were not recorded themselves."""
    if incident.oom_tried_bytes:
        return {}
    rows = ((place, line) for place, line in enumerate(incident.log_lines) if _TRIED.search(line))
    return {f"incident__log_lines[{place}]": line[:200] for place, line in rows}


def _fragmentation_advice(
    torch: str | None, packages: Packages | None, workload: Workload | None, environment: Environment | None
) -> Text:
    beside_vllm = "vllm" in (workload.colocated if workload else ())
    vllm = packages.version("vllm") if packages else None
    configured = environment.get("PYTORCH_CUDA_ALLOC_CONF") if environment else None
    if beside_vllm and not within(vllm, ">=0.20.1"):
        return t(
            "Free what is kept between phases (del, then torch.cuda.empty_cache()), or run training and vLLM in processes of their own. Do not set expandable_segments here: vLLM below 0.20.1 refuses it around its memory pool."
        )
    if "expandable_segments:True" in (configured or "") or (torch and below(torch, "2.1")):
        return t(
            "Group samples by length, so that sizes repeat, and lower the batch a little; max_split_size_mb:512 in PYTORCH_CUDA_ALLOC_CONF can help."
        )
    return t(
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before Python starts (this name works in every torch; PYTORCH_ALLOC_CONF not before 2.10), and group samples by length."
    )
