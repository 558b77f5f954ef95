"""What stands in one row each of a card, where it was sampled: which fields of ``sample-gpu``, and their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from doctor.language import say
from doctor.render.layout import human_bytes
from runner.events import number
from runner.text import t


class Value(NamedTuple):
    """Values of a card that stand in one row."""

    label: str
    keys: tuple[str, ...]
    words: Callable[[list[float | None]], str]


def value_of(raw: Any) -> float | None:
    """Return a number; yes and no count as 1 and 0."""
    return float(raw) if isinstance(raw, bool) else number(raw)


def activity() -> Sequence[Value]:
    return (
        Value("PCIe", ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"), _rates),
        Value("NVLink", ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"), _rates),
        Value(say("SM, tensor"), ("sm_active_pct", "tensor_active_pct"), _shares),
    )


def activity_words(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a card does, in few columns: SM and tensor activity, then the rates to the card and from it."""
    for label, key in (("SM", "sm_active_pct"), (say("tensor"), "tensor_active_pct")):
        if share := value_of(card.get(key)):
            yield f"{label} {share:.0f}%"
    for label, name in (("NVLink", "nvlink"), ("PCIe", "pcie")):
        rates = [value_of(card.get(f"{name}_{way}_bytes_per_s")) for way in ("rx", "tx")]
        if any(rates):
            to, back = ("?" if rate is None else f"{rate / (1 << 30):.1f}" for rate in rates)
            yield f"{label} →{to} ←{back} GB/s"


def card_values() -> Sequence[Value]:
    """Return what is shown of a card where it was sampled; each key is a field of ``sample-gpu``."""
    return (
        Value(say("memory busy"), ("memory_activity_pct",), lambda read: f"{read[0]:.0f} %"),
        *activity(),
        Value("ECC", ("ecc_uncorrected_volatile",), _ecc),
        Value("MIG", ("mig_enabled",), lambda read: say("on") if read[0] else say("off")),
    )


def labels() -> dict[str, str]:
    return {key: value.label for value in card_values() for key in value.keys} | {"nvlink_errors": "NVLink"}


def _rates(read: list[float | None]) -> str:
    shown = ["?" if one is None else human_bytes(one) + "/s" for one in read]
    return say(t("to the card {rx} · from it {tx}", rx=shown[0], tx=shown[1]))


def _shares(read: list[float | None]) -> str:
    return " · ".join("?" if one is None else f"{one:.0f} %" for one in read)


def _ecc(read: list[float | None]) -> str:
    return say(t("uncorrected errors: {count}", count=int(read[0] or 0)))
