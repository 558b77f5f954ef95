"""Checks on which cards there are and which of them a program may use. Pure."""

from __future__ import annotations

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
    Platform,
    Reading,
    Text,
    t,
)  # fmt: skip


def working(gpus: Gpus) -> list[Gpu]:
    """Return the cards that answer."""
    return [gpu for gpu in gpus.items if not gpu.error]


def card_name(gpu: Gpu) -> str:
    """``GPU 1 (NVIDIA A100-SXM4-40GB)``: how one card is named, by the number that nvidia-smi gives it."""
    return f"GPU {gpu.index} ({gpu.name})" if gpu.name else f"GPU {gpu.index}"


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
        title=t("this instance was started in no-card mode (half a core, 2 GB of memory, no GPU): good for downloads, installing and editing; start it with its GPU to train"),
        evidence=evidence(platform__name=platform.name, platform__no_gpu_mode=platform.no_gpu_mode),
        advice=t("What 2 GB are enough for: downloading models and data, pip install --no-cache-dir, git, editing, doctor stage, doctor plan, doctor lint. What they are not: loading a model, tokenizing a data set, compiling flash-attn. To train, shut it down and start it with its GPU."),
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
        return t("{rented} {rented:GPU was|GPUs were} rented, none is visible", rented=rented)
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
