"""The program that asks NVML, in a process of its own that can be abandoned. Started by path from nvml.py, never imported.

Speaks JSON lines: a request on stdin, then for it on stdout one line a step ("system", one "gpu" a card, "links",
"nodes", "end"), so that what was read before a call hangs is not lost. A value that NVML refuses stands in the row's
"unread" with NVML's own words. nvidia-ml-py is loaded from the file it is given: another module called pynvml, in the
working directory or left by an old package, cannot take its place. Needs only the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
LOST = (15, 16)
"""GPU is lost, reset required: the card's state, not the field's."""
UNWRITTEN = b"\xa5"
NOT_AVAILABLE = (1 << 64) - 1
Ask = Callable[[Any, Any], Any]


class BindingError(Exception):
    """The file we were given is not NVIDIA's binding, or it does not load."""


def send(kind: str, value: object) -> None:
    sys.stdout.write(json.dumps({kind: value}) + "\n")
    sys.stdout.flush()


def load_binding(path: str) -> Any:
    """Execute nvidia-ml-py's pynvml.py at ``path`` and return it as a module."""
    from importlib.machinery import SourceFileLoader

    module = type(sys)("pynvml")
    sys.modules["pynvml"] = module
    try:
        SourceFileLoader("pynvml", path).exec_module(module)
    except Exception as error:  # whatever a foreign file does when it runs; it is named in the answer
        raise BindingError(f"{path}: {type(error).__name__}: {error}") from None
    if not hasattr(module, "_nvmlGetFunctionPointer"):
        raise BindingError(f"{path} is not NVIDIA's")
    return module


def text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# ---------------------------------------------------------------------------------------------------- one card
def memory(nvml: Any, handle: Any) -> dict[str, int]:
    """Return bytes; ``reserved`` only where the second form of the call is there (driver 510 and newer)."""
    try:
        info = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError, AttributeError, TypeError) as error:
        if getattr(error, "value", None) in LOST:
            raise
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"total": info.total, "used": info.used, "free": info.free}
    return {"total": info.total, "used": info.used, "free": info.free, "reserved": info.reserved}


def first_of(*asks: Ask) -> Ask:
    """Return a call that tries ``asks`` in turn: an older and a newer name of the same thing."""

    def ask(nvml: Any, handle: Any) -> Any:
        for one in asks[:-1]:
            try:
                return one(nvml, handle)
            except (nvml.NVMLError, AttributeError) as error:
                if getattr(error, "value", None) in LOST:
                    raise
        return asks[-1](nvml, handle)

    return ask


def recovery_action(nvml: Any, handle: Any) -> int:
    field = nvml.nvmlDeviceGetFieldValues(handle, [230])[0]  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    if field.nvmlReturn:
        raise nvml.NVMLError(field.nvmlReturn)
    return int(field.value.uiVal)


def fabric_state(nvml: Any, handle: Any) -> int:
    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    info.version = 0x02000024
    nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    return int(info.state)


def processes(nvml: Any, handle: Any) -> list[list[int | None]]:
    """Return ``[pid, used bytes or None]`` of each compute process.

    The record is 24 bytes (pid, used, two instance ids); some drivers of branch 535 (535.54, 535.86) wrote 32 under
    the same name. Who believes in one of them reads numbers of nobody from the other, so the size is taken from what
    was written.
    """
    try:
        function = nvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")
    except nvml.NVMLError:  # drivers before 510
        function = nvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v2")
    count = ctypes.c_uint(0)
    code = function(handle, ctypes.byref(count), None)
    if code == 7:  # insufficient size: asked again with room for some more
        count.value = count.value * 2 + 5
        buffer = ctypes.create_string_buffer(UNWRITTEN * (32 * count.value), 32 * count.value)
        code = function(handle, ctypes.byref(count), buffer)
        if code == 0:
            return parse_processes(buffer.raw, count.value)
    if code:
        raise nvml.NVMLError(code)
    return []


def parse_processes(raw: bytes, count: int) -> list[list[int | None]]:
    written = len(raw.rstrip(UNWRITTEN))
    size = 24 if written <= 24 * count else 32
    rows = (raw[index * size : index * size + 24] for index in range(count))
    pairs = ((int.from_bytes(row[:4], "little"), int.from_bytes(row[8:16], "little")) for row in rows)
    return [[pid, None if used == NOT_AVAILABLE else used] for pid, used in pairs]


LIVE: dict[str, Ask] = {
    "name": lambda nvml, handle: text(nvml.nvmlDeviceGetName(handle)),
    "uuid": lambda nvml, handle: text(nvml.nvmlDeviceGetUUID(handle)),
    "pci_address": lambda nvml, handle: text(nvml.nvmlDeviceGetPciInfo(handle).busId),
    "memory": memory,
    "utilization_pct": lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    "memory_activity_pct": lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).memory,
    "temperature_c": first_of(
        lambda nvml, handle: nvml.nvmlDeviceGetTemperature(handle, 0),
        lambda nvml, handle: nvml.nvmlDeviceGetTemperatureV(handle, 0),
    ),
    "power_mw": lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle),
    "power_limit_mw": first_of(
        lambda nvml, handle: nvml.nvmlDeviceGetEnforcedPowerLimit(handle),
        lambda nvml, handle: nvml.nvmlDeviceGetPowerManagementLimit(handle),
    ),
    "sm_clock_mhz": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, 1),
    "throttle_mask": first_of(
        lambda nvml, handle: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        lambda nvml, handle: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
    ),
    "performance_state": first_of(
        lambda nvml, handle: nvml.nvmlDeviceGetPerformanceState(handle),
        lambda nvml, handle: nvml.nvmlDeviceGetPowerState(handle),
    ),
}
SLOW: dict[str, Ask] = {
    "capability": lambda nvml, handle: nvml.nvmlDeviceGetCudaComputeCapability(handle),
    "temperature_slowdown_c": lambda nvml, handle: nvml.nvmlDeviceGetTemperatureThreshold(handle, 1),
    "power_default_limit_mw": lambda nvml, handle: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle),
    "mig_enabled": lambda nvml, handle: nvml.nvmlDeviceGetMigMode(handle)[0],
    "ecc_enabled": lambda nvml, handle: nvml.nvmlDeviceGetEccMode(handle)[0],
    "ecc_uncorrected_volatile": lambda nvml, handle: nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0),
    "ecc_uncorrected_aggregate": lambda nvml, handle: nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 1),
    "remapped_rows": lambda nvml, handle: list(nvml.nvmlDeviceGetRemappedRows(handle)),
    "retired_pages_pending": lambda nvml, handle: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle),
    "pcie_generation": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
    "pcie_generation_max": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
    "pcie_width": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
    "pcie_width_max": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
    "persistence_mode": lambda nvml, handle: nvml.nvmlDeviceGetPersistenceMode(handle),
    "recovery_action": recovery_action,
    "fabric_state": fabric_state,
}


def read_card(nvml: Any, index: int, asks: dict[str, Ask]) -> tuple[Any, dict[str, object]]:
    """Return the card's handle (None: it could not be opened) and its row."""
    row: dict[str, object] = {"index": index}
    unread: dict[str, str] = {}
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        return None, row | {"error": str(error), "error_code": error.value}
    for field, ask in asks.items():
        try:
            row[field] = ask(nvml, handle)
        except nvml.NVMLError as error:
            unread[field] = str(error)
            if error.value in LOST:
                row |= {"error": str(error), "error_code": error.value}
        except (
            Exception
        ) as error:  # a binding too old for the call, a name that is not UTF-8: costs this field only
            unread[field] = f"{type(error).__name__}: {error}"
    return handle, row | {"unread": unread}


def worst_link(nvml: Any, handles: list[Any]) -> dict[str, object]:
    """Return the farthest pair: ``nvlinks`` (of the first card) where all are joined by NVLink, else the PCIe ``level``."""
    pairs = [(one, other) for index, one in enumerate(handles) for other in handles[index + 1 :]]
    levels = [nvml.nvmlDeviceGetTopologyCommonAncestor(*pair) for pair in pairs]
    try:
        joined = all(
            nvml.nvmlDeviceGetP2PStatus(*pair, 2) == 0 for pair in pairs
        )  # NVML_P2P_CAPS_INDEX_NVLINK
    except nvml.NVMLError:
        joined = False
    return {"level": max(levels), "nvlinks": active_nvlinks(nvml, handles[0]) if joined else 0}


def active_nvlinks(nvml: Any, handle: Any) -> int:
    active = 0
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            active += int(nvml.nvmlDeviceGetNvLinkState(handle, link) == 1)
        except nvml.NVMLError:
            break
    return active


# ---------------------------------------------------------------------------------------------------- the whole look
def library_path() -> str:
    """Return the file behind the library that the loader gave us."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return next((line.split(None, 5)[5].strip() for line in maps if "libnvidia-ml.so" in line), "")


class Session:
    """One process's view of NVML; initialised at the first request that succeeds."""

    def __init__(self, binding_path: str) -> None:
        self.binding_path = binding_path
        self.nvml: Any = None
        self.ready = False
        self.rates: Any = None
        """Loaded with the first request for them: a check asks for none."""

    def start(self) -> dict[str, object]:
        """Load and initialise what is not yet; return the "system" row, ``nvml_error`` 0 when NVML answers."""
        try:
            ctypes.CDLL(LIBRARY)
        except OSError as error:
            return {"nvml_error": 12, "message": str(error)}
        row: dict[str, object] = {"library_path": library_path()}
        try:
            self.nvml = self.nvml or load_binding(self.binding_path)
            if not self.ready:
                self.nvml.nvmlInit()
                self.ready = True
        except BindingError as error:
            return row | {"binding_error": str(error)}
        except self.nvml.NVMLError as error:
            return row | self.versions() | {"nvml_error": error.value, "message": str(error)}
        return row | self.versions() | {"nvml_error": 0}

    def versions(self) -> dict[str, object]:
        nvml = self.nvml
        asks: dict[str, Callable[[], Any]] = {
            "driver_version": lambda: nvml.nvmlSystemGetDriverVersion(),
            "nvml_version": lambda: nvml.nvmlSystemGetNVMLVersion(),
            "cuda_version": lambda: nvml.nvmlSystemGetCudaDriverVersion(),
        }
        found: dict[str, object] = {}
        for name, ask in asks.items():
            try:
                value = ask()
            except (nvml.NVMLError, AttributeError, ValueError):  # refused, a binding without it, not UTF-8
                continue
            found[name] = value if isinstance(value, int) else text(value)
        return found

    def cards(self, request: dict[str, Any]) -> None:
        asks = (
            LIVE
            | (SLOW if request.get("slow") else {})
            | ({"processes": processes} if request.get("processes") else {})
        )
        handles = []
        for index in range(self.nvml.nvmlDeviceGetCount()):
            handle, row = read_card(self.nvml, index, asks)
            send("gpu", row)
            handles.append(handle)
        if request.get("rates"):
            opened = {index: handle for index, handle in enumerate(handles) if handle}
            for index, handle in opened.items():
                send("rates", {"index": index, **self.rates_of(index, handle)})
            send("xids", self.seldom().xids(opened))
        if request.get("links") and len(handles) > 1 and all(handles):
            try:
                send("links", worst_link(self.nvml, handles))
            except self.nvml.NVMLError as error:
                send("links", {"unread": str(error)})

    def seldom(self) -> Any:
        """Return what reads rates and Xids, from the file beside this one."""
        if self.rates is None:
            from importlib.machinery import SourceFileLoader

            module = type(sys)("nvml_rates_child")
            path = sys.argv[1].removesuffix("nvml_child.py") + "nvml_rates_child.py"
            SourceFileLoader("nvml_rates_child", path).exec_module(module)
            self.rates = module.Rates(self.nvml)
        return self.rates

    def rates_of(self, index: int, handle: Any) -> dict[str, object]:
        try:
            answer: dict[str, object] = self.seldom().of(index, handle)
        except self.nvml.NVMLError as error:  # lost between two calls: its next row says so
            answer = {"failed": str(error)}
        except Exception as error:  # as in read_card: costs the rates only
            answer = {"failed": f"{type(error).__name__}: {error}"}
        return answer

    def answer(self, request: dict[str, Any]) -> None:
        system = self.start() if request.get("system") or not self.ready else {"nvml_error": 0}
        send("system", system)
        if system.get("nvml_error") == 0:
            try:
                self.cards(request)
            except self.nvml.NVMLError as error:
                self.ready = False  # a driver that was reloaded under us must be initialised anew
                self.rates = None
                send("failed", {"nvml_error": error.value, "message": str(error)})
        if request.get("nodes"):
            send("nodes", {name: open_error(path) for name, path in request["nodes"].items()})
        send("end", True)


def open_error(path: str) -> str:
    """Return "" when the device file opens for reading and writing, else the errno's name."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return ""


def main(binding_path: str) -> None:
    """Answer requests until stdin ends, then leave at once: nvmlShutdown could hang as well."""
    session = Session(binding_path)
    for line in sys.stdin:
        session.answer(json.loads(line))
    os._exit(0)
