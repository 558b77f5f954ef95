"""Checks on faults of the cards themselves: what NVML and the kernel log say, and what is a program's own error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check
from doctor.checks.gpu import card_name
from doctor.model import Evidence, Finding, Gpu, Gpus, Incident, KernelLog, Level, Reading, Record, Text, t
from doctor.tables.xids import Xid, read, short_pci
from runner.text import Param

_TELL_THE_PROVIDER = t(
    "Stop using this card: continue from the last checkpoint on another machine, and report the card, the time and the line to the provider. A power cycle may bring it back for a while."
)
_HAVE_IT_RESET = t(
    "Save a checkpoint, then restart the instance so that the card is reset; when it comes back, release the machine and report it."
)


# nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 27 LTSSM Fault Up
_FATAL_SWITCH = re.compile(r"SXid \([^)]*\): \d+, Fatal")


# RuntimeError: CUDA error: uncorrectable ECC error encountered | CUDA_ERROR_ECC_UNCORRECTABLE | cudaErrorECCUncorrectable
_UNCORRECTABLE = re.compile(
    r"uncorrectable ECC error encountered|CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable"
)


class Fault(Record, frozen=True):
    """One thing said against a card."""

    level: Level
    title: Text
    fact: str
    value: str


@check("gpu-hardware-fault")
def cards_are_sound(
    gpus: Reading[Gpus], kernel_log: Reading[KernelLog], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Does a card, the kernel log about a card, or a run that ended on one, report a fault of the hardware?"""
    faults: dict[str, list[Fault]] = {}
    for index, gpu in enumerate(gpus.value.items if gpus.value else ()):
        faults.setdefault(card_name(gpu), []).extend(_said_by_nvml(index, gpu))
    for place, xid in enumerate_xids(kernel_log):
        card = _card_of(xid, gpus)
        fault = _said_by_the_kernel(place, xid, card, gpus)
        if fault:
            faults.setdefault(card_name(card) if card else xid.pci, []).append(fault)
    for place, line in enumerate(kernel_log.value.lines if kernel_log.value else ()):
        if _FATAL_SWITCH.search(line):
            title = t("the switch between the GPUs (NVSwitch) reported a fatal error")
            faults.setdefault("NVSwitch", []).append(
                Fault(level="warn", title=title, fact=f"kernel_log.lines[{place}]", value=line)
            )
    for place, line in enumerate(incident.value.log_lines if incident.value else ()):
        if _UNCORRECTABLE.search(line):
            cards = gpus.value.items if gpus.value else ()
            name = card_name(cards[0]) if len(cards) == 1 else "GPU"
            title = t("a run ended on memory of the card that cannot be corrected (ECC)")
            faults.setdefault(name, []).append(
                Fault(level="fail", title=title, fact=f"incident.log_lines[{place}]", value=line[:160])
            )
            break
    for name, found in faults.items():
        if found:
            yield _finding(name, found, kernel_log, _cards_called(name, gpus))


def enumerate_xids(kernel_log: Reading[KernelLog]) -> Iterator[tuple[int, Xid]]:
    """Yield the place and the Xid of each line that reports one."""
    for place, line in enumerate(kernel_log.value.lines if kernel_log.value else ()):
        xid = read(line)
        if xid:
            yield place, xid


def _cards_called(name: str, gpus: Reading[Gpus]) -> list[tuple[int, Gpu]]:
    cards = gpus.value.items if gpus.value else ()
    return [(place, gpu) for place, gpu in enumerate(cards) if card_name(gpu) == name][:1]


def _finding(
    name: str, found: list[Fault], kernel_log: Reading[KernelLog], card: list[tuple[int, Gpu]]
) -> Finding:
    order: tuple[Level, ...] = ("fail", "warn", "note", "unknown")
    worst = min(found, key=lambda fault: order.index(fault.level))
    lines = kernel_log.value.lines if kernel_log.value else ()
    link = [(place, line) for place, line in enumerate(lines) if "AER" in line][:1]
    rows = [(fault.fact, fault.value) for fault in found]
    rows += [(f"gpus.items[{place}].pci_address", gpu.pci_address) for place, gpu in card if gpu.pci_address]
    rows += [(f"kernel_log.lines[{place}]", line) for place, line in link if worst.level == "fail"]
    return Finding(
        id="gpu-hardware-fault",
        level=worst.level,
        subject=name,
        title=worst.title,
        evidence=tuple(Evidence(fact=fact, value=value) for fact, value in dict.fromkeys(rows)),
        advice={"fail": _TELL_THE_PROVIDER, "warn": _HAVE_IT_RESET}.get(worst.level),
        cause_of=(
            "fewer-gpus-than-rented",
            "cuda-init-fails",
            "nccl-p2p-hang-risk",
            "pcie-link-errors",
            "torch-sees-no-gpu",
            "gpu-matmul-fails",
            "nccl-round-trip-fails",
            "deep-check-timed-out",
        )
        if worst.level == "fail"
        else (),
    )


# NVML 3 not supported, 4 no permission, 6 not found: about the question, not about the card.
_NOT_THE_CARD = (3, 4, 6)


def _said_by_nvml(index: int, gpu: Gpu) -> Iterator[Fault]:
    """Yield what NVML reports of the card's own state, the worst first."""
    name, path = card_name(gpu), f"gpus.items[{index}]"
    if gpu.error and gpu.error_code not in _NOT_THE_CARD and "ermission" not in gpu.error:
        title = t("{gpu} does not answer any more: {error}", gpu=name, error=gpu.error)
        yield Fault(level="fail", title=title, fact=f"{path}.error", value=gpu.error)
    if gpu.row_remap_failed:
        title = t("{gpu} could not remap a bad memory row: its memory is failing", gpu=name)
        yield Fault(level="fail", title=title, fact=f"{path}.row_remap_failed", value="True")
    if gpu.ecc_uncorrected_volatile:
        count = gpu.ecc_uncorrected_volatile
        title = t(
            "{gpu} had {count} uncorrectable memory {count:error|errors} since the driver was loaded",
            gpu=name,
            count=count,
        )
        yield Fault(level="fail", title=title, fact=f"{path}.ecc_uncorrected_volatile", value=str(count))
    action = gpu.recovery_action or "none"
    if action != "none" and not action.startswith("unknown"):
        title = t(
            "{gpu} asks for a recovery before it can be trusted again: {action}", gpu=name, action=action
        )
        yield Fault(level="fail", title=title, fact=f"{path}.recovery_action", value=action)
    if gpu.row_remap_pending or gpu.retired_pages_pending:
        field = "row_remap_pending" if gpu.row_remap_pending else "retired_pages_pending"
        title = t("{gpu} waits for a reset to take bad memory out of use", gpu=name)
        yield Fault(level="warn", title=title, fact=f"{path}.{field}", value="True")


def _card_of(xid: Xid, gpus: Reading[Gpus]) -> Gpu | None:
    cards = gpus.value.items if gpus.value else ()
    return next((gpu for gpu in cards if gpu.pci_address and short_pci(gpu.pci_address) == xid.pci), None)


def _is_another_tenants(gpu: Gpu | None, gpus: Reading[Gpus]) -> bool:
    """The log is the host's: an address that none of our cards has, where we know all of theirs."""
    cards = gpus.value.items if gpus.value else ()
    return gpu is None and bool(cards) and all(card.pci_address for card in cards)


def _said_by_the_kernel(place: int, xid: Xid, gpu: Gpu | None, gpus: Reading[Gpus]) -> Fault | None:
    """Return what an Xid says against the hardware; None for a program's own errors and for unknown numbers."""
    if xid.kind not in ("hardware", "link", "recoverable"):
        return None
    level: Level = "fail" if xid.kind == "hardware" else "warn"
    if xid.number == 63:
        level = "note"
    recovered = gpu is not None and not gpu.error and (xid.number == 79 or gpu.recovery_action == "none")
    if level == "fail" and recovered:
        level = "warn"
    fields: dict[str, Param] = {"number": xid.number, "meaning": xid.meaning, "pci": xid.pci}
    title = t("the kernel log has Xid {number} for the card at {pci}: {meaning!t}", **fields)
    if _is_another_tenants(gpu, gpus):
        level = "note"
        title = t(
            "the host's log has Xid {number} ({meaning!t}) for a card at {pci} that is none of yours",
            **fields,
        )
    return Fault(level=level, title=title, fact=f"kernel_log.lines[{place}]", value=xid.line)


@check("gpu-application-error", "gpu-xid-unknown", "pcie-link-errors")
def kernel_log_tells_of_programs(kernel_log: Reading[KernelLog]) -> Iterator[Finding]:
    """What else does the kernel log say of the GPUs that is no fault of theirs?"""
    first: dict[tuple[str, int], tuple[int, Xid]] = {}
    for place, xid in enumerate_xids(kernel_log):
        if xid.kind in ("application", "unknown"):
            first.setdefault((xid.kind, xid.number), (place, xid))
    for place, xid in first.values():
        yield _application(place, xid) if xid.kind == "application" else _unknown(place, xid)
    yield from _link_errors(kernel_log.value.lines if kernel_log.value else ())


def _application(place: int, xid: Xid) -> Finding:
    return Finding(
        id="gpu-application-error",
        level="note",
        subject=f"Xid {xid.number}",
        title=t("a program made an error on the GPU (Xid {number}: {meaning!t}); the card itself is not at fault", number=xid.number, meaning=xid.meaning),
        evidence=(Evidence(fact=f"kernel_log.lines[{place}]", value=xid.line),),
        advice=t("In your own run, look for an index out of range (labels, token ids): run it once with CUDA_LAUNCH_BLOCKING=1 to see the line."),
    )  # fmt: skip


def _unknown(place: int, xid: Xid) -> Finding:
    return Finding(
        id="gpu-xid-unknown",
        level="note",
        subject=f"Xid {xid.number}",
        title=t(
            "the kernel log has Xid {number}, which this version of the doctor does not know",
            number=xid.number,
        ),
        evidence=(Evidence(fact=f"kernel_log.lines[{place}]", value=xid.line),),
        advice=t("NVIDIA's Xid catalog says what it means: docs.nvidia.com/deploy/xid-errors"),
    )


def _link_errors(lines: tuple[str, ...]) -> Iterator[Finding]:
    # pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received | pcieport AER: Corrected error, Data Link Layer
    found = [(place, line) for place, line in enumerate(lines) if "AER" in line and "error" in line.lower()]
    uncorrected = [pair for pair in found if "uncorrect" in pair[1].lower()]
    if not found:
        return
    place, line = (uncorrected or found)[0]
    yield Finding(
        id="pcie-link-errors",
        level="warn" if uncorrected else "note",
        subject="PCIe",
        title=t("the kernel log has {count} uncorrected PCIe {count:error|errors}", count=len(uncorrected))
        if uncorrected
        else t("the kernel log has {count} corrected PCIe {count:error|errors}: harmless one by one, a bad slot or riser when they repeat", count=len(found)),
        evidence=(Evidence(fact=f"kernel_log.lines[{place}]", value=line),),
        advice=t("When the GPU is slow or drops out, take another machine and report these lines."),
    )  # fmt: skip
