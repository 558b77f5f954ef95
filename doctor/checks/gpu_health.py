"""Checks on cards that work below what was paid for: throttled, capped in power, on a narrow PCIe link. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check
from doctor.checks.gpu import card_name
from doctor.model import Evidence, Finding, Gpu, Gpus, Level, t

BUSY_PCT = 20.0
"""From this utilisation on a card counts as busy; an idle one lowers clocks and link by itself."""

_HEAT = ("hw-thermal", "sw-thermal")
_BRAKES = ("hw-slowdown", "power-brake")


def is_busy(gpu: Gpu) -> bool:
    return (gpu.utilization_pct or 0.0) >= BUSY_PCT


@check("gpu-throttled")
def cards_keep_their_clocks(gpus: Gpus) -> Iterator[Finding]:
    """Does a card hold its clocks down because of heat or a power brake?"""
    for index, gpu in enumerate(gpus.items):
        reasons = gpu.throttle_reasons or ()
        heat = [reason for reason in reasons if reason in _HEAT]
        brakes = [reason for reason in reasons if reason in _BRAKES]
        if not heat and not (brakes and is_busy(gpu)):
            continue
        proof = [Evidence(fact=f"gpus.items[{index}].throttle_reasons", value=", ".join(reasons))]
        if gpu.temperature_c is not None:
            proof.append(Evidence(fact=f"gpus.items[{index}].temperature_c", value=f"{gpu.temperature_c:g}"))
        yield Finding(
            id="gpu-throttled",
            level="warn",
            subject=card_name(gpu),
            title=t(
                "GPU {index} is slowed down by heat ({degrees} °C, {reasons})",
                index=gpu.index, degrees="?" if gpu.temperature_c is None else f"{gpu.temperature_c:g}", reasons=", ".join(heat),
            ) if heat else t("GPU {index} is slowed down by the machine ({reasons}): its power supply or board asks for it", index=gpu.index, reasons=", ".join(brakes)),
            evidence=tuple(proof),
            advice=t("Nothing in your script causes it. Compare the step time with another machine of this kind; a lower power limit (sudo nvidia-smi -pl WATTS) runs cooler on a machine of your own."),
        )  # fmt: skip


@check("gpu-power-capped")
def cards_have_their_power(gpus: Gpus) -> Iterator[Finding]:
    """Has someone lowered a card's power limit?"""
    for index, gpu in enumerate(gpus.items):
        limit, usual = gpu.power_limit_w, gpu.power_default_limit_w
        if not limit or not usual or limit >= 0.95 * usual:
            continue
        level: Level = "warn" if limit < 0.7 * usual else "note"
        yield Finding(
            id="gpu-power-capped",
            level=level,
            subject=card_name(gpu),
            title=t("GPU {index} may draw {limit} W of its usual {usual} W: under full load it is slower than others of its kind", index=gpu.index, limit=round(limit), usual=round(usual)),
            evidence=(
                Evidence(fact=f"gpus.items[{index}].power_limit_w", value=f"{limit:g}"),
                Evidence(fact=f"gpus.items[{index}].power_default_limit_w", value=f"{usual:g}"),
            ),
            advice=t("On a machine of your own: sudo nvidia-smi -i {index} -pl {usual}. A rented one is set by its host: compare the speed with the price.", index=gpu.index, usual=round(usual)),
        )  # fmt: skip


@check("gpu-pcie-narrow")
def cards_have_their_link(gpus: Gpus) -> Iterator[Finding]:
    """Does a busy card sit on a narrower or slower PCIe link than it could?"""
    for index, gpu in enumerate(gpus.items):
        width, most = gpu.pcie_width, gpu.pcie_width_max
        generation, newest = gpu.pcie_generation, gpu.pcie_generation_max
        if not is_busy(gpu) or not width or not most or not generation or not newest:
            continue
        share = width / most * 2.0 ** max(-8, min(0, generation - newest))
        if not 0 < share <= 0.5:
            continue
        yield Finding(
            id="gpu-pcie-narrow",
            level="warn" if share <= 0.125 else "note",
            subject=card_name(gpu),
            title=t(
                "GPU {index} is busy on PCIe {generation} x{width}, it could have {newest} x{most}: copies to the card take {times} {times:time|times} as long",
                index=gpu.index, generation=generation, width=width, newest=newest, most=most, times=round(1 / share),
            ),
            evidence=(
                Evidence(fact=f"gpus.items[{index}].pcie_width", value=str(width)),
                Evidence(fact=f"gpus.items[{index}].pcie_generation", value=str(generation)),
            ),
            advice=t("It matters when batches are large or several cards exchange gradients. Pinned memory and fewer, larger copies help; the slot itself only the host can change."),
        )  # fmt: skip
