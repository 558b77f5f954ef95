"""Where machines meet: what can be seen of the place before torchrun waits there, and what to say when they did not come together."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

from runner.rank_record import read_ranks
from runner.start import Start
from runner.text import Text, t

IMPORTS_S = 60.0
"""So long torchrun may take to be imported, from a slow disk."""


def nowhere_to_meet(start: Start) -> Text | None:
    """Return why the machines cannot meet where they are told to, as far as this one can see; None: nothing speaks against it."""
    host, _, port = start.master.rpartition(":")
    if start.nnodes == 1:
        return None
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        return t("--rdzv {place}: {host} is not known on this machine ({why}): give the first machine's address instead of its name",
                 place=start.master, host=host, why=str(error))  # fmt: skip
    if start.node_rank:
        return None
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", address[1]))
        except OSError as error:
            return t("--rdzv {place}: port {port} of this machine cannot be used ({why}): name another, the same on all machines",
                     place=start.master, port=port, why=error.strerror or str(error))  # fmt: skip
    return None


class Meeting:
    """Whether torchrun still waits for the other machines, and for how long it may: it has a time-out, but none where somebody
    else's server answers at the meeting place."""

    def __init__(
        self, run_path: Path, start: Start, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run, self._clock = run_path, clock
        self._end = clock() + 2 * timeout_s + IMPORTS_S if start.nnodes > 1 else None

    def is_in_vain(self) -> bool:
        """Return whether it has taken too long and no rank has begun."""
        if self._end is None or self._clock() <= self._end:
            return False
        if read_ranks(self._run):
            self._end = None
        return self._end is not None


def not_met(start: Start, returncode: int, has_timed_out: bool) -> Text:
    """Return why no rank ever began."""
    if start.nnodes > 1 and has_timed_out:
        return t("the {count} machines did not come together at {place}: start the same command on each of them, number 0 where {host} is, and let "
                 "its ports through (a firewall, a container's network). torchrun's words are in trainer.log",
                 count=start.nnodes, place=start.master, host=start.master.rpartition(":")[0])  # fmt: skip
    return t("the processes did not start: torchrun ended with status {code}, and its words are in trainer.log",
             code=returncode)  # fmt: skip
