"""What the GPUs do, as ``sample-gpu`` lists it. NVML itself is asked in a child that can be abandoned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from doctor.model import Gpu, GpuProcess
from doctor.probes import Context
from doctor.probes.gpu_processes import identify
from doctor.probes.nvml import NvmlReader
from doctor.probes.nvml_rates import NvmlXid, Rates
from doctor.probes.nvml_rows import NvmlProcess
from doctor.redact_secrets import without_secrets
from runner.text import Text, t

RETRY_S, LONGEST_RETRY_S = 60.0, 3600.0
"""A machine without a driver is asked again after so long, and then after twice that: each time a process is started for it."""
RETRY_ONCE_SEEN_S = 5.0
"""Cards that answered before and do not now are asked again sooner."""
LOOK_AGAIN_S = 0.1
"""Longest look for an answer that is under way: the first one of eight cards without persistence mode takes 2 to 5 s,
and what samples besides must not stand still meanwhile."""
SHOWN = (
    "index", "name", "utilization_pct", "memory_activity_pct", "memory_used_bytes", "memory_total_bytes", "temperature_c", "temperature_slowdown_c", "power_w",
    "power_limit_w", "sm_clock_mhz", "throttle_reasons", "ecc_uncorrected_volatile", "mig_enabled", "error",
)  # fmt: skip


LONGEST_COMMAND = 80
"""Characters of a process's command that are kept."""


class Reader(Protocol):
    processes: tuple[NvmlProcess, ...]
    processes_unread: str
    rates: dict[int, Rates]
    xids: list[NvmlXid]
    xids_unread: str | None

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is still under way."""
        ...

    def sample(self, timeout_s: float = ...) -> Sequence[Gpu] | Text: ...

    def close(self) -> None: ...


class GpuMeter:
    """One NVML reader kept open; where it cannot answer, the reason, and another try later."""

    def __init__(
        self,
        timeout_s: float = 0.8,
        clock: Callable[[], float] = time.monotonic,
        reader: Reader | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._reader = reader or NvmlReader()
        self._context = Context()
        self.seen_cards = False
        """Some card has answered once: it may be lost since."""
        self._asked_at: float | None = None
        """Of an answer that is late."""
        self._retry_at = float("-inf")
        self._retry_s = RETRY_S
        self._answer: dict[str, Any] = {}
        self.addresses: dict[str, int] = {}
        """PCI address -> index of each card that answered last; "" where an address could not be read."""

    def take_xids(self) -> list[NvmlXid] | str | None:
        """Return what NVML told of Xids since the call before, or why it tells of none; None: it was not asked yet."""
        if self._reader.xids_unread != "":
            return self._reader.xids_unread
        taken = list(self._reader.xids)
        self._reader.xids.clear()
        return taken

    def sample(self) -> dict[str, Any]:
        """Return ``gpus`` (a dict a card), or ``why`` there are none to show.

        A driver that was asked and has not answered is looked at again each time: only an answer (no driver, a version
        mismatch) is a reason to wait long before asking anew.
        """
        now = self._clock()
        if now < self._retry_at:
            return self._answer
        answer = self._reader.sample(LOOK_AGAIN_S if self._reader.is_waiting else self.timeout_s)
        if not isinstance(answer, Text):
            self.seen_cards, self._asked_at = True, None
            self.addresses = {gpu.pci_address: gpu.index for gpu in answer}
            cards = [card(gpu, self._reader.rates.get(gpu.index)) for gpu in answer]
            self._answer = {"gpus": cards, **self._processes()}
        elif self._reader.is_waiting:
            self._asked_at = now if self._asked_at is None else self._asked_at
            self._answer = {"why": self._no_answer_yet(answer, now - self._asked_at)}
        else:
            self._asked_at = None
            self._answer = {"why": answer}
            self._retry_at = now + (RETRY_ONCE_SEEN_S if self.seen_cards else self._retry_s)
            self._retry_s = min(LONGEST_RETRY_S, 2 * self._retry_s)
        return self._answer

    def _processes(self) -> dict[str, Any]:
        """Return ``processes`` on the cards, or ``processes_why`` they could not be listed.

        A number that is not provably a process of ours keeps no command: in a container it is somebody else's.
        """
        if self._reader.processes_unread and not self._reader.processes:
            return {"processes_why": self._reader.processes_unread}
        return {"processes": [_process(one) for one in identify(self._context, self._reader.processes)]}

    def _no_answer_yet(self, why: Text, waited_s: float) -> Text:
        """Return ``why`` of the first look, and how long it has been since once that is long."""
        if waited_s < 1.0:
            return why
        return t("NVML was asked {seconds} s ago and has not answered yet: the driver hangs, or takes long to wake the cards",
                 seconds=round(waited_s))  # fmt: skip

    def close(self) -> None:
        self._reader.close()


def _process(process: GpuProcess) -> dict[str, Any]:
    command = None if process.command is None else without_secrets(process.command)[:LONGEST_COMMAND]
    values = {"gpu_index": process.gpu_index, "pid": process.pid, "used_bytes": process.used_bytes,
              "command": command}  # fmt: skip
    return {name: value for name, value in values.items() if value is not None}


def card(gpu: Gpu, rates: Rates | None = None) -> dict[str, Any]:
    """Return what ``sample-gpu`` holds of a card, as it is read back from an event; what was not read is left out, its reason is in ``unread``."""
    values = {name: getattr(gpu, name) for name in SHOWN}
    unread: dict[str, Any] = {name: why for name, why in gpu.unread.items() if name in SHOWN}
    if rates is not None and not gpu.error:
        values |= rates.values
        unread |= rates.unread
    values["unread"] = unread
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items() if value not in (None, "", {})}  # fmt: skip
