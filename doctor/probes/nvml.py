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

SILENCE_S = 2.0
"""A child that lies still in the driver for so long is given up: a card answers in milliseconds, a hung driver never."""
LIMIT_S = 4.5
"""Longest wait for the whole answer, below the deadline of the probes: cards that must be woken first are slow."""
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


def look(context: Context) -> NvmlLook:
    """Ask NVML everything once. Never raises for what the driver does; see :class:`NvmlLook`."""
    answer = NvmlLook()
    binding = find_binding()
    if binding is None or not sys.executable:
        answer.why = t("nvidia-ml-py is not installed beside the doctor: reinstall rundoctor")
        return answer
    try:
        child = NvmlProcessHandle(library_environment(context.environ), binding)
    except OSError as error:
        answer.why = t("the process that asks NVML could not be started: {error}", error=str(error))
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

    A child that hangs is left waiting and asked nothing more until it answers, so that a hung driver costs one stuck
    process and not one a second. One that died is started anew at the next sample.
    """

    def __init__(
        self, environ: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._environ = library_environment(os.environ if environ is None else environ)
        self._clock = clock
        self._child: NvmlProcessHandle | None = None
        self._cards: dict[int, Gpu] = {}
        self._pending = False
        self._processes_at: float | None = None
        self.processes: tuple[NvmlProcess, ...] = ()
        """Compute processes as NVML listed them last, at most :data:`PROCESSES_EVERY_S` ago."""

    def sample(self, timeout_s: float = SILENCE_S) -> list[Gpu] | Text:
        """Return the cards as they are now, or the reason why they could not be read within ``timeout_s``."""
        try:
            if self._pending:
                self._drain(timeout_s)
            return self._round(timeout_s)
        except NvmlSilent as silent:
            if silent.died:
                self.close()
            return silent.text
        except OSError as error:
            return t("the process that asks NVML could not be started: {error}", error=str(error))

    def close(self) -> None:
        """Let the child go; never waits for it."""
        if self._child is not None:
            self._child.abandon()
        self._child, self._pending, self._cards = None, False, {}

    def _drain(self, timeout_s: float) -> None:
        """Take the rest of an answer that came too late."""
        assert self._child is not None
        for _ in self._child.steps(timeout_s, timeout_s):
            pass
        self._pending = False

    def _round(self, timeout_s: float) -> list[Gpu] | Text:
        child = self._started()
        if child is None:
            return t("nvidia-ml-py is not installed beside the doctor: reinstall rundoctor")
        now = self._clock()
        lists_processes = self._processes_at is None or now - self._processes_at >= PROCESSES_EVERY_S
        child.ask({"slow": not self._cards, "processes": lists_processes})
        self._pending = True
        answer, cards = NvmlLook(), list[Gpu]()
        processes: list[NvmlProcess] = []
        for kind, value in child.steps(timeout_s, timeout_s):
            if kind == "gpu":
                cards.append(gpu_of(value))
                processes += processes_of(value)
            elif kind in ("system", "failed"):
                _take_system(answer, value)
        self._pending = False
        if answer.nvml_error != 0:
            return answer.why or nvml_reason(answer)
        if lists_processes:
            self._processes_at, self.processes = now, tuple(processes)
        return [self._whole(card) for card in cards]

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
        return t("libnvidia-ml.so.1 could not be loaded: {message}", message=answer.message or "not found")
    return t("NVML said {message} ({code})", message=answer.message, code=answer.nvml_error or 0)
