"""The device files through which programs reach an NVIDIA driver."""

from __future__ import annotations

import re

from doctor.probes import Context
from doctor.probes.bounded import names_in

# /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm; not nvidia-modeset, nvidia-caps, nvidia-uvm-tools, nvidia-fs0
_USED_BY_CUDA = re.compile(r"nvidia(\d+|ctl|-uvm)")
EXPECTED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")
"""What every machine with a working driver has; asked for even when missing."""


def existing_nodes(context: Context) -> list[str]:
    """Return the device files that are there and that CUDA programs use."""
    return [f"/dev/{name}" for name in names_in(context.path("/dev")) if _USED_BY_CUDA.fullmatch(name)]


def node_names(context: Context) -> list[str]:
    """Return the files to try to open: those that are there and those that ought to be.

    Where cards have other numbers than 0 (a container that was given the fourth), /dev/nvidia0 is not expected.
    """
    there = existing_nodes(context)
    has_card = any(is_card(name) for name in there)
    return there + [name for name in EXPECTED if name not in there and not (has_card and is_card(name))]


def is_card(name: str) -> bool:
    """Return whether ``name`` is a card's file: /dev/nvidia3."""
    return name.removeprefix("/dev/nvidia").isdigit()
