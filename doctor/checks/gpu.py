"""Checks on which cards there are and which of them a program may use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.advice import is_tenant
from doctor.model import (
    Container,
    Driver,
    Environment,
    Evidence,
    Finding,
    Gpu,
    Gpus,
    Host,
    Level,
    Platform,
    Reading,
    Text,
    Torch,
    t,
)  # fmt: skip
from doctor.tables.drivers import at_least, newest_known_capability, number
from doctor.tables.gpus import is_data_center, is_rtx_40


def working(gpus: Gpus) -> list[Gpu]:
    """Return the cards that answer."""
    return [gpu for gpu in gpus.items if not gpu.error]


@check("no-gpu-visible")
def a_gpu_is_visible(
    gpus: Reading[Gpus],
    driver: Reading[Driver],
    platform: Reading[Platform],
    container: Reading[Container],
    environment: Reading[Environment],
) -> Iterator[Finding]:
    """Is there a GPU that this session can use?"""
    known = driver.value or Driver()
    unreachable = gpus.status == "failed" and known.nvml_error in (9, 12)
    if (gpus.status in ("skipped", "failed") and not unreachable) or (gpus.value and gpus.value.items):
        return
    if platform.value and platform.value.no_gpu_mode:
        yield _started_without_a_card(platform.value)
        return
    rented = (platform.value.gpus_rented if platform.value else None) or 0
    unloaded = known.nvml_error == 9 and known.pci_gpu_count != 0
    there = bool(known.kernel_module_version or known.pci_gpu_count or rented or unloaded)
    mask = environment.value.get("NVIDIA_VISIBLE_DEVICES") if environment.value else None
    yield Finding(
        id="no-gpu-visible",
        level="fail" if there else "note",
        subject="GPU",
        title=_what_is_missing(known, rented) if there else _no_card(known),
        evidence=evidence(
            driver__kernel_module_version=known.kernel_module_version,
            driver__pci_gpu_count=known.pci_gpu_count,
            driver__nvml_error=known.nvml_error,
            platform__gpus_rented=rented or None,
            environment__variables__NVIDIA_VISIBLE_DEVICES=mask,
        ) + tuple(Evidence(fact=f"driver.device_nodes.{node}", value=error) for node, error in sorted(known.device_nodes.items()) if error),
        advice=_how_to_get_one(container, platform, known) if there else None,
        cause_of=("cuda-init-fails", "torch-cpu-only-build"),
    )  # fmt: skip


def _started_without_a_card(platform: Platform) -> Finding:
    return Finding(
        id="no-gpu-visible",
        level="note",
        subject="GPU",
        title=t("this instance was started in no-card mode: half a core, 2 GB of memory, no GPU"),
        evidence=evidence(platform__name=platform.name, platform__no_gpu_mode=platform.no_gpu_mode),
        advice=t("Good for copying data, installing packages and editing. For training, shut it down and start it with its GPU."),
        cause_of=("cuda-init-fails", "torch-cpu-only-build", "cgroup-memory-below-host", "cpu-quota-below-host-count"),
    )  # fmt: skip


def _no_card(driver: Driver) -> Text:
    if driver.other_vendor_gpus:
        return t(
            "this machine has no NVIDIA GPU; {others}: not judged by this doctor",
            others=", ".join(driver.other_vendor_gpus),
        )
    return t("this machine has no NVIDIA GPU: training runs on the CPU")


def _what_is_missing(driver: Driver, rented: int) -> Text:
    """Name the first layer that is not there, from the card up."""
    nodes_missing = bool(driver.device_nodes) and all(
        error == "ENOENT" for error in driver.device_nodes.values()
    )
    if driver.kernel_module_version and nodes_missing:
        return t(
            "no GPU here: the host has the driver ({module}), but this container got no device files and no driver libraries (rented: {rented})",
            module=driver.kernel_module_version, rented=rented,
        ) if rented else t(
            "no GPU here: the host has the driver ({module}), but this container got no device files and no driver libraries",
            module=driver.kernel_module_version,
        )  # fmt: skip
    if driver.nvml_error == 9 or (driver.pci_gpu_count and not driver.kernel_module_version):
        return t("there is a GPU on the PCI bus, but the driver's kernel module is not loaded")
    if driver.nvml_error == 12:
        return t(
            "the driver's libraries (libnvidia-ml.so.1, libcuda.so.1) are missing here, so no program finds a GPU"
        )
    if rented:
        return t("{rented} GPUs were rented, none is visible", rented=rented)
    return t("the driver is loaded, but it lists no GPU")


def _how_to_get_one(container: Reading[Container], platform: Reading[Platform], driver: Driver) -> Text:
    name = platform.value.name if platform.value else ""
    if name == "runpod":
        return t(
            "The pod was started without a GPU (the host had none free). What lies in /workspace stays: start the pod again with a GPU in the panel, or deploy a new one on the same volume."
        )
    if name == "autodl":
        return t(
            "Shut the instance down and start it with its GPU in the AutoDL console (not in no-card mode); when the host has none free, clone the instance to another host."
        )
    if name == "slurm":
        return t(
            "Ask for a GPU when the job is started: srun --gres=gpu:1 --pty bash (sbatch: #SBATCH --gres=gpu:1)."
        )
    if name == "kubernetes" or (container.value and container.value.kind == "kubernetes"):
        return t("Ask for a GPU in the pod: resources.limits: nvidia.com/gpu: 1.")
    if is_tenant(container, platform):
        return t(
            "Start the container again with its GPUs (docker run --gpus all, or a GPU chosen in the provider's panel). Nothing inside the container is broken."
        )
    if not driver.kernel_module_version:
        return t(
            "Load the driver: sudo modprobe nvidia; its answer says what is missing (sudo dmesg | grep -i nvrm)."
        )
    return t("Look for what the driver says of the card: sudo dmesg | grep -i nvrm, and nvidia-smi.")  # fmt: skip


@check("fewer-gpus-than-rented")
def as_many_gpus_as_rented(
    gpus: Gpus, platform: Reading[Platform], driver: Reading[Driver], container: Reading[Container]
) -> Iterator[Finding]:
    """Are all the GPUs there that were rented, or that sit on the bus?"""
    count = len(working(gpus))
    rented = platform.value.gpus_rented if platform.value else None
    on_bus = driver.value.pci_gpu_count if driver.value else None
    inside = container.value.inside if container.value else None
    if "items" in gpus.unread:
        return
    if rented and count < rented:
        yield Finding(
            id="fewer-gpus-than-rented",
            level="fail",
            subject="GPU",
            title=t("{count} of the {rented} rented GPUs answer", count=count, rented=rented),
            evidence=evidence(platform__gpus_rented=rented) + card_names(gpus),
            advice=t(
                "Restart the instance; when it comes back the same, release it, take another one and report it: you pay for {rented}.",
                rented=rented,
            ),
        )
    elif on_bus and inside is False and 0 < count < on_bus:
        yield Finding(
            id="fewer-gpus-than-rented", level="warn", subject="GPU",
            title=t("{count} of the {rented} GPUs on the PCI bus answer", count=count, rented=on_bus),
            evidence=evidence(driver__pci_gpu_count=on_bus) + card_names(gpus),
            advice=t("See what the driver says of the others: sudo dmesg | grep -i nvrm"),
        )  # fmt: skip


def card_names(gpus: Gpus) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(fact=f"gpus.items[{index}].name", value=gpu.name or gpu.error or gpu.pci_address)
        for index, gpu in enumerate(gpus.items)
    )


@check("nccl-p2p-hang-risk")
def cards_can_talk_to_each_other(
    gpus: Gpus, driver: Driver, environment: Reading[Environment], host: Reading[Host]
) -> Iterator[Finding]:
    """Will NCCL try direct copies between cards that cannot do them?"""
    variables = environment.value
    if variables and variables.get("NCCL_P2P_DISABLE") not in (None, "0"):
        return
    level: Level = "warn" if variables and variables.complete else "note"
    version = driver.version or ""
    # 550.40.07 is the first driver that reports peer access between GeForce 40 cards as absent.
    cards = [gpu.name for gpu in working(gpus) if is_rtx_40(gpu.name)]
    if len(cards) > 1 and number(version) and not at_least(version, "550.40.07"):
        yield Finding(
            id="nccl-p2p-hang-risk",
            level=level,
            subject="NCCL_P2P_DISABLE",
            title=t(
                "{count} {gpu} cards under driver {driver}, which says they can copy to each other directly; they cannot, and NCCL may hang or give wrong results",
                count=len(cards),
                gpu=cards[0],
                driver=version,
            ),
            evidence=evidence(driver__version=version) + card_names(gpus),
            advice=t(
                "export NCCL_P2P_DISABLE=1 before a run on several cards (accelerate also asks for NCCL_IB_DISABLE=1). A driver from 550.40.07 on needs neither."
            ),
        )
        return
    machine = host.value.virtual_machine if host.value else None
    link = gpus.topology_worst_link or ""
    if (
        len(working(gpus)) > 1
        and machine
        and _passed_through(machine)
        and link in ("PIX", "PXB", "PHB", "NODE", "SYS")
    ):
        yield Finding(
            id="nccl-p2p-hang-risk",
            level="note" if all(is_data_center(gpu.name) for gpu in working(gpus)) else level,
            subject="NCCL_P2P_DISABLE",
            title=t("{count} cards in a virtual machine ({machine}) see each other over PCIe only ({link}): direct copies between them often hang there", count=len(working(gpus)), machine=machine, link=link),
            evidence=evidence(host__virtual_machine=machine, gpus__topology_worst_link=link) + card_names(gpus),
            advice=t("When the first all-reduce hangs: export NCCL_P2P_DISABLE=1 (NCCL then copies through shared memory). The host's owner can switch off ACS and IOMMU instead."),
        )  # fmt: skip


def _passed_through(machine: str) -> bool:
    """A hypervisor that cards are passed to by hand; the large clouds set theirs up for it."""
    return not re.search(
        r"amazon|ec2|google|gce|microsoft|hyper-v|azure|alibaba|tencent", machine, re.IGNORECASE
    )


@check("gpu-unknown-to-this-version")
def cards_are_in_the_table(gpus: Gpus, torch: Reading[Torch]) -> Iterator[Finding]:
    """Is a card newer than everything this version of the doctor knows?"""
    for index, gpu in enumerate(gpus.items):
        if number(gpu.compute_capability) > newest_known_capability():
            yield Finding(
                id="gpu-unknown-to-this-version", level="note", subject=gpu.name,
                title=t("{gpu} (compute capability {capability}) is newer than this version of the doctor: it is judged by the rules of its family", gpu=gpu.name, capability=gpu.compute_capability),
                evidence=(Evidence(fact=f"gpus.items[{index}].compute_capability", value=gpu.compute_capability),),
            )  # fmt: skip
            return
