"""The last fallback: ``nvidia-smi --query-gpu``, only where NVML's library is not to be had for us. Never its banner."""

from __future__ import annotations

import os
import select
import subprocess
import time
from pathlib import Path
from typing import IO

from doctor.model import Gpu
from doctor.probes import Context
from doctor.probes.nvml_rows import pci_address

TIMEOUT_S = 2.0
OUTPUT_LIMIT_BYTES = 1 << 18
FIELDS = (
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "memory.free",
    "driver_version",
    "compute_cap",
)
_WSL = "/usr/lib/wsl/lib"
_running: list[subprocess.Popen[bytes]] = []


def find_nvidia_smi(context: Context) -> str | None:
    """Return nvidia-smi on the session's PATH, or where WSL keeps it."""
    folders = [*context.environ.get("PATH", os.defpath).split(os.pathsep), str(context.path(_WSL))]
    found = (Path(folder, "nvidia-smi") for folder in folders if folder)
    return next((str(path) for path in found if path.is_file() and os.access(path, os.X_OK)), None)


def query_cards(context: Context, executable: str) -> tuple[list[Gpu], str] | None:
    """Return the cards and the driver's version; None where nvidia-smi fails or takes too long."""
    for fields in (FIELDS, FIELDS[:-1]):  # compute_cap: driver 510 and newer
        argv = [executable, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        output = _bounded_output(argv, dict(context.environ))
        if output is None:
            return None
        if cards := parse_query(output, fields):
            return cards
    return None


def parse_query(output: str, fields: tuple[str, ...]) -> tuple[list[Gpu], str] | None:
    """Parse the CSV rows of ``--query-gpu``; None where they are not such rows."""
    # 0, NVIDIA GeForce RTX 4090, GPU-5c1f..., 00000000:01:00.0, 24564, 3, 24070, 550.54.15, 8.9
    cards, driver = [], ""
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields) or not cells[0].isdigit():
            return None
        row = dict(zip(fields, cells, strict=True))
        driver = row["driver_version"]
        cards.append(
            Gpu(
                index=int(row["index"]), name=row["name"], uuid=row["uuid"], pci_address=pci_address(row["pci.bus_id"]),
                compute_capability=row.get("compute_cap", "") if row.get("compute_cap", "[")[0] != "[" else "",
                memory_total_bytes=_mib(row["memory.total"]), memory_used_bytes=_mib(row["memory.used"]),
                memory_free_bytes=_mib(row["memory.free"]),
            )
        )  # fmt: skip
    return (cards, driver) if cards else None


def _mib(cell: str) -> int | None:
    """``[N/A]`` and ``[Unknown Error]`` are None."""
    return int(cell) << 20 if cell.isdigit() else None


def _bounded_output(argv: list[str], environ: dict[str, str]) -> str | None:
    """Return what ``argv`` prints, "" where it fails, None where it does not end in time; it is left behind then."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env=environ, cwd="/", start_new_session=True,
        )  # fmt: skip
    except OSError:
        return ""
    assert process.stdout is not None
    output, ended = _read_until(process.stdout, time.monotonic() + TIMEOUT_S)
    process.stdout.close()
    if not (ended and _ends_soon(process)):
        process.kill()
        _running.append(process)
        return None
    return output.decode("utf-8", "replace") if process.returncode == 0 else ""


def _read_until(pipe: IO[bytes], end: float) -> tuple[bytes, bool]:
    """Return what came through ``pipe`` before ``end``, and whether that was all of it."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    output = b""
    while len(output) < OUTPUT_LIMIT_BYTES and poll.poll(max(0.0, end - time.monotonic()) * 1000):
        piece = pipe.read(1 << 16)
        if not piece:
            return output, True
        output += piece
    return output, False


def _ends_soon(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        return False
    return True
