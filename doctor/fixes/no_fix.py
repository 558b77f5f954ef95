"""Why a finding has no cure from here, and the text for whoever can mend it. Pure."""

from __future__ import annotations

from doctor.model import Finding, Gpus, Snapshot, Text, t

OF_THE_HOST = frozenset([
    "nvml-driver-library-mismatch", "gpu-dropped-by-driver", "nvml-lost-in-container", "gpu-device-permission",
    "gpus-not-readable", "fabric-manager-not-running", "cuda-init-fails", "no-gpu-visible", "fewer-gpus-than-rented",
    "gpu-hardware-fault", "pcie-link-errors", "gpu-throttled", "gpu-power-capped", "gpu-pcie-narrow",
    "mig-multiple-instances-unsupported", "memlock-too-small", "clock-wrong",
])  # fmt: skip
"""What only the owner of the host can mend: the driver, the cards, how the container is started."""


def why_no_fix(finding: Finding, snapshot: Snapshot) -> Text:
    """Return why ``doctor fix`` does nothing about ``finding``."""
    if finding.id in ("data-on-network-mount", "data-on-slow-disk"):
        workload = snapshot.facts.workload.value
        path = (workload.data_path if workload else None) or finding.subject
        return t("copying data is started by hand: `doctor stage {path}` puts it on the fastest disk that has room", path=path)  # fmt: skip
    if finding.id in OF_THE_HOST and _is_owner(snapshot):
        return t(
            "this is a matter of the driver or the hardware of this machine: it is mended with root and a decision of yours, not by this tool"
        )
    if finding.id in OF_THE_HOST:
        return t(
            "this is the host's: a driver is not installed from inside a container, a card is not reset by its tenant (it would take it from everyone else on the machine), and nothing here is changed. Tell the provider, or take another instance."
        )
    if finding.level in ("fail", "warn"):
        return t("there is no step that mends this without a decision of yours; what to do stands in the advice and in `doctor help {id}`", id=finding.id)  # fmt: skip
    return t("this is a note: nothing is broken by it")


def _is_owner(snapshot: Snapshot) -> bool:
    """Whether this is surely no container and no rented machine: whoever asks may be its owner."""
    container, platform = snapshot.facts.container.value, snapshot.facts.platform.value
    return bool(container and container.inside is False and not (platform and platform.name))


def for_the_provider(finding: Finding, snapshot: Snapshot) -> Text | None:
    """Return the message to paste into the provider's support form; None where it is none of their business."""
    if finding.id not in OF_THE_HOST or _is_owner(snapshot):
        return None
    driver = snapshot.facts.driver.value
    return t(
        "My instance has a fault of the host: {what} ({id}). Cards: {cards}. Driver: {driver}. Seen at {time}. Evidence: {evidence}. Please mend or replace the host; I have changed nothing in the container.",
        what=str(finding.title),
        id=finding.id,
        cards=_cards(snapshot.facts.gpus.value or Gpus()) or "-",
        driver=(driver.version or driver.kernel_module_version or "-") if driver else "-",
        time=snapshot.taken_at or "-",
        evidence="; ".join(f"{row.fact} = {row.value}" for row in finding.evidence) or "-",
    )


def _cards(gpus: Gpus) -> str:
    return "; ".join(
        " ".join(filter(None, (f"GPU {gpu.index}", gpu.name, gpu.uuid, gpu.pci_address, gpu.error))) for gpu in gpus.items
    )  # fmt: skip
