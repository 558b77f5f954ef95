"""Checks on whether driver and doctor know the cards: dropped, left to the open module, newer than the tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.advice import is_windows_driver
from doctor.model import Driver, Evidence, Finding, Gpus, Host, KernelLog, Level, Reading, Torch, t
from doctor.tables import load
from doctor.tables.drivers import (
    branch,
    last_branch_for,
    newest_known_branch,
    newest_known_capability,
    number,
)


@check("gpu-dropped-by-driver", "gpu-needs-open-kernel-module")
def driver_still_drives_the_cards(
    driver: Driver, gpus: Reading[Gpus], kernel_log: Reading[KernelLog]
) -> Iterator[Finding]:
    """Does this driver drive all the cards: not dropped by its branch, not left to the open kernel module?"""
    mine = branch(driver.version or driver.kernel_module_version)
    lines = kernel_log.value.lines if kernel_log.value else ()
    legacy = [place for place, line in enumerate(lines) if "Legacy drivers" in line]
    for index, gpu in enumerate(gpus.value.items if gpus.value else ()):
        last = last_branch_for(gpu.compute_capability)
        if mine and last and mine > last and driver.cuda_init_error != 0 and not legacy:
            fact = f"gpus.items[{index}].compute_capability"
            proof = Evidence(fact=fact, value=gpu.compute_capability)
            yield _dropped(gpu.name or gpu.compute_capability, mine, last, "warn", proof)
    for place in legacy[:1]:
        proof = Evidence(fact=f"kernel_log.lines[{place}]", value=lines[place])
        yield _dropped(_legacy_card(lines, place), mine or 0, _legacy_branch(lines[place]), "fail", proof)
    yield from _wants_open_module(lines)


def _legacy_card(lines: tuple[str, ...], place: int) -> str:
    """The name stands in the sentence's first line, the branch in its second."""
    # NVRM: The NVIDIA Tesla P100-PCIE-16GB GPU installed in this system is
    # NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please
    found = re.search(
        r"The NVIDIA (?:NVIDIA )?(.+?) GPU installed", " ".join(lines[max(0, place - 1) : place + 1])
    )
    return found[1] if found else "GPU"


def _wants_open_module(lines: tuple[str, ...]) -> Iterator[Finding]:
    for place, line in enumerate(lines):
        # NVRM: installed in this system requires use of the NVIDIA open kernel modules.
        if "requires use of the NVIDIA open kernel modules" in line:
            yield Finding(
                id="gpu-needs-open-kernel-module",
                level="fail",
                subject="nvidia.ko",
                title=t("this card is driven by NVIDIA's open kernel module only, and the closed one is loaded"),
                evidence=(Evidence(fact=f"kernel_log.lines[{place}]", value=line),),
                advice=t("Install the same driver with its open module (Ubuntu: the package whose name ends in -open, see ubuntu-drivers devices) and reboot; on a rented machine it is the host's business: take another one."),
                cause_of=("no-gpu-visible", "cuda-init-fails", "torch-sees-no-gpu"),
            )  # fmt: skip
            return


def _legacy_branch(line: str) -> int:
    # supported through the NVIDIA 580.xx Legacy drivers
    found = re.search(r"NVIDIA (\d+)\.xx Legacy", line)
    return int(found[1]) if found else 580


def _dropped(name: str, mine: int, last: int, level: Level, proof: Evidence) -> Finding:
    return Finding(
        id="gpu-dropped-by-driver",
        level=level,
        subject=name,
        title=t("driver branch {branch} no longer drives {gpu}: {last} was the last that does", branch=mine, gpu=name, last=last),
        evidence=(proof,),
        advice=t("Use a machine with a driver of branch {last} for this card, with a torch build for CUDA 12.6.", last=last),
        cause_of=("no-gpu-visible", "cuda-init-fails", "torch-sees-no-gpu"),
    )  # fmt: skip


@check("driver-unknown-to-this-version")
def driver_is_in_the_table(driver: Driver, host: Reading[Host]) -> Iterator[Finding]:
    """Is the driver newer than everything this version of the doctor knows?"""
    mine = branch(driver.version)
    if mine and mine > newest_known_branch() and not is_windows_driver(host):
        yield Finding(
            id="driver-unknown-to-this-version",
            level="note",
            subject=f"driver {driver.version}",
            title=t("driver {driver} is newer than this version of the doctor ({known} is the newest it knows, tables of {date}): it is judged by what it says of itself", driver=driver.version or "", known=newest_known_branch(), date=load("drivers")["compiled"]),
            evidence=evidence(driver__version=driver.version, driver__cuda_version=driver.cuda_version),
        )  # fmt: skip


@check("gpu-unknown-to-this-version")
def cards_are_in_the_table(gpus: Gpus, torch: Reading[Torch]) -> Iterator[Finding]:
    """Is a card newer than everything this version of the doctor knows?"""
    for index, gpu in enumerate(gpus.items):
        if number(gpu.compute_capability) > newest_known_capability():
            yield Finding(
                id="gpu-unknown-to-this-version", level="note", subject=gpu.name,
                title=t("{gpu} (compute capability {capability}) is newer than this version of the doctor (tables of {date}): it is judged by the rules of its family", gpu=gpu.name, capability=gpu.compute_capability, date=load("drivers")["compiled"]),
                evidence=(Evidence(fact=f"gpus.items[{index}].compute_capability", value=gpu.compute_capability),),
            )  # fmt: skip
            return
