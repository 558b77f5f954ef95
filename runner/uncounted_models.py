"""Which models the arithmetic does not count, and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.model_families import FAMILIES
from runner.text import Text, t


def uncounted(kind: str, config: Mapping[str, Any]) -> Text | None:
    """Return why a configuration of the architecture ``kind`` cannot be counted; None: it can."""
    if kind not in FAMILIES and config.get("auto_map"):
        return t("the architecture {kind} is code that comes with the model (trust_remote_code): neither the arithmetic nor --exact knows it.",
                 kind=kind or "?")  # fmt: skip
    if kind not in FAMILIES:
        return t("the arithmetic does not know the architecture {kind}; it knows {known}. --exact traces the model itself.",
                 kind=kind or "?", known=", ".join(FAMILIES))  # fmt: skip
    if config.get("quantization_config"):
        return t("its weights are quantised ({method}), and the arithmetic counts weights of 16 and 32 bits only: name the model that it was made from.",
                 method=_method(config["quantization_config"]))  # fmt: skip
    return None


def _method(settings: object) -> str:
    method = settings.get("quant_method") if isinstance(settings, Mapping) else None
    return str(method or "?")[:40]
