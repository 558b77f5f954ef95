"""Checks on direct copies between cards, where NCCL may hang. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.gpu import card_names, working
from doctor.model import Driver, Environment, Finding, Gpus, Host, Level, Reading, t
from doctor.tables.drivers import at_least, number
from doctor.tables.gpus import is_data_center, is_rtx_40


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
            title=t("{count} {count:card|cards} in a virtual machine ({machine}) see each other over PCIe only ({link}): direct copies between them often hang there", count=len(working(gpus)), machine=machine, link=link),
            evidence=evidence(host__virtual_machine=machine, gpus__topology_worst_link=link) + card_names(gpus),
            advice=t("When the first all-reduce hangs: export NCCL_P2P_DISABLE=1 (NCCL then copies through shared memory). The host's owner can switch off ACS and IOMMU instead."),
        )  # fmt: skip


def _passed_through(machine: str) -> bool:
    """A hypervisor that cards are passed to by hand; the large clouds set theirs up for it."""
    return not re.search(
        r"amazon|ec2|google|gce|microsoft|hyper-v|azure|alibaba|tencent", machine, re.IGNORECASE
    )
