"""How fast a run's processes read and write, what the network moves, and how full /dev/shm is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.text import Text, t

PROC = Path("/proc")
SHM = Path("/dev/shm")


@dataclass
class HostRates:
    """Turns two looks into bytes a second; the first look gives no rates."""

    proc: Path = PROC
    shm: Path = SHM
    _disk: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Bytes read and written by each process at the last look."""
    _network: tuple[int, int] | None = None
    _looked_at: float | None = None

    def sample(self, pids: Iterable[int], now: float) -> tuple[dict[str, Any], dict[str, Text]]:
        """Return the values at monotonic time ``now``, and why others could not be read."""
        data: dict[str, Any] = {}
        unread: dict[str, Text] = {}
        elapsed = None if self._looked_at is None else max(1e-3, now - self._looked_at)
        self._looked_at = now
        self._add_disk(list(pids), elapsed, data, unread)
        self._add_network(elapsed, data, unread)
        try:
            disk = os.statvfs(self.shm)
            data["shm_size_bytes"] = disk.f_blocks * disk.f_frsize
            data["shm_used_bytes"] = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        except OSError as error:
            unread["shm_used_bytes"] = t(
                "{path} could not be read: {error}", path=str(self.shm), error=error.strerror or str(error)
            )
        return data, unread

    def _add_disk(
        self, pids: list[int], elapsed: float | None, data: dict[str, Any], unread: dict[str, Text]
    ) -> None:
        """Add what the processes made the storage read and write: the page cache's hits are none of it."""
        counts: dict[int, tuple[int, int]] = {}
        for pid in pids:
            try:
                counts[pid] = storage_bytes((self.proc / str(pid) / "io").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            except (OSError, KeyError, ValueError) as error:
                why = t(
                    "/proc/PID/io could not be read: {error}",
                    error=getattr(error, "strerror", None) or str(error),
                )
                unread["disk_read_bytes_per_s"] = unread["disk_write_bytes_per_s"] = why
                return
        if elapsed is not None and counts:
            for index, name in enumerate(("disk_read_bytes_per_s", "disk_write_bytes_per_s")):
                moved = sum(
                    max(0, both[index] - self._disk.get(pid, both)[index]) for pid, both in counts.items()
                )
                data[name] = round(moved / elapsed)
        self._disk = counts

    def _add_network(self, elapsed: float | None, data: dict[str, Any], unread: dict[str, Text]) -> None:
        """Add what all interfaces but the loopback move: this network namespace's, so the container's own."""
        try:
            now = network_bytes((self.proc / "net" / "dev").read_text())
        except (OSError, ValueError, IndexError) as error:
            why = t(
                "/proc/net/dev could not be read: {error}",
                error=getattr(error, "strerror", None) or str(error),
            )
            unread["network_rx_bytes_per_s"] = unread["network_tx_bytes_per_s"] = why
            return
        if elapsed is not None and self._network is not None:
            data["network_rx_bytes_per_s"] = round(max(0, now[0] - self._network[0]) / elapsed)
            data["network_tx_bytes_per_s"] = round(max(0, now[1] - self._network[1]) / elapsed)
        self._network = now


def storage_bytes(text: str) -> tuple[int, int]:
    """Return read_bytes and write_bytes of /proc/PID/io.

    Raises:
        KeyError, ValueError: it is no such text.
    """
    # read_bytes: 323932160
    fields = {line.partition(":")[0]: line.partition(":")[2] for line in text.splitlines()}
    return int(fields["read_bytes"]), int(fields["write_bytes"])


def network_bytes(text: str) -> tuple[int, int]:
    """Return the bytes received and sent by all interfaces of /proc/net/dev but the loopback.

    Raises:
        ValueError, IndexError: it is no such text.
    """
    #   eth0: 1296817163 1021335 0 0 0 0 0 0 18726451 209384 0 0 0 0 0 0
    received = sent = 0
    for line in text.splitlines()[2:]:
        name, _, counts = line.partition(":")
        if name.strip() != "lo":
            numbers = counts.split()
            received, sent = received + int(numbers[0]), sent + int(numbers[8])
    return received, sent
