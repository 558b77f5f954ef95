"""One look that answers several sections: made by the first probe that asks, waited for by the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from doctor.probes import Context

T = TypeVar("T")


def once(context: Context, key: str, make: Callable[[Context], T]) -> T:
    """Return what ``make(context)`` gave, calling it only the first time ``key`` is asked for in this context."""
    with context.lock:
        lock: threading.Lock = context.shared.setdefault(f"{key}.lock", threading.Lock())
    with lock:
        if key not in context.shared:
            context.shared[key] = make(context)
        value: T = context.shared[key]
        return value
