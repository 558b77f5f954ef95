"""Runs what may wait (a driver, a disk, a child) in a daemon thread: neither screen nor leaving waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_background(function: Callable[[], T], name: str) -> T:
    """Return ``function()``, run in a thread of its own; raises what it raises.

    A daemon thread instead of the event loop's pool: the pool is joined when the loop ends, and a hung
    network disk would then keep the program from leaving.
    """
    future: Future[T] = Future()

    def body() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=body, name=f"doctor-tui-{name}", daemon=True).start()
    return await asyncio.wrap_future(future)
