"""What the NVML child's rows mean: numbers and masks turned into records. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from doctor.model import Gpu, Record

LIVE_FIELDS = (
    "memory_total_bytes", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes", "utilization_pct",
    "memory_activity_pct",
    "temperature_c", "power_w", "power_limit_w", "sm_clock_mhz", "throttle_reasons", "performance_state", "error", "error_code",
)  # fmt: skip

# Bit -> our name. Names and bits: nvml.h, "NvmlClocksEventReasons".
CLOCK_EVENTS = {
    0x1: "idle",
    0x2: "applications-clocks",
    0x4: "power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "power-brake",
    0x100: "display-clocks",
}
# nvml.h, "nvmlDeviceGpuRecoveryAction_t".
RECOVERY_ACTIONS = {
    0: "none",
    1: "gpu-reset",
    2: "node-reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex-domain",
    6: "bus-reset",
    7: "system-reboot",
}
# nvml.h, "NVML_GPU_FABRIC_STATE_*", in the words that nvidia-smi -q prints.
FABRIC_STATES = {1: "Not Started", 2: "In Progress", 3: "Completed"}
# nvml.h, "nvmlGpuTopologyLevel_t" -> what `nvidia-smi topo -m` prints.
TOPOLOGY_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}

# Row field -> the Gpu fields that are unread when it is.
_COVERS = {
    "memory": ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes"),
    "power_mw": ("power_w",),
    "power_limit_mw": ("power_limit_w",),
    "power_default_limit_mw": ("power_default_limit_w",),
    "throttle_mask": ("throttle_reasons",),
    "capability": ("compute_capability",),
    "remapped_rows": ("row_remap_pending", "row_remap_failed"),
    "fabric_state": (),
}


class NvmlProcess(Record, frozen=True):
    """A process as NVML lists it; ``pid`` may be of another PID namespace."""

    gpu_index: int
    pid: int
    used_bytes: int | None = None


def clock_event_names(mask: int) -> tuple[str, ...]:
    """Return the names of the bits in a clock event (throttle) mask; a bit that we do not know is named by its value."""
    known = [name for bit, name in CLOCK_EVENTS.items() if mask & bit]
    rest = mask & ~sum(CLOCK_EVENTS)
    return tuple(known + [f"unknown-{1 << bit:#x}" for bit in range(rest.bit_length()) if rest >> bit & 1])


def pci_address(bus_id: str) -> str:
    """Return NVML's ``00000000:0A:00.0`` as the kernel writes it: ``0000:0a:00.0``."""
    domain, _, rest = bus_id.lower().partition(":")
    return (
        f"{domain[4:] if len(domain) == 8 and domain.startswith('0000') else domain}:{rest}"
        if rest
        else bus_id
    )


def cuda_version(number: int) -> str:
    """Return 12040 as ``12.4``."""
    return f"{number // 1000}.{number % 1000 // 10}"


def nvml_library_version(version: str) -> str:
    """Return the driver's part of an NVML version: ``12.550.54.15`` is ``550.54.15``."""
    first, _, rest = version.partition(".")
    return rest if rest and len(first) < 3 else version


def gpu_of(row: Mapping[str, Any]) -> Gpu:
    """Return one card from the child's row; what NVML refused is None and has its reason in ``unread``."""
    values: dict[str, Any] = {
        name: row[name]
        for name in ("index", "name", "uuid", "error", "error_code", "utilization_pct", "memory_activity_pct", "temperature_c", "sm_clock_mhz",
                     "temperature_slowdown_c", "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate", "pcie_generation",
                     "pcie_generation_max", "pcie_width", "pcie_width_max")
        if name in row
    }  # fmt: skip
    values |= {
        name: bool(row[name])
        for name in ("mig_enabled", "ecc_enabled", "persistence_mode", "retired_pages_pending")
        if name in row
    }
    values |= {f"memory_{name}_bytes": size for name, size in row.get("memory", {}).items()}
    values |= {
        f"{name}_w": row[f"{name}_mw"] / 1000
        for name in ("power", "power_limit", "power_default_limit")
        if f"{name}_mw" in row
    }
    values |= _decoded(row)
    return Gpu(**values, unread=_unread(row.get("unread", {})))


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if "pci_address" in row:
        values["pci_address"] = pci_address(row["pci_address"])
    if "capability" in row:
        values["compute_capability"] = "{}.{}".format(*row["capability"])
    if "throttle_mask" in row:
        values["throttle_reasons"] = clock_event_names(row["throttle_mask"])
    if "performance_state" in row:
        values["performance_state"] = (
            f"P{row['performance_state']}" if row["performance_state"] < 32 else "unknown"
        )
    if "remapped_rows" in row:
        values |= {
            "row_remap_pending": bool(row["remapped_rows"][2]),
            "row_remap_failed": bool(row["remapped_rows"][3]),
        }
    if "recovery_action" in row:
        values["recovery_action"] = RECOVERY_ACTIONS.get(
            row["recovery_action"], f"unknown-{row['recovery_action']}"
        )
    return values


def _unread(reasons: Mapping[str, str]) -> dict[str, str]:
    return {
        field: why
        for name, why in reasons.items()
        for field in _COVERS.get(name, (name,))
        if name != "processes"
    }


def processes_of(row: Mapping[str, Any]) -> tuple[NvmlProcess, ...]:
    """Return the compute processes of one card; one that NVML lists twice is given once."""
    seen: dict[int, int | None] = dict(row.get("processes", ()))
    return tuple(NvmlProcess(gpu_index=row["index"], pid=pid, used_bytes=used) for pid, used in seen.items())


def link_name(links: Mapping[str, Any]) -> str | None:
    """Return the worst link as ``nvidia-smi topo -m`` names it: NV18, PIX ... SYS; None: not read, or a new level."""
    if links.get("nvlinks"):
        return f"NV{links['nvlinks']}"
    return TOPOLOGY_LEVELS.get(links.get("level", -1))


def fabric_of(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the fabric state that is farthest from "Completed" among the cards; None where there is no fabric."""
    states = [row["fabric_state"] for row in rows if row.get("fabric_state") in FABRIC_STATES]
    return FABRIC_STATES[min(states)] if states else None


def with_live_values(card: Gpu, live: Gpu) -> Gpu:
    """Return ``card`` (read in full once) with the fields that a sample reads taken from ``live``."""
    kept = {field: why for field, why in card.unread.items() if field not in LIVE_FIELDS}
    return msgspec.structs.replace(
        card, **{field: getattr(live, field) for field in LIVE_FIELDS}, unread={**kept, **live.unread}
    )
