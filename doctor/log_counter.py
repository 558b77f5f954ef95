"""A count that a log tells and that may start anew with each epoch. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counter:
    """A count that may start anew, made one that only grows."""

    base: int = 0
    last: int = 0
    total: int | None = None

    def at(self, done: int, total: int | None) -> int:
        """Return the position over all epochs for ``done`` within this one.

        A small step back without a known total is another rank's late line, not a new epoch.
        """
        if self.last / 2 < done < self.last and total is None:
            return self.base + done
        if done < self.last:
            self.begin_anew()
        self.last, self.total = done, total or self.total
        return self.base + done

    def begin_anew(self) -> None:
        """Count on from the end of the epoch before."""
        self.base += self.total or self.last
        self.last = 0

    @property
    def position(self) -> int:
        return self.base + self.last
