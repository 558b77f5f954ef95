"""The only code that reads the machine. One section of facts a file; each gives a Reading and never raises.

A probe module has ``probe(context) -> Reading[Section]`` beside pure ``parse_*`` functions on literal text. Every
probe runs in its own daemon thread with a deadline; one that hangs is left behind and its section reads *failed*, the
others still answer. What can hang beyond a signal's reach (NVML) lives in a child process that is abandoned.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.model import Facts, Reading, t

if TYPE_CHECKING:
    from doctor.probes.target import Target

DEADLINE_S = 5.0
"""For a probe without a deadline of its own. NVML's is 2 s (see probes/nvml.py)."""

HEAD_START_S = 0.1
ASK_NVML = frozenset({"driver", "gpus", "gpu_processes"})
"""Sections whose probes wait for NVML's child."""

# section -> (module under doctor.probes, function). Modules are imported when their probe runs.
PROBES: dict[str, tuple[str, str]] = {
    "driver": ("driver", "probe"),
    "gpus": ("driver", "probe_gpus"),
    "gpu_processes": ("driver", "probe_processes"),
    "host": ("host", "probe"),
    "container": ("container", "probe"),
    "platform": ("platform", "probe"),
    "kernel_log": ("kernel_log", "probe"),
    "python": ("python", "probe"),
    "packages": ("packages", "probe"),
    "torch": ("torch", "probe"),
    "libraries": ("libraries", "probe"),
    "storage": ("storage", "probe"),
    "environment": ("environment", "probe"),
    "processes": ("processes", "probe"),
    "project": ("project", "probe"),
}

# Read only when asked for by name: `doctor check` does without.
ON_REQUEST: dict[str, tuple[str, str]] = {"provenance": ("provenance", "probe")}


class Context:
    """What probes are handed: where to look, and as whom. Tests hand in a recorded tree.

    Written out: the module that makes such classes takes longer to load than all else here.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        python: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        data_paths: tuple[Path, ...] = (),
    ) -> None:
        self.root = root
        """Stands for ``/`` wherever a probe reads /proc, /sys, /etc, /dev."""
        self.environ: Mapping[str, str] = dict(os.environ) if environ is None else environ
        self.cwd = Path.cwd() if cwd is None else cwd
        self.python = python
        """``--python``: an interpreter, or a folder that holds ``bin/python``."""
        self.clock = clock
        self.data_paths = data_paths
        """Files and folders whose contents a snapshot is to name (probes/data_prints.py)."""

    def path(self, absolute: str) -> Path:
        """Return ``absolute`` (``/proc/meminfo``) below :attr:`root`."""
        return self.root / absolute.lstrip("/")

    def read(self, absolute: str, limit_bytes: int = 1 << 20) -> str:
        """Return the text of a small file below root; undecodable bytes come as surrogates.

        Opened without blocking, so that a FIFO in its place cannot hang the probe.

        Raises:
            OSError: it is not there, or may not be read, or is no regular file.
        """
        from doctor.probes.bounded import read_text

        return read_text(self.path(absolute), limit_bytes)

    @cached_property
    def target(self) -> Target:
        """The interpreter that is judged, found once."""
        from doctor.probes.target import find_target

        return find_target(self)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """Scratch for probes that answer several sections from one look (NVML). Guard with :attr:`lock`."""
        return {}

    @cached_property
    def lock(self) -> threading.RLock:
        return threading.RLock()


def read_facts(
    context: Context,
    sections: Iterable[str] | None = None,
    deadline_s: float = DEADLINE_S,
    meanwhile: Callable[[], object] | None = None,
) -> Facts:
    """Run the probes of ``sections`` (all by default) side by side and return what they read.

    A probe that is not done within ``deadline_s`` reads *failed*, as does one that raises (a bug, said as such).
    ``meanwhile`` is called once the probes run: they wait for disks and the driver most of their time.
    """
    known = {**PROBES, **ON_REQUEST}
    wanted = list(PROBES) if sections is None else [name for name in known if name in set(sections)]
    context.lock, context.shared  # made here, once, before the threads share them  # noqa: B018
    if ASK_NVML.intersection(wanted):
        _begin_nvml(context)
    context.target  # likewise  # noqa: B018
    readings: dict[str, Reading[Any]] = {}
    threads = {
        name: threading.Thread(target=_run, args=(name, context, readings), daemon=True) for name in wanted
    }
    for thread in threads.values():
        thread.start()
    end = time.monotonic() + deadline_s
    if meanwhile is not None:
        meanwhile()
    for name, thread in threads.items():
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            why = t("no answer within {seconds} s", seconds=round(deadline_s, 1))
            readings[name] = Reading(status="failed", why=why, took_ms=deadline_s * 1000)
    return Facts(**{name: readings[name] for name in wanted})


def _begin_nvml(context: Context) -> None:
    """Start NVML's child first of all: it gets ready on another core while the probes are loaded and run.

    In a thread, and not waited for long: it looks into the folders of LD_LIBRARY_PATH, one of which may hang.
    """
    from doctor.probes.nvml import begin

    def begin_quietly() -> None:
        with suppress(Exception):  # the probe of the driver meets it again, and says so in its reading
            begin(context)

    thread = threading.Thread(target=begin_quietly, daemon=True)
    thread.start()
    thread.join(HEAD_START_S)


def _run(section: str, context: Context, readings: dict[str, Reading[Any]]) -> None:
    module, function = PROBES.get(section) or ON_REQUEST[section]
    begun = time.perf_counter()
    try:
        reading = getattr(importlib.import_module(f"doctor.probes.{module}"), function)(context)
    except (
        Exception
    ) as error:  # a bug in one probe must not cost the others their answer; it is named in the reading
        why = t("the probe itself broke: {error}", error=f"{type(error).__name__}: {error}")
        reading = Reading(status="failed", why=why, source=f"doctor.probes.{module}")
    took_ms = round((time.perf_counter() - begun) * 1000, 1)
    readings.setdefault(section, _timed(reading, took_ms))


def _timed(reading: Reading[Any], took_ms: float) -> Reading[Any]:
    import msgspec

    return msgspec.structs.replace(reading, took_ms=took_ms) if reading.took_ms is None else reading
