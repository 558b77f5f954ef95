"""What the kernel, the PCI bus and the loader say of an NVIDIA driver, without calling it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from doctor.probes import Context
from doctor.probes.bounded import names_in, read_bytes, text_or_empty
from doctor.probes.library_folders import DEFAULT_FOLDERS, loader_folders

# NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16)
_NVRM = re.compile(r"^NVRM version:.*?\s(\d{3,}\.\d+(?:\.\d+)*)\s", re.M)
# libcuda.so.550.54.15
_DRIVER_IN_NAME = re.compile(r"\.so\.(\d{3,}\.\d+(?:\.\d+)*)$")
_VENDOR_NVIDIA = "0x10de"
# PCI vendor ids of makers whose cards train, from the PCI ID database (pci-ids.ucw.cz, 2026-11).
OTHER_VENDORS = {
    "0x1002": "AMD",
    "0x8086": "Intel",
    "0x19e5": "Huawei Ascend",
    "0xcabc": "Cambricon",
    "0x1ed5": "Moore Threads",
    "0x1d94": "Hygon",
    "0x1e3e": "Iluvatar",
    "0x9999": "MetaX",
    "0x1ee0": "Biren",
    "0x1e36": "Enflame",
    "0x1da3": "Habana",
}
_INTEGRATED = "0000:00:02.0"
"""Where Intel's graphics of the processor itself sit: no card."""


class KernelModule(msgspec.Struct, frozen=True):
    """The loaded kernel module as /sys and /proc name it; empty: that file is not there."""

    sys_version: str = ""
    proc_version: str = ""
    open: bool | None = None

    @property
    def version(self) -> str:
        return self.sys_version or self.proc_version


def kernel_module(context: Context) -> KernelModule:
    """Read /sys/module/nvidia/version and /proc/driver/nvidia/version."""
    banner = text_or_empty(context.path("/proc/driver/nvidia/version"))
    return KernelModule(
        sys_version=text_or_empty(context.path("/sys/module/nvidia/version")).strip(),
        proc_version=parse_nvrm_version(banner),
        open=parse_open_module(banner),
    )


def parse_nvrm_version(banner: str) -> str:
    """Return the driver version in /proc/driver/nvidia/version; empty where there is none."""
    match = _NVRM.search(banner)
    return match[1] if match else ""


def parse_open_module(banner: str) -> bool | None:
    """Return whether the open kernel modules are loaded; None where the text does not say."""
    first = banner.partition("\n")[0]
    return "Open Kernel Module" in first if first.startswith("NVRM version:") else None


class PciGpus(msgspec.Struct, frozen=True):
    """Display controllers and accelerators on the bus; ``None``: the bus could not be listed."""

    nvidia: int | None = None
    others: tuple[str, ...] = ()
    nvswitch: bool = False


def pci_gpus(context: Context) -> PciGpus:
    """Read vendor and class of every PCI device. In a container this is the host's bus, whatever was rented."""
    folder = context.path("/sys/bus/pci/devices")
    nvidia, others, nvswitch = 0, [], False
    if not folder.is_dir():
        return PciGpus()
    for address in names_in(folder):
        vendor, kind = (text_or_empty(folder / address / name, 64).strip() for name in ("vendor", "class"))
        if vendor == _VENDOR_NVIDIA:
            nvidia += kind.startswith("0x03")
            nvswitch = nvswitch or kind.startswith("0x0680")
        elif vendor in OTHER_VENDORS and _is_card(vendor, kind, address):
            device = text_or_empty(folder / address / "device", 64).strip()
            others.append(f"{OTHER_VENDORS[vendor]} {vendor[2:]}:{device[2:]} ({address})")
    return PciGpus(nvidia=nvidia, others=tuple(others), nvswitch=nvswitch)


def _is_card(vendor: str, kind: str, address: str) -> bool:
    """0x03: display controller, 0x12: processing accelerator."""
    if vendor == "0x8086" and (address == _INTEGRATED or kind.startswith("0x12")):
        return False  # Intel's processors show their own accelerators (QAT, DSA, NPU) under class 0x12
    return kind.startswith(("0x03", "0x12"))


class ProcCard(msgspec.Struct, frozen=True):
    """One folder of /proc/driver/nvidia/gpus."""

    address: str
    model: str = ""
    uuid: str = ""


def proc_cards(context: Context) -> list[ProcCard]:
    """Read the cards that the kernel module drives, without asking it."""
    folder = context.path("/proc/driver/nvidia/gpus")
    return [
        parse_proc_card(address, text_or_empty(folder / address / "information"))
        for address in names_in(folder)
    ]


def parse_proc_card(address: str, information: str) -> ProcCard:
    """Parse /proc/driver/nvidia/gpus/ADDRESS/information."""
    # Model: 		 NVIDIA GeForce RTX 4090
    # GPU UUID: 	 GPU-5c1f3f9e-....
    fields = dict(re.findall(r"^([^:\n]+):[ \t]*(.*)$", information, re.M))
    return ProcCard(
        address=address, model=fields.get("Model", "").strip(), uuid=fields.get("GPU UUID", "").strip()
    )


def find_library(context: Context, soname: str) -> Path | None:
    """Return the file that the loader takes for ``soname``: LD_LIBRARY_PATH, its cache, the default folders.

    Files of another word size are passed over, as the loader does.
    """
    for candidate in _candidates(context, soname):
        try:
            head = read_bytes(candidate, 5)
        except OSError:
            continue
        if head == b"\x7fELF\x02":
            return candidate
    return None


def _candidates(context: Context, soname: str) -> Iterator[Path]:
    for folder in loader_folders(context.environ, context.cwd):
        yield folder / soname
    try:
        cache = read_bytes(context.path("/etc/ld.so.cache"), 32 << 20)
    except OSError:
        cache = b""
    for match in re.finditer(rb"(?<=\0)(/[^\0]*/" + re.escape(soname.encode()) + rb")\0", cache):
        yield context.path(os.fsdecode(match[1]))
    for default in DEFAULT_FOLDERS:
        yield context.path(default) / soname


def version_in_name(library: Path) -> str | None:
    """Return the driver version in the name of the file behind a link: libcuda.so.550.54.15."""
    match = _DRIVER_IN_NAME.search(os.path.realpath(library))
    return match[1] if match else None


def has_nvswitch(context: Context, bus: PciGpus) -> bool | None:
    """Return whether this machine has NVSwitch chips; None where neither the bus nor /dev could be read."""
    if bus.nvswitch or any(name.startswith("nvidia-nvswitch") for name in names_in(context.path("/dev"))):
        return True
    if names_in(context.path("/proc/driver/nvidia-nvswitch/devices")):
        return True
    return None if bus.nvidia is None else False
