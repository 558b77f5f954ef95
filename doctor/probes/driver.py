"""The NVIDIA driver and its cards: several sources, each kept where they disagree. NVML is asked once for all sections."""

from __future__ import annotations

from pathlib import Path

import msgspec

from doctor.model import Driver, Gpu, GpuProcesses, Gpus, OtherAnswer, Reading, Text, t
from doctor.probes import Context
from doctor.probes.device_nodes import existing_nodes, is_card
from doctor.probes.driver_sources import (
    KernelModule,
    PciGpus,
    ProcCard,
    find_library,
    has_nvswitch,
    kernel_module,
    pci_gpus,
    proc_cards,
    version_in_name,
)
from doctor.probes.gpu_processes import identify
from doctor.probes.nvidia_smi import find_nvidia_smi, query_cards
from doctor.probes.nvml import NvmlLook, look, nvml_reason
from doctor.probes.sharing import once

LIBRARY_MISSING, NOT_LOADED = 12, 9


class Sources(msgspec.Struct, frozen=True):
    """Everything that was asked of the driver, in one place."""

    nvml: NvmlLook
    module: KernelModule
    bus: PciGpus
    cards: list[ProcCard]
    nodes: list[str]
    smi: tuple[list[Gpu], str] | None
    """What ``nvidia-smi --query-gpu`` said; asked only where NVML could not be."""

    @property
    def traces(self) -> bool:
        """Is there any sign of NVIDIA here? An NVML that answers is one, even where it says "not loaded"."""
        answered = self.nvml.silent or self.nvml.nvml_error not in (None, LIBRARY_MISSING)
        return bool(
            answered or self.smi or self.module.version or self.nodes or self.cards or self.bus.nvidia
        )

    @property
    def looked_everywhere(self) -> bool:
        """Could the absence of every trace be seen? Not where NVML could not be asked and there is no bus to list."""
        return self.nvml.nvml_error is not None or self.bus.nvidia is not None


def _sources(context: Context) -> Sources:
    nvml = look(context)
    smi = None
    unasked = nvml.nvml_error == LIBRARY_MISSING or (nvml.nvml_error is None and not nvml.silent)
    if unasked and (executable := find_nvidia_smi(context)):
        smi = query_cards(context, executable)
    return Sources(
        nvml=nvml,
        module=kernel_module(context),
        bus=pci_gpus(context),
        cards=proc_cards(context),
        nodes=existing_nodes(context),
        smi=smi,
    )


def sources(context: Context) -> Sources:
    """Return what the sources say, asked once for all sections."""
    return once(context, "driver-sources", _sources)


# ---------------------------------------------------------------------------------------------- the driver
def probe(context: Context) -> Reading[Driver]:
    """Read the driver. *absent*: looked everywhere, no trace. *failed*: only a question that was never answered is left."""
    found = sources(context)
    if not found.traces:
        return _no_driver(found)
    libcuda = find_library(context, "libcuda.so.1")
    versions = _versions(found, libcuda)
    driver = _driver(context, found, libcuda, versions)
    said = versions[0] if versions else None
    answers = versions[1:]
    if driver.libcuda_version and not any(answer.source == driver.libcuda_path for answer in versions):
        answers.append(OtherAnswer(source=str(driver.libcuda_path), value=driver.libcuda_version))
    others = tuple(answer for answer in answers if said and answer.value != said.value)
    return Reading(
        status="ok", value=driver, source=said.source if said else "/dev, /sys/bus/pci", others=others
    )


def _no_driver(found: Sources) -> Reading[Driver]:
    """A machine without NVIDIA; its other cards are still named."""
    others = found.bus.others
    if not found.looked_everywhere and found.nvml.why is not None:
        return Reading(status="failed", why=found.nvml.why, source="NVML")
    return Reading(
        status="absent",
        value=Driver(nvml_error=found.nvml.nvml_error, other_vendor_gpus=others) if others else None,
        why=t(
            "no NVIDIA driver: no kernel module, no device files, no card on the PCI bus, and NVML does not answer"
        ),
        source="NVML, /proc/driver/nvidia, /sys/module/nvidia, /dev, /sys/bus/pci",
    )


def _versions(found: Sources, libcuda: Path | None) -> list[OtherAnswer]:
    """Return the driver's version from every source that has one, the one to believe first."""
    nvml = found.nvml
    named = version_in_name(libcuda) if libcuda else None
    return [
        OtherAnswer(source=source, value=version)
        for source, version in (
            ("nvmlSystemGetDriverVersion", nvml.driver_version),
            ("nvidia-smi --query-gpu=driver_version", found.smi[1] if found.smi else None),
            ("nvmlSystemGetNVMLVersion", nvml.nvml_version),
            (f"{libcuda}", None if libcuda and _beside_compat(libcuda, named, found.module) else named),
            ("/sys/module/nvidia/version", found.module.sys_version),
            ("/proc/driver/nvidia/version", found.module.proc_version),
        )
        if version
    ]


def _beside_compat(libcuda: Path, version: str | None, module: KernelModule) -> bool:
    """A cuda-compat libcuda.so in front of the driver's own says nothing of the driver's version."""
    return "compat" in str(libcuda) or bool(
        version and module.version and version.split(".")[0] != module.version.split(".")[0]
    )


def _driver(context: Context, found: Sources, libcuda: Path | None, versions: list[OtherAnswer]) -> Driver:
    nvml = found.nvml
    return Driver(
        version=versions[0].value if versions else None,
        cuda_version=nvml.cuda_version,
        kernel_module_version=found.module.version or None,
        nvml_library_version=nvml.nvml_version
        or (version_in_name(Path(nvml.library_path)) if nvml.library_path else None),
        libcuda_path="" if libcuda is None else str(libcuda),
        libcuda_version=version_in_name(libcuda) if libcuda else None,
        nvml_error=nvml.nvml_error,
        hung=nvml.hung or None,
        device_nodes=_device_nodes(found),
        nvswitch=has_nvswitch(context, found.bus),
        fabric_state=nvml.fabric_state,
        open_kernel_module=found.module.open,
        other_vendor_gpus=found.bus.others,
        pci_gpu_count=found.bus.nvidia,
        unread=_unread(found),
    )


def _device_nodes(found: Sources) -> dict[str, str]:
    """Return what opening the files gave. Where NVML answers without any of them (WSL), none is missing."""
    return {} if found.nvml.nvml_error == 0 and not found.nodes else found.nvml.nodes or {}


def _unread(found: Sources) -> dict[str, Text]:
    nvml = found.nvml
    reasons: dict[str, Text] = {}
    why = nvml.why or (nvml_reason(nvml) if nvml.nvml_error else None)
    if nvml.nvml_error is None and nvml.why is not None:
        reasons["nvml_error"] = nvml.why
    if nvml.cuda_version is None and why is not None:
        reasons["cuda_version"] = why
    if nvml.nodes is None and why is not None:
        reasons["device_nodes"] = why
    if not found.module.version:
        reasons["kernel_module_version"] = t(
            "neither /sys/module/nvidia/version nor /proc/driver/nvidia/version is there"
        )
    if found.bus.nvidia is None:
        reasons["pci_gpu_count"] = t("/sys/bus/pci/devices is not there")
    return reasons


# ---------------------------------------------------------------------------------------------- its cards
def probe_gpus(context: Context) -> Reading[Gpus]:
    """Read the cards. *absent*: none is reachable from here. *failed*: there are cards, or may be, and NVML did not say."""
    found = sources(context)
    nvml = found.nvml
    others = tuple(
        OtherAnswer(source=f"/proc/driver/nvidia/gpus/{card.address}", value=card.model)
        for card in found.cards
    )
    if nvml.gpus and (nvml.nvml_error == 0 or nvml.silent):
        return Reading(status="ok", value=_gpus(nvml), source="NVML")
    if found.smi:
        return Reading(status="ok", value=Gpus(items=tuple(found.smi[0])), source="nvidia-smi --query-gpu")
    if nvml.nvml_error == 0 and nvml.why is None:
        return Reading(status="absent", why=t("NVML answers and lists no card"), source="NVML", others=others)
    if not found.traces and found.looked_everywhere:
        return Reading(
            status="absent",
            why=t("no NVIDIA card: none on the PCI bus, no driver, no device files"),
            source="NVML",
        )
    if nvml.nvml_error == NOT_LOADED and found.bus.nvidia == 0 and not found.cards and not found.nodes:
        why = t("the driver is not loaded and there is no NVIDIA card on the PCI bus")
        return Reading(status="absent", why=why, source="NVML, /sys/bus/pci")
    if nvml.nvml_error == LIBRARY_MISSING and not any(map(is_card, found.nodes)):
        return Reading(status="absent", why=_none_given(found), source="/dev/nvidia*", others=others)
    return Reading(status="failed", why=nvml.why or nvml_reason(nvml), source="NVML", others=others)


def _gpus(nvml: NvmlLook) -> Gpus:
    """A round that hung half way keeps the cards that had answered, and says so."""
    unread = {"items": nvml.why} if nvml.why is not None else {}
    return Gpus(items=tuple(nvml.gpus), topology_worst_link=nvml.worst_link, unread=unread)


def _none_given(found: Sources) -> Text:
    if found.module.version:
        return t(
            "no card is given to this container or session: the kernel has NVIDIA driver {version}, but there is no /dev/nvidia0 and no libnvidia-ml.so.1",
            version=found.module.version,
        )
    return t("no NVIDIA driver here: no /dev/nvidia0 and no libnvidia-ml.so.1")


# ---------------------------------------------------------------------------------------------- who uses them
def probe_processes(context: Context) -> Reading[GpuProcesses]:
    """Read which processes hold the cards' memory, and which of them are ours beyond doubt."""
    found = sources(context)
    nvml = found.nvml
    cards = probe_gpus(context)
    if cards.status != "ok":
        return Reading(status=cards.status, why=cards.why, source="NVML")
    if nvml.nvml_error != 0 and not nvml.gpus:
        return Reading(status="failed", why=nvml.why or nvml_reason(nvml), source="NVML")
    if nvml.processes_unread and not nvml.processes:
        why = t("NVML does not list processes here: {reason}", reason=nvml.processes_unread)
        return Reading(status="failed", why=why, source="NVML")
    items = identify(context, nvml.processes)
    unread = {"items": nvml.why} if nvml.why is not None else {}
    return Reading(status="ok", value=GpuProcesses(items=items, unread=unread), source="NVML, /proc")
