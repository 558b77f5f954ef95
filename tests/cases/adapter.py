"""Turns the ``facts`` table of a case into a Snapshot. An absent key is unknown: None, never "no"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from doctor.model import (
    Container,
    Data,
    Driver,
    Environment,
    Facts,
    Gpu,
    GpuProcess,
    GpuProcesses,
    Gpus,
    Host,
    Incident,
    KernelLog,
    Process,
    Processes,
    Project,
    Python,
    Reading,
    Requirement,
    Snapshot,
    Torch,
    Workload,
    ok,
    t,
)
from tests.cases import files, installed, places

MB, GB = 1 << 20, 1 << 30

# keys for people only, or read together with another key
_SILENT = {"notes"}


class Seen(dict[str, Any]):
    """A case's facts; remembers which keys were taken, so that the rest can be named."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self.taken: set[str] = set(_SILENT)

    def take(self, key: str, default: Any = None) -> Any:
        self.taken.add(key)
        return self.get(key, default)

    def amount(self, key: str, unit: int) -> int | None:
        """Return ``key`` in bytes, or None."""
        value = self.take(key)
        return None if value is None else int(value * unit)

    def any_of(self, *keys: str) -> bool:
        return any(key in self for key in keys)

    def unknown(self) -> list[str]:
        return sorted(set(self) - self.taken)


def to_snapshot(case_id: str, facts: Mapping[str, Any]) -> tuple[Snapshot, list[str]]:
    """Return the machine of a case, and the keys (and files) that have no place in our facts."""
    seen = Seen(facts)
    found = files.sort_out(seen.take("files", {}), seen.get("env") or {})
    readings: dict[str, Reading[Any]] = {
        "host": _host(seen, found),
        "container": _container(seen, found),
        "platform": places.platform(seen),
        "driver": _driver(seen, found),
        "gpus": _gpus(seen),
        "gpu_processes": _gpu_processes(seen),
        "kernel_log": _kernel_log(seen, found),
        "python": _python(seen),
        "packages": installed.packages(seen, found),
        "torch": _torch(seen, found),
        "libraries": installed.libraries(seen, found),
        "storage": places.storage(seen),
        "environment": _environment(seen),
        "processes": _processes(seen),
        "project": _project(seen, found),
        "workload": _workload(seen),
        "incident": _incident(seen),
        "data": _data(seen, found),
    }
    snapshot = Snapshot(label=case_id, tool="tests.cases", facts=Facts(**readings))
    return snapshot, seen.unknown() + [f"files.{path}" for path in found.unknown]


# NVRM: Xid (PCI:0000:4e:00): 48, ... | pcieport 0000:00:01.0: AER: Corrected error | Out of memory: Killed process 41 (python)
_FROM_THE_KERNEL = re.compile(r"NVRM:|\bAER:|pcieport|Killed process \d+|nvidia-nvswitch")


def _kernel_log(seen: Seen, found: files.Found) -> Reading[KernelLog]:
    """Return the kernel's lines: of a log file, and those that stand in the case's log."""
    lines = found.kernel_log + [line for line in seen.get("log", []) if _FROM_THE_KERNEL.search(line)]
    return ok(KernelLog(lines=tuple(lines), complete=False)) if lines else _nothing()


def _nothing() -> Reading[Any]:
    return Reading(status="skipped")


def _or_skipped(section: Any) -> Reading[Any]:
    """Return the section as read, or *skipped* when not one of its fields is known."""
    fresh = type(section)()
    return _nothing() if section == fresh else ok(section, "case")


def _host(seen: Seen, found: files.Found) -> Reading[Host]:
    capabilities = seen.take("cap_eff") or found.capabilities
    return _or_skipped(
        Host(
            wheel_platform=seen.take("platform"),
            glibc=seen.take("glibc"),
            wsl=seen.take("wsl"),
            virtual_machine=_named(seen.take("virtual_machine")),
            cpu_count=seen.take("cpu_count"),
            affinity_count=seen.take("affinity"),
            memory_total_bytes=seen.amount("host_mem_gb", GB),
            uid=seen.take("uid"),
            has_passwd_entry=seen.take("passwd_entry"),
            capabilities_effective=None if capabilities is None else int(str(capabilities), 16),
            yama_ptrace_scope=found.ptrace_scope,
            locale_encoding=seen.take("locale_encoding"),
            services={
                name: str(state).split()[0].lower() for name, state in seen.take("services", {}).items()
            },
        )
    )


def _named(value: Any) -> str | None:
    """A hypervisor's name; ``true`` says that there is one without naming it."""
    return value if value is None or isinstance(value, str) else ("unnamed" if value else "")


def _container(seen: Seen, found: files.Found) -> Reading[Container]:
    environment = seen.get("env") or {}
    inside = seen.take("container")
    return _or_skipped(
        Container(
            inside=inside,
            kind="kubernetes" if inside and "KUBERNETES_SERVICE_HOST" in environment else None,
            host_pid_namespace=seen.take("host_pid_namespace"),
            **found.cgroup,
        )
    )


def _driver(seen: Seen, found: files.Found) -> Reading[Driver]:
    library = seen.take("nvml_library")
    error = seen.take("cuda_init_error")
    # A compat library that lies in the image does nothing until the loader finds it.
    compat = found.libcuda_on_path or error in (803, 804) or "reported_cuda" in seen
    return _or_skipped(
        Driver(
            version=seen.take("driver"),
            cuda_version=seen.take("driver_cuda"),
            reported_cuda_version=seen.take("reported_cuda"),
            kernel_module_version=seen.take("kernel_module") or found.kernel_module,
            nvml_library_version=library,
            libcuda_path=found.libcuda_path if compat else None,
            libcuda_version=found.libcuda_version if compat else None,
            nvml_error=seen.take("nvml_error"),
            cuda_init_error=error,
            device_nodes=found.device_nodes | dict(seen.take("device_nodes", {})),
            nvswitch=seen.take("nvswitch"),
            fabric_state=seen.take("fabric_state"),
        )
    )


# a word in a case's name of a field (utilization.gpu, nvmlDeviceGetPowerUsage, fan_speed) -> ours
_NVML_FIELDS = (
    ("util", "utilization_pct"),
    ("temp", "temperature_c"),
    ("power", "power_w"),
    ("process", "processes"),
    ("mem", "memory_used_bytes"),
    ("clock", "sm_clock_mhz"),
    ("fan", "fan_pct"),
    ("ecc", "ecc"),
)


def _nvml_field(name: str) -> str:
    return next((ours for word, ours in _NVML_FIELDS if word in name.lower()), name)


def _gpus(seen: Seen) -> Reading[Gpus]:
    keys = (
        "gpu", "gpu_count", "capability", "gpus", "vram_total_mb", "vram_used_mb", "nvml_device_errors",
        "nvml_not_supported", "mig", "topology",
    )  # fmt: skip
    if not seen.any_of(*keys):
        seen.taken |= set(keys)
        return _nothing()
    count = seen.take("gpu_count")
    named = seen.take("gpus")
    one = {"name": seen.take("gpu", ""), "capability": seen.take("capability", "")}
    total, used = seen.amount("vram_total_mb", MB), seen.amount("vram_used_mb", MB)
    refused = {_nvml_field(name): "Not Supported" for name in seen.take("nvml_not_supported", [])}
    items = [
        Gpu(
            index=index,
            name=row.get("name", ""),
            compute_capability=row.get("capability", ""),
            memory_total_bytes=total,
            utilization_pct=seen.get("gpu_util_pct"),
            memory_used_bytes=used if index == 0 else None,
            memory_free_bytes=total - used if index == 0 and total and used is not None else None,
            mig_enabled=seen.take("mig"),
            unread=refused,
        )
        for index, row in enumerate(named or [one] * (1 if count is None else count))
    ]
    for address, error in seen.take("nvml_device_errors", {}).items():
        items.append(Gpu(index=len(items), name=one["name"], pci_address=address, error=error))
    link = seen.take("topology")
    if count == 0 and not items:
        return Reading(status="absent", source="case")
    # Without a count the card that is named need not be the only one.
    unread = {} if count is not None or named else {"items": t("the case does not say how many")}
    return ok(Gpus(items=tuple(items), topology_worst_link=link, unread=unread), "case")


def _gpu_processes(seen: Seen) -> Reading[GpuProcesses]:
    listed = seen.take("nvml_processes")
    if listed is None:
        return _nothing()
    by_pid = {row["pid"]: row for row in seen.get("processes", [])}
    items = [_gpu_process(row, by_pid.get(row["pid"]), seen.get("uid")) for row in listed]
    return ok(GpuProcesses(items=tuple(items)), "case")


def _gpu_process(row: Mapping[str, Any], process: Mapping[str, Any] | None, uid: int | None) -> GpuProcess:
    known = process or {}
    return GpuProcess(
        pid=row["pid"],
        gpu_index=row.get("gpu", 0),
        used_bytes=next(
            (int(row[key] * MB) for key in ("mem_mb", "used_mb", "memory_mb", "vram_mb") if key in row), None
        ),
        command=known.get("cmd") or row.get("cmd") or row.get("name") or row.get("command"),
        uid=known.get("uid", row.get("uid")),
        is_ours=_is_ours(known, uid),
        age_s=known["age_h"] * 3600.0 if "age_h" in known else None,
    )


def _is_ours(process: Mapping[str, Any], uid: int | None) -> bool | None:
    if "uid" not in process or uid is None:
        return None
    return bool(process["uid"] == uid and _open_files(process))


def _open_files(row: Mapping[str, Any]) -> tuple[str, ...]:
    keys = ("fds", "device_files", "devices", "open_files", "open", "files")
    return tuple(next((row[key] for key in keys if key in row), ()))


def _processes(seen: Seen) -> Reading[Processes]:
    rows = seen.take("processes")
    if rows is None:
        return _nothing()
    items = tuple(
        Process(
            pid=row["pid"],
            parent_pid=row.get("ppid"),
            uid=row.get("uid"),
            command=row.get("cmd", ""),
            state=row.get("state", ""),
            age_s=row["age_h"] * 3600.0 if "age_h" in row else None,
            gpu_files=tuple(name for name in _open_files(row) if name.startswith("/dev/nvidia")),
            is_ours=_is_ours(row, seen.get("uid")),
        )
        for row in rows
    )
    return ok(Processes(items=items), "case")


def _python(seen: Seen) -> Reading[Python]:
    user_site = seen.take("user_site_enabled")
    variables = seen.get("env") or {}
    conda = seen.take("conda_env") or variables.get("CONDA_DEFAULT_ENV")
    own = any(line.startswith(("env/", "venv/", ".venv/")) or "/envs/" in line for line in seen.get("dist_info", []))  # fmt: skip
    venv = "VIRTUAL_ENV" in variables or own
    return _or_skipped(
        Python(
            version=seen.take("python"),
            conda_env=conda,
            kind="conda" if conda else "venv" if venv else None,
            user_site_enabled=user_site,
            # site.py puts the user site in front of the environment's own folder whenever it is enabled
            user_site_before_env=user_site,
        )
    )


def _torch(seen: Seen, found: files.Found) -> Reading[Torch]:
    version = seen.take("torch") or (seen.get("packages") or {}).get("torch")
    if version is None and "torch" in seen.get("not_installed", []):
        return Reading(status="absent")
    if version is None and not seen.any_of("torch_cuda", "arch_list", "torch_cxx11_abi"):
        return _nothing()
    version = version or ""
    arches = seen.take("arch_list")
    return ok(
        Torch(
            version=version,
            cuda=seen.take("torch_cuda", _cuda_of(version)),
            arch_list=None if arches is None else tuple(arches),
            arch_source="fatbin" if arches else "",
            cxx11_abi=seen.take("torch_cxx11_abi"),
            cudnn_version=found.bundled_cudnn,
        ),
        "case",
    )


def _cuda_of(version: str) -> str | None:
    """``2.1.0+cu121`` -> 12.1, ``2.1.0+cpu`` -> empty, ``2.1.0`` -> unknown."""
    local = version.partition("+")[2]
    if local == "cpu":
        return ""
    tag = re.fullmatch(r"cu(\d+)(\d)", local)
    return f"{tag[1]}.{tag[2]}" if tag else None


def _environment(seen: Seen) -> Reading[Environment]:
    variables = seen.take("env")
    if variables is None:
        return _nothing()
    return ok(Environment(variables={name: str(value) for name, value in variables.items()}), "case")


def _project(seen: Seen, found: files.Found) -> Reading[Project]:
    lines = tuple(Requirement(line=line, file="requirements.txt") for line in seen.take("requirements", []))
    return _or_skipped(Project(cwd=seen.take("cwd"), requirements=lines))


def _workload(seen: Seen) -> Reading[Workload]:
    return _or_skipped(
        Workload(
            output_dir=seen.take("output_dir"),
            data_path=seen.take("data_path"),
            data_bytes=seen.amount("data_gb", GB),
            data_files=seen.take("data_files"),
            num_workers=seen.take("num_workers", seen.get("training_args", {}).get("dataloader_num_workers")),
            gpu_utilization_pct=seen.take("gpu_util_pct"),
            model_parameters=seen.take("model_params"),
            optimizer=seen.take("optimizer"),
            training_args=dict(seen.take("training_args", {})),
            model_accepts_loss_kwargs=seen.take("model_accepts_loss_kwargs"),
            colocated=tuple(seen.take("colocated", ())),
        )
    )


def _incident(seen: Seen) -> Reading[Incident]:
    return _or_skipped(
        Incident(
            log_lines=tuple(seen.take("log", ())),
            exit_code=seen.take("exit_code"),
            oom_killed=seen.take("oom_killed"),
            torch_allocated_bytes=seen.amount("torch_allocated_mb", MB),
            torch_reserved_bytes=seen.amount("torch_reserved_mb", MB),
            oom_tried_bytes=seen.amount("oom_tried_mb", MB),
            own_gpu_process_bytes=seen.amount("own_gpu_process_mb", MB),
            newly_initialized=_tuple(seen.take("newly_initialized")),
            unused_weights=_tuple(seen.take("unused_weights")),
            mean_abs_diff=seen.take("mean_abs_diff"),
            max_abs_diff=seen.take("max_abs_diff"),
            output_scale=seen.take("output_scale"),
        )
    )


def _tuple(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value)


def _data(seen: Seen, found: files.Found) -> Reading[Data]:
    inspected = files.with_pickles(found.inspected, seen.take("pickle_globals", {}))
    return _or_skipped(
        Data(
            files=tuple(inspected),
            num_labels=seen.take("num_labels"),
            label_values=_tuple(seen.take("label_values")),
            tokenizer=seen.take("tokenizer"),
            tokenizer_size=seen.take("tokenizer_len"),
            embedding_rows=seen.take("embedding_rows"),
            max_token_id=seen.take("max_token_id"),
            unknown_token_share=seen.take("unk_rate"),
            unknown_characters=tuple(seen.take("unk_chars", ())),
            vanishing_characters=tuple(seen.take("empty_chars", ())),
            sample=seen.take("sample"),
        )
    )


def dump(snapshot: Snapshot) -> bytes:
    """Return the snapshot as its file would have it, for reading by people."""
    return msgspec.json.format(msgspec.json.encode(snapshot), indent=1)
