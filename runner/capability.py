"""A card's compute capability as two numbers. Pure, and light to import."""

from __future__ import annotations

import re


def parse_capability(text: str) -> tuple[int, int] | None:
    """Return (8, 9) for ``8.9``; None: it is none, or not known."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)  # 8.9
    return (int(match[1]), int(match[2])) if match else None
