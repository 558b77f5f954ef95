"""What a configuration of DeepSpeed, or of accelerate for it, says of moments and weights on the host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runner.said_elsewhere import Elsewhere
from runner.text import t

PARTS = ("optimizer", "param")


def say_offload(
    devices: Mapping[str, Any], stage: Any, place: Callable[[str], str], found: Elsewhere
) -> None:
    """Take in where ``optimizer`` and ``param`` lie at a ``stage`` of ZeRO; ``place`` names such a key in the file."""
    for name in PARTS:
        _refuse_place(devices[name], place(name), found)
    away = {name: devices[name] in ("cpu", "nvme") for name in PARTS}
    if away["param"] and stage not in (3, "auto"):
        found.unused.append(
            place("param")
        )  # DeepSpeed passes it over too: there are no parts of weights to move
        away["param"] = False
    if away["param"] and not away["optimizer"]:
        found.problems.append(t("{at}: only together with offload_optimizer: weights that lie on the host are updated there", at=found.at(place("param"), devices["param"])))  # fmt: skip
    elif any(away.values()):
        found.say("train.offload", "parameters" if away["param"] else "optimizer", place("optimizer"))


def _refuse_place(device: Any, place: str, found: Elsewhere) -> None:
    if device == "nvme":
        text = t("{at}: only the host's memory (cpu) is used here, no disk", at=found.at(place, device))
        found.problems.append(text)
    elif device not in ("cpu", "none", "auto"):
        found.problems.append(t("{at}: must be cpu or none", at=found.at(place, device)))
