"""What the NVML child reads seldom: transfer rates, GPM, NVLink errors, Xids. Loaded by path in nvml_child.py, never imported.

A call that the driver or the binding does not have costs its own value only, which then stands in ``unread`` with code 13
(function not found). Needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NOT_SUPPORTED, TIMEOUT, NO_FUNCTION = 3, 10, 13
LOST = (15, 16)
ALL_LINKS = 0xFFFFFFFF
MAX_LINKS = 18
XID_EVENTS = 8
"""nvmlEventTypeXidCriticalError"""
LINK_ERRORS = (0, 1, 3)
"""Replay, recovery, data CRC; a flit's CRC error is corrected on the way and is common."""
# GPM metric -> our name and what one of it is: percent, or MiB/s. nvml.h, "nvmlGpmMetricId_t".
GPM = {
    2: ("sm_active_pct", 1),
    5: ("tensor_active_pct", 1),
    20: ("pcie_tx_bytes_per_s", 1 << 20),
    21: ("pcie_rx_bytes_per_s", 1 << 20),
    60: ("nvlink_rx_bytes_per_s", 1 << 20),
    61: ("nvlink_tx_bytes_per_s", 1 << 20),
}
# Of a card without GPM. nvml.h: counters in KiB of all links' payload, since some start; nvmlPcieUtilCounter_t in KB/s.
NVLINK_FIELDS = {"nvlink_tx_bytes_per_s": 138, "nvlink_rx_bytes_per_s": 139}
PCIE_COUNTERS = {"pcie_tx_bytes_per_s": 0, "pcie_rx_bytes_per_s": 1}
PERCENTS = ("sm_active_pct", "tensor_active_pct")


class Rates:
    """Reads all cards again and again; a rate is of the time since the reading before."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml
        self._samples: dict[int, Any] = {}
        self._counters: dict[tuple[int, str], tuple[int, int]] = {}
        self._events: Any = None
        self._unwatched: int | None = None
        """Why there is no set of events: NVML's code."""

    def of(self, index: int, handle: Any) -> dict[str, object]:
        """Return one card's ``values`` and, of those that were not read, NVML's code in ``unread``."""
        values: dict[str, float] = {}
        unread: dict[str, int] = {}
        self._ask(PERCENTS, unread, lambda: values.update(self._gpm(index, handle)))
        if "pcie_rx_bytes_per_s" not in values and index not in self._samples:
            self._ask(tuple(PCIE_COUNTERS), unread, lambda: values.update(self._pcie(handle)))
        if "nvlink_rx_bytes_per_s" not in values and index not in self._samples:
            self._ask(tuple(NVLINK_FIELDS), unread, lambda: values.update(self._nvlink(index, handle)))
        self._ask(("nvlink_errors",), unread, lambda: values.update(nvlink_errors=self._errors(handle)))
        return {"values": values, "unread": unread}

    def _ask(self, names: tuple[str, ...], unread: dict[str, int], read: Callable[[], object]) -> None:
        try:
            read()
        except self.nvml.NVMLError as error:
            if error.value in LOST:
                raise
            unread.update(dict.fromkeys(names, int(error.value)))
        except AttributeError as error:
            if error.obj is not self.nvml:
                raise
            unread.update(dict.fromkeys(names, NO_FUNCTION))  # a binding that is older than the call

    def _gpm(self, index: int, handle: Any) -> dict[str, float]:
        """Return what GPM measured since the sample before; nothing yet at the first one."""
        nvml = self.nvml
        if index not in self._samples and not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            raise nvml.NVMLError(NOT_SUPPORTED)
        fresh = nvml.nvmlGpmSampleAlloc()
        try:
            nvml.nvmlGpmSampleGet(handle, fresh)
        except nvml.NVMLError:
            nvml.nvmlGpmSampleFree(fresh)
            raise
        before, self._samples[index] = self._samples.get(index), fresh
        if before is None:
            return {}
        try:
            return self._between(before, fresh)
        finally:
            nvml.nvmlGpmSampleFree(before)

    def _between(self, before: Any, fresh: Any) -> dict[str, float]:
        nvml = self.nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics, asked.sample1, asked.sample2 = 1, len(GPM), before, fresh
        for place, metric in enumerate(GPM):
            asked.metrics[place].metricId = metric
        nvml.nvmlGpmMetricsGet(asked)
        found = [(asked.metrics[place], *known) for place, known in enumerate(GPM.values())]
        return {name: metric.value * unit for metric, name, unit in found if metric.nvmlReturn == 0}

    def _pcie(self, handle: Any) -> dict[str, float]:
        """Each direction is measured for 20 ms within the call."""
        ask = self.nvml.nvmlDeviceGetPcieThroughput
        return {name: float(ask(handle, counter)) * 1000 for name, counter in PCIE_COUNTERS.items()}

    def _nvlink(self, index: int, handle: Any) -> dict[str, float]:
        """Return the rates since the look before; nothing at the first one."""
        asked = [(field, ALL_LINKS) for field in NVLINK_FIELDS.values()]
        rates: dict[str, float] = {}
        for name, field in zip(NVLINK_FIELDS, self.nvml.nvmlDeviceGetFieldValues(handle, asked), strict=True):
            if field.nvmlReturn:
                raise self.nvml.NVMLError(field.nvmlReturn)
            now = (int(field.value.ullVal), int(field.timestamp))
            before = self._counters.get((index, name))
            self._counters[index, name] = now
            if before is not None and now[1] > before[1] and now[0] >= before[0]:
                rates[name] = (now[0] - before[0]) * 1024 / (now[1] - before[1]) * 1e6
        return rates

    def _errors(self, handle: Any) -> int:
        """Return the errors of all links that are up, since the driver was loaded."""
        total, up = 0, 0
        for link in range(MAX_LINKS):
            try:
                if self.nvml.nvmlDeviceGetNvLinkState(handle, link) != 1:
                    continue
                counts = [
                    self.nvml.nvmlDeviceGetNvLinkErrorCounter(handle, link, kind) for kind in LINK_ERRORS
                ]
            except self.nvml.NVMLError as error:
                if link and error.value not in (*LOST, NO_FUNCTION):
                    break  # the card has fewer links
                raise
            total, up = total + sum(map(int, counts)), up + 1
        if not up:
            raise self.nvml.NVMLError(NOT_SUPPORTED)
        return total

    # -- Xids
    def xids(self, handles: dict[int, Any]) -> dict[str, object]:
        """Return ``[card, number]`` of each Xid since the call before; the first one begins to listen."""
        nvml = self.nvml
        if self._unwatched is None and self._events is None:
            try:
                self._events = self._listen(handles)
            except nvml.NVMLError as error:
                self._unwatched = int(error.value)
            except AttributeError:
                self._unwatched = NO_FUNCTION
        if self._unwatched is not None:
            return {"events": [], "unread": self._unwatched}
        return {"events": self._heard(handles)}

    def _listen(self, handles: dict[int, Any]) -> Any:
        events = self.nvml.nvmlEventSetCreate()
        for handle in handles.values():
            self.nvml.nvmlDeviceRegisterEvents(handle, XID_EVENTS, events)
        return events

    def _heard(self, handles: dict[int, Any]) -> list[list[int | None]]:
        heard: list[list[int | None]] = []
        while len(heard) < 100:
            try:
                event = self.nvml.nvmlEventSetWait_v2(self._events, 0)
            except self.nvml.NVMLError as error:
                if error.value != TIMEOUT:
                    self._unwatched = int(error.value)
                break
            heard.append([self._index_of(event.device, handles), int(event.eventData)])
        return heard

    def _index_of(self, device: Any, handles: dict[int, Any]) -> int | None:
        address = pointer(device)
        return next((index for index, handle in handles.items() if pointer(handle) == address), None)


def pointer(handle: Any) -> int:
    from ctypes import c_void_p, cast

    return cast(handle, c_void_p).value or 0
