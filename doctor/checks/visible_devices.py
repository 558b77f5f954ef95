"""Checks on CUDA_VISIBLE_DEVICES: names it cards that are there, and MIG instances that one process can use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.gpu import card_names, working
from doctor.model import Driver, Environment, Evidence, Finding, Gpu, Gpus, Reading, Text, t
from doctor.tables.drivers import number


@check("cuda-visible-devices-invalid", "mig-multiple-instances-unsupported")
def visible_devices_name_cards_that_exist(
    gpus: Gpus, environment: Environment, driver: Reading[Driver]
) -> Iterator[Finding]:
    """Does CUDA_VISIBLE_DEVICES name cards that this machine has?"""
    value = environment.get("CUDA_VISIBLE_DEVICES")
    cards = working(gpus)
    if value is None or not cards:
        return
    named = evidence(environment__variables__CUDA_VISIBLE_DEVICES=value or '""')
    entries = [entry.strip() for entry in value.split(",")]
    if sum(entry.startswith("MIG-") for entry in entries) > 1:
        yield _several_mig(entries, driver, named)
        return
    usable, wrong, why = _usable(entries, cards)
    if wrong is None and (joined := next(filter(None, map(_SEVERAL_IN_ONE.match, entries)), None)):
        yield _read_as_one(joined, value, named)
    if wrong is None or (wrong and "items" in gpus.unread):
        return
    yield Finding(
        id="cuda-visible-devices-invalid",
        level="warn" if usable else "fail",
        subject=f"CUDA_VISIBLE_DEVICES={value}",
        title=why if usable == 0 and not wrong else t(
            "CUDA_VISIBLE_DEVICES names {entry}, this machine has GPUs 0 to {last}: {left} of {asked} named cards are left",
            entry=wrong, last=len(cards) - 1, left=usable, asked=len(entries),
        ),
        evidence=named + card_names(gpus),
        advice=t("unset CUDA_VISIBLE_DEVICES, or name cards between 0 and {last}; see where it is set: grep -rn CUDA_VISIBLE_DEVICES ~/.bashrc ~/.profile /etc/profile.d /etc/environment", last=len(cards) - 1),
        cause_of=("torch-sees-no-gpu", "torch-cpu-only-build"),
    )  # fmt: skip


def _usable(entries: list[str], cards: list[Gpu]) -> tuple[int, str | None, Text]:
    """Return how many entries CUDA takes, the first it does not ("" hides all; None: every one is good), and the title.

    CUDA reads from the left and stops at the first entry that names no card; one that is named twice leaves none.
    """
    hides = t("CUDA_VISIBLE_DEVICES is set and names no card: it hides every GPU from CUDA")
    if entries in ([""], ["-1"]):
        return 0, "", hides
    seen: list[str] = []
    for entry in entries:
        card = _names_a_card(entry, cards)
        if card is False:
            return len(seen), entry or "nothing", hides
        if str(card) in seen:
            return (
                0,
                "",
                t("CUDA_VISIBLE_DEVICES names {entry} twice: CUDA then takes none of the cards", entry=entry),
            )
        seen.append(str(card))
    return len(seen), None, hides


# 0，1   |   0;1   |   0 1
_SEVERAL_IN_ONE = re.compile(r"(?P<first>\d+)(?:\s*[^\s\w-]+\s*|\s+)\d")


def _read_as_one(joined: re.Match[str], value: str, named: tuple[Evidence, ...]) -> Finding:
    """CUDA cuts off what follows the first number of an entry: cards that are not parted by a comma are lost."""
    return Finding(
        id="cuda-visible-devices-invalid",
        level="warn",
        subject=f"CUDA_VISIBLE_DEVICES={value}",
        title=t("CUDA_VISIBLE_DEVICES={value}: CUDA reads {entry} as card {card} alone, cards are parted by a plain comma", value=value, entry=joined.string, card=joined["first"]),
        evidence=named,
        advice=t("export CUDA_VISIBLE_DEVICES={cards} with the input method switched to English (a full-width comma is none)", cards=",".join(re.findall(r"\d+", value))),
    )  # fmt: skip


def _names_a_card(entry: str, cards: list[Gpu]) -> str | int | bool:
    """Return which card an entry means (its index, or the entry itself where that cannot be told); False: none."""
    if entry.startswith("MIG-"):
        return entry
    if entry.startswith("GPU-"):
        known = [card.uuid for card in cards]
        return entry if not all(known) or any(uuid.startswith(entry) for uuid in known) else False
    digits = re.match(r"\d+", entry)  # CUDA cuts off what follows: 1gpu is 1
    return int(digits[0]) if digits and int(digits[0]) < len(cards) else False


def _several_mig(entries: list[str], driver: Reading[Driver], named: tuple[Evidence, ...]) -> Finding:
    serves = number(driver.value.cuda_version if driver.value else None)
    return Finding(
        id="mig-multiple-instances-unsupported",
        level="note" if serves[:1] > (12,) else "warn",
        subject="CUDA_VISIBLE_DEVICES",
        title=t("CUDA_VISIBLE_DEVICES names {count} MIG instances: one process can use the first one only", count=sum(entry.startswith("MIG-") for entry in entries)),
        evidence=named,
        advice=t("Start one process for each instance, each with one MIG UUID in CUDA_VISIBLE_DEVICES (nvidia-smi -L lists them)."),
    )  # fmt: skip
