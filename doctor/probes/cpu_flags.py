"""Which of the CPU's features decide in what precision it trains."""

from __future__ import annotations

import re

DECIDING = ("avx512_bf16", "amx_bf16")


def parse_cpu_flags(cpuinfo: str) -> tuple[str, ...] | None:
    """Return those of :data:`DECIDING` that /proc/cpuinfo lists; None when it lists no flags at all."""
    # flags		: fpu vme de pse avx512_bf16 amx_bf16
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return None if match is None else tuple(flag for flag in DECIDING if flag in match[1].split())
