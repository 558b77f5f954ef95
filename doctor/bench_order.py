"""In which order a comparison measures: every variant next to a run of *before*, all once or twice, then what promises most."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from doctor.bench_cost import BEFORE, Cost
from doctor.render.layout import human_seconds
from runner.text import Param, Text, t

Tell = Callable[[Text], None]
FIRST_LOOKS = 2
"""Pairs of every variant before the fastest come first; where they would take more than half the time, one."""


class Named(Protocol):
    """What is changed against *before*."""

    @property
    def name(self) -> str: ...


L = TypeVar("L", bound=Named)
M = TypeVar("M")


@dataclass
class Variant(Generic[L, M]):
    """One thing to hold against *before*, and what came of it: pairs of *before* and it."""

    lever: L
    pairs: list[tuple[M, M]] = field(default_factory=list)
    failed: Text | None = None


class OutOfTime(Exception):  # noqa: N818 - not an error
    """The minutes are over."""


class BenchError(Exception):
    """*Before* does not run. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class Interleaved(ABC, Generic[L, M]):
    """Pairs of runs, measured until each variant has as many as wanted, or the time is over."""

    def __init__(self, pairs_wanted: int, minutes: float, tell: Tell) -> None:
        self.pairs_wanted, self.tell = pairs_wanted, tell
        self.before: list[M] = []
        self.variants: list[Variant[L, M]] = []
        self.cost = Cost()
        self.notes: list[Text] = []
        """What is otherwise than asked for."""
        self.given_s = 60 * minutes
        self.end = time.monotonic() + self.given_s
        """Of the whole comparison."""
        self.deadline = self.end
        """After it no run is begun."""

    @abstractmethod
    def run(self, variant: Variant[L, M] | None) -> M | Text:
        """Run a variant once, or *before*; a sentence where that failed."""

    @abstractmethod
    def ratio(self, variant: Variant[L, M], pair: tuple[M, M]) -> float:
        """Return how many times as fast as *before* it was."""

    @abstractmethod
    def told(self, measured: M, where: dict[str, Param]) -> Text:
        """Return what is told of one run; ``where``: number, pairs, name, and how long is left."""

    def keep(self, variant: Variant[L, M]) -> None:
        """Hear of a new pair, the last of ``variant.pairs``."""

    @property
    def is_unfinished(self) -> bool:
        return bool(self.left(self.variants))

    def left(self, variants: Sequence[Variant[L, M]]) -> dict[str, int]:
        """Return how many pairs each still lacks."""
        wanted = self.pairs_wanted
        return {one.lever.name: wanted - len(one.pairs) for one in variants if one.failed is None and len(one.pairs) < wanted}  # fmt: skip

    @property
    def first_looks(self) -> int:
        looks = {one.lever.name: FIRST_LOOKS for one in self.variants}
        return FIRST_LOOKS if self.cost.left_s(looks) <= self.given_s / 2 else 1

    def promise(self, variant: Variant[L, M]) -> float:
        """Return the median of its pace by before's, so far."""
        return statistics.median(self.ratio(variant, pair) for pair in variant.pairs)

    def urgency(self, variant: Variant[L, M]) -> float:
        """Return what decides who gets the next pair after the first looks: the larger first."""
        return self.promise(variant)

    def compare(self, variants: Sequence[Variant[L, M]]) -> None:
        """Measure pairs until there are enough of each. Asked again, it goes on where it was.

        After a first look at all of them the fastest come first, so that something is proven also where the time is short.

        Raises:
            OutOfTime, KeyboardInterrupt
            BenchError: *before* failed.
        """
        while left := [one for one in variants if one.lever.name in self.left(variants)]:
            least = min(len(one.pairs) for one in left)
            if least < self.first_looks:
                turn = [one for one in left if len(one.pairs) == least]
            else:
                turn = sorted(left, key=self.urgency, reverse=True)
            self._around(turn[:2])

    def _around(self, two: Sequence[Variant[L, M]]) -> None:
        """Measure one or two variants next to one run of *before*; every other time in the opposite order.

        Whatever ends it, a variant whose *before* was measured beside it has its pair.
        """
        number = max(len(one.pairs) for one in two)
        waiting: list[tuple[Variant[L, M], M]] = []
        befores = len(self.before)
        order = [two[0], None, *two[1:]]
        try:
            for variant in order if number % 2 == 0 else order[::-1]:
                found = self.measure(variant, number)
                if not isinstance(found, Text):
                    if variant is None:
                        self.before.append(found)
                    else:
                        waiting.append((variant, found))
                elif variant is not None:
                    variant.failed = found
                else:
                    raise BenchError(found)
        finally:
            for variant, measured in waiting if len(self.before) > befores else []:
                variant.pairs.append((self.before[-1], measured))
                self.keep(variant)

    def measure(self, variant: Variant[L, M] | None, number: int) -> M | Text:
        """Run once and tell what came of it. Raises OutOfTime, KeyboardInterrupt."""
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        name, begun = variant.lever.name if variant else BEFORE, time.monotonic()
        found = self.run(variant)
        if isinstance(found, Text):
            self.tell(t("pair {number} of {pairs}: {name}: failed, and not tried again", number=number + 1, pairs=self.pairs_wanted, name=name))  # fmt: skip
            self.tell(found)
            return found
        self.cost.took(name, time.monotonic() - begun)
        where: dict[str, Param] = {"number": number + 1, "pairs": self.pairs_wanted, "name": name, "left": human_seconds(self.left_s)}  # fmt: skip
        self.tell(self.told(found, where))
        return found

    def also_left(self) -> dict[str, int]:
        """Return how many pairs may yet come that are not asked for so far."""
        return {}

    @property
    def left_s(self) -> float:
        """How long the pairs that lack take by what their runs took so far; never more than is left of the time."""
        left = self.left(self.variants) | self.also_left()
        return min(self.cost.left_s(left), self.time_left_s)

    @property
    def time_left_s(self) -> float:
        """How much is left of the time given."""
        return max(0.0, self.end - time.monotonic())
