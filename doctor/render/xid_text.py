"""What the driver reported of the cards while a run went on (Xids), in words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from doctor.language import say
from runner.events import number, whole
from runner.strings import printable
from runner.text import t

UNKNOWN = t("its number is not in our table")


def xid_lines(xids: Sequence[Mapping[str, Any]], why: str) -> Iterator[str]:
    """Yield each Xid, or ``why`` none could be read; nothing where all is quiet."""
    for xid in xids:
        yield xid_words(xid)
    if not xids and why:
        yield say(t("Xid could not be read: {why}", why=why))


def xid_words(xid: Mapping[str, Any]) -> str:
    """Return when an Xid came, its number, on which card, and what it means."""
    count, at, card = (
        whole(xid.get("number"), 0) or 0,
        number(xid.get("at")),
        whole(xid.get("gpu_index"), None),
    )
    clock = "?" if at is None else time.strftime("%H:%M:%S", time.localtime(at))
    pci = str(xid.get("pci") or "?")
    if xid.get("is_ours") is False:
        words = t(
            "Xid {number} at {time} on {pci}, a card that is none of yours", number=count, time=clock, pci=pci
        )
    else:
        words = t("Xid {number} on {card} at {time}: {meaning!t}", number=count, card=pci if card is None else f"GPU{card}",
                  time=clock, meaning=str(xid.get("meaning") or UNKNOWN.msgid))  # fmt: skip
    return printable(say(words))
