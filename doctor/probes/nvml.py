"""One look at NVML for a check, and a reader for a sampler. Both through a child that a hung driver cannot hold us with."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from doctor.model import Gpu, Text, t
from doctor.probes import Context
from doctor.probes.device_nodes import node_names
from doctor.probes.nvml_process import NvmlProcessHandle, NvmlSilent, find_binding
from doctor.probes.nvml_rates import NvmlXid, Rates, rates_of, xids_of, xids_reason
from doctor.probes.nvml_rows import (
    NvmlProcess,
    cuda_version,
    fabric_of,
    gpu_of,
    link_name,
    nvml_library_version,
    processes_of,
    with_live_values,
)
from doctor.probes.sharing import once

SILENCE_S = 2.0
"""A child that lies still in the driver for so long is given up: a card answers in milliseconds, a hung driver never."""
LIMIT_S = 4.5
"""Longest wait for the whole answer, below the deadline of the probes: cards that must be woken first are slow."""
STALE_S = 10.0
"""A late answer is shown up to this age, where no newer one comes in time."""
RATES_EVERY_S = 10.0
"""PCIe throughput holds the driver for 20 ms a direction and card."""
PROCESSES_EVERY_S = 2.0
"""Listing processes takes the driver's lock for milliseconds, which the training needs too."""


class NvmlLook(msgspec.Struct):
    """What NVML said in one round. ``None`` was not read; ``why`` is set when the round did not come to its end."""

    nvml_error: int | None = None
    """What nvmlInit returned; None: it never returned, or could not be called."""
    message: str = ""
    why: Text | None = None
    silent: bool = False
    """It was asked and did not answer in time."""
    hung: bool = False
    """Its silence is a hang beyond doubt: see :class:`NvmlSilent`."""
    driver_version: str | None = None
    cuda_version: str | None = None
    nvml_version: str | None = None
    library_path: str = ""
    gpus: list[Gpu] = []
    processes: list[NvmlProcess] = []
    processes_unread: str = ""
    rates: dict[int, Rates] = {}
    xids: list[NvmlXid] = []
    xids_unread: str | None = None
    fabric_state: str | None = None
    worst_link: str | None = None
    nodes: dict[str, str] | None = None
    """Device file -> "" or the errno's name; None: not tried."""


def library_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` without the cuda-compat folders in LD_LIBRARY_PATH.

    A compat libcuda.so in front of the driver's makes NVML report the CUDA version of the compat library.
    """
    variables = dict(environ)
    folders = variables.get("LD_LIBRARY_PATH", "").split(":")
    kept = [folder for folder in folders if not _is_compat(folder)]
    if kept != folders:
        variables["LD_LIBRARY_PATH"] = ":".join(kept)
    return variables


def _is_compat(folder: str) -> bool:
    def holds(name: str) -> bool:
        return os.path.exists(os.path.join(folder, name))  # noqa: PTH110, PTH118 - folder may be relative or odd

    return bool(folder) and holds("libcuda.so.1") and not holds("libnvidia-ml.so.1")


def begin(context: Context) -> NvmlProcessHandle | Text:
    """Start the child that :func:`look` will ask, once, or say why that was not possible.

    Called before the probes run: the child gets ready while they do.
    """
    return once(context, "nvml-child", _started_child)


def _started_child(context: Context) -> NvmlProcessHandle | Text:
    binding = find_binding()
    if binding is None or not sys.executable:
        return t("nvidia-ml-py is not installed beside the doctor: reinstall rundoctor")
    try:
        return NvmlProcessHandle(library_environment(context.environ), binding)
    except OSError as error:
        return t("the process that asks NVML could not be started: {error}", error=str(error))


def look(context: Context) -> NvmlLook:
    """Ask NVML everything once. Never raises for what the driver does; see :class:`NvmlLook`."""
    answer = NvmlLook()
    child = begin(context)
    if isinstance(child, Text):
        answer.why = child
        return answer
    nodes = {name: str(context.path(name)) for name in node_names(context)}
    request = {"system": True, "slow": True, "processes": True, "links": True, "nodes": nodes}
    try:
        child.ask(request)
        _take(answer, child)
    except NvmlSilent as silent:
        answer.why, answer.silent, answer.hung = silent.text, not silent.died, silent.hung
    finally:
        child.abandon()
        context.shared.pop("nvml-child", None)
    return answer


def _take(answer: NvmlLook, child: NvmlProcessHandle) -> None:
    """Fill ``answer`` line by line, so that what came before a hang is kept."""
    rows: list[dict[str, Any]] = []
    takers: dict[str, Callable[[Any], None]] = {
        "system": lambda row: _take_system(answer, row),
        "failed": lambda row: _take_system(answer, row),
        "gpu": lambda row: _take_gpu(answer, rows, row),
        "links": lambda links: setattr(answer, "worst_link", link_name(links)),
        "nodes": lambda nodes: setattr(answer, "nodes", nodes),
    }
    for kind, value in child.steps(SILENCE_S, LIMIT_S):
        takers[kind](value)


def _take_system(answer: NvmlLook, row: dict[str, Any]) -> None:
    if "binding_error" in row:
        answer.why = t("NVIDIA's Python binding could not be used: {error}", error=row["binding_error"])
    answer.nvml_error = row.get("nvml_error")
    answer.message = row.get("message", "")
    answer.library_path = row.get("library_path", answer.library_path)
    answer.driver_version = row.get("driver_version", answer.driver_version)
    if "cuda_version" in row:
        answer.cuda_version = cuda_version(row["cuda_version"])
    if "nvml_version" in row:
        answer.nvml_version = nvml_library_version(row["nvml_version"])


def _take_gpu(answer: NvmlLook, rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    rows.append(row)
    answer.gpus.append(gpu_of(row))
    answer.processes += processes_of(row)
    answer.processes_unread = answer.processes_unread or row.get("unread", {}).get("processes", "")
    answer.fabric_state = fabric_of(rows)


class NvmlReader:
    """Samples the cards again and again through one child; for the sampler. Not thread-safe.

    A child that does not answer is left waiting and asked nothing more until it does: a hung driver costs one stuck
    process and not one a second, and an answer that comes late is given at the next sample instead of being lost. A
    child that died is started anew at the next sample.
    """

    def __init__(
        self, environ: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._environ = library_environment(os.environ if environ is None else environ)
        self._clock = clock
        self._child: NvmlProcessHandle | None = None
        self._cards: dict[int, Gpu] = {}
        self._asked_at: float | None = None
        """Set while an answer is on its way; what came of it so far is in the next three."""
        self._answer = NvmlLook()
        self._lists_processes = False
        self._reads_rates = False
        self._processes_at: float | None = None
        self._rates_at: float | None = None
        self._rates_looks = 0
        self.rates: dict[int, Rates] = {}
        """By card, as read last, at most :data:`RATES_EVERY_S` ago."""
        self.xids: list[NvmlXid] = []
        """What NVML told of Xids so far; whoever reads them empties the list."""
        self.xids_unread: str | None = None
        """Why NVML tells of no Xids; "": it does; None: not asked yet."""
        self.processes: tuple[NvmlProcess, ...] = ()
        """Compute processes as NVML listed them last, at most :data:`PROCESSES_EVERY_S` ago."""
        self.processes_unread = ""
        """Why a card's processes could not be listed, in NVML's words."""

    @property
    def is_waiting(self) -> bool:
        """Whether NVML was asked and has not answered yet: it may still, and the next sample looks."""
        return self._asked_at is not None

    def sample(self, timeout_s: float = SILENCE_S) -> list[Gpu] | Text:
        """Return the cards as they are now, or the reason why they could not be read within ``timeout_s``.

        Where the driver takes longer than that each time, its last answer is returned while the next is on its way.
        """
        late: list[Gpu] = []
        try:
            if self._asked_at is not None:
                late = self._late(timeout_s)
            if not self._ask():
                return t("nvidia-ml-py is not installed beside the doctor: reinstall rundoctor")
            return self._collect(timeout_s)
        except NvmlSilent as silent:
            if silent.died:
                self.close()
            return silent.text if silent.died or not late else late
        except OSError as error:
            return t("the process that asks NVML could not be started: {error}", error=str(error))

    def _late(self, timeout_s: float) -> list[Gpu]:
        """Take the answer that was under way; empty: it is too old to show, or was a refusal."""
        asked_at = self._asked_at or 0.0
        answer = self._collect(timeout_s)
        return answer if isinstance(answer, list) and self._clock() - asked_at <= STALE_S else []

    def close(self) -> None:
        """Let the child go; never waits for it."""
        if self._child is not None:
            self._child.abandon()
        self._child, self._asked_at, self._cards = None, None, {}
        self._rates_at, self._rates_looks, self.rates, self.xids_unread = None, 0, {}, None

    def _ask(self) -> bool:
        """Ask for one round; False: there is no binding to ask through."""
        child = self._started()
        if child is None:
            return False
        now = self._clock()
        self._lists_processes = self._processes_at is None or now - self._processes_at >= PROCESSES_EVERY_S
        self._reads_rates = self._rates_are_due(now)
        request = {"slow": not self._cards, "processes": self._lists_processes, "rates": self._reads_rates}
        child.ask(request)
        self._asked_at, self._answer = now, NvmlLook()
        return True

    def _rates_are_due(self, now: float) -> bool:
        """The first two looks follow each other: a rate is of the time between two."""
        return self._rates_at is None or self._rates_looks < 2 or now - self._rates_at >= RATES_EVERY_S

    def _collect(self, timeout_s: float) -> list[Gpu] | Text:
        """Take what comes of the answer under way; raises NvmlSilent where it is not whole in time, and keeps the part."""
        assert self._child is not None and self._asked_at is not None
        answer = self._answer
        for kind, value in self._child.steps(timeout_s, timeout_s):
            if kind == "gpu":
                answer.gpus.append(gpu_of(value))
                answer.processes += processes_of(value)
                why = value.get("unread", {}).get("processes", "")
                answer.processes_unread = answer.processes_unread or why
            elif kind == "rates":
                answer.rates[value["index"]] = rates_of(value)
            elif kind == "xids":
                answer.xids, answer.xids_unread = xids_of(value), xids_reason(value)
            elif kind in ("system", "failed"):
                _take_system(answer, value)
        asked_at, self._asked_at = self._asked_at, None
        if answer.nvml_error != 0:
            return answer.why or nvml_reason(answer)
        if self._lists_processes:
            self._processes_at, self.processes = asked_at, tuple(answer.processes)
            self.processes_unread = answer.processes_unread
        if self._reads_rates:
            self._rates_at, self._rates_looks = asked_at, self._rates_looks + 1
            self.rates, self.xids_unread = answer.rates, answer.xids_unread
            self.xids += answer.xids
        return [self._whole(card) for card in answer.gpus]

    def _started(self) -> NvmlProcessHandle | None:
        if self._child is not None and not self._child.alive():
            self.close()
        if self._child is None:
            binding = find_binding()
            if binding is None:
                return None
            self._child = NvmlProcessHandle(self._environ, binding)
        return self._child

    def _whole(self, card: Gpu) -> Gpu:
        known = self._cards.get(card.index)
        if card.error and not card.name and known is not None:
            return with_live_values(known, card)
        if known is None or known.uuid != card.uuid:
            self._cards[card.index] = card
            return card
        return with_live_values(known, card)


def nvml_reason(answer: NvmlLook) -> Text:
    """Return why NVML gives nothing, from its error code."""
    if answer.nvml_error == 12:
        return t(
            "libnvidia-ml.so.1 could not be loaded: {message}",
            message=(answer.message or "not found").removeprefix("libnvidia-ml.so.1: "),
        )
    return t("NVML said {message} ({code})", message=answer.message, code=answer.nvml_error or 0)
