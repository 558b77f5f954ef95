"""The lines of a foreign training's log folded into ``step`` and ``evaluation`` events. Pure but for the clock handed in.

A bar or a place that starts anew (the next epoch) goes on counting; a bar becomes the training's when a loss stands in it
or comes right after it, so that downloads, tokenising and evaluation bars never count as steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from doctor.log_counter import Counter
from doctor.log_lines import Said, read_line

BAR_EVERY_S = 1.0
"""Between two events out of a progress bar that redraws itself ten times a second."""
LINE_LIMIT_BYTES = 1 << 16
AT_ONCE_S = 0.05
"""Lines that were read together say nothing of the time between them."""

_SPLIT = re.compile(rb"[\r\n]")
# Epoch 1/3 | Training | train epoch 2
_TRAINS = re.compile(r"\b(?:train|training|epoch)\b", re.IGNORECASE)
# Epoch 1/3
_EPOCHS = re.compile(r"\bepoch\W*\d+\s*(?:/|of)\s*(\d+)", re.IGNORECASE)
_EVALUATES = re.compile(
    r"\b(?:eval|evaluating|evaluation|val|valid|validation|validating|test|testing|predict\w*)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Progress:
    """One event to be written."""

    kind: str
    step: int
    data: dict[str, Any]


@dataclass
class LogProgress:
    """Feeds on bytes of the log as they come."""

    clock: Callable[[], float]
    _rest: bytes = b""
    _bars: dict[int, Counter] = field(default_factory=dict)
    """By total: Trainer's training bar and its evaluation bar differ in it."""
    _latest_bar: int | None = None
    _training_bar: int | None = None
    _waiting: Said | None = None
    """Trainer's dictionary names no step: the bar drawn anew right after it does."""
    _lines: Counter = field(default_factory=Counter)
    _counted: int = 0
    """Lines with a loss that name no step."""
    _step: int = 0
    _loss_step: int = -1
    _names_steps: bool = False
    """Losses have been told step by step: one of an epoch is then a mean of those, and no further one."""
    _step_at: float | None = None
    _bar_at: float = -1e9
    _total: int | None = None
    _epoch: float | None = None
    _first_epoch: float | None = None
    """Of the lines that name one."""

    def feed(self, content: bytes) -> Iterator[Progress]:
        """Yield what the lines that ended in ``content`` say; an unended one waits."""
        *lines, rest = _SPLIT.split(self._rest + content)
        self._rest = rest if len(rest) < LINE_LIMIT_BYTES else b""
        for line in lines:
            if line.strip():
                yield from self._line(line.decode("utf-8", "replace"))

    def passed_over(self) -> None:
        """Something was left out: what comes next begins a line, and the line before it has no end."""
        self._rest = b""

    def end(self) -> Iterator[Progress]:
        """Yield what an unended last line says, and what still waited for its step."""
        yield from self.feed(b"\n")
        yield from self._settle_waiting()

    def _line(self, line: str) -> Iterator[Progress]:
        said = read_line(line)
        if said is None:
            return
        if said.is_bar:
            yield from self._bar(said)
            return
        yield from self._settle_waiting()
        if said.done is None and said.values and self._latest_bar is not None and not self._names_steps:
            self._waiting = said
            if not said.evaluation:
                return
        yield from self._told(said)

    def _told(self, said: Said) -> Iterator[Progress]:
        step = self._place_of(said)
        is_late = said.done is not None and step <= self._loss_step
        is_mean = said.done is None and self._names_steps
        self._names_steps |= said.done is not None and "loss" in said.values
        if is_mean:
            self._learn_epochs(said)
        if said.values and said is not self._waiting and not is_late and not is_mean:
            yield self._step_event(step, said)
        if said.evaluation and (
            step or said.done is not None
        ):  # before the first step it is a setting, or another's
            yield Progress("evaluation", step, dict(said.evaluation))

    def _settle_waiting(self) -> Iterator[Progress]:
        said, self._waiting = self._waiting, None
        if said is not None:
            self._training_bar = self._latest_bar if self._training_bar is None else self._training_bar
            yield self._step_event(self._bars[self._training_bar or 0].position, said)

    def _bar(self, said: Said) -> Iterator[Progress]:
        if said.done is None or not said.total:
            return
        counter = self._bars.setdefault(said.total, Counter())
        position = counter.at(said.done, said.total)
        self._latest_bar = said.total
        evaluates = bool(_EVALUATES.search(said.title))
        if not evaluates and ("loss" in said.values or _TRAINS.search(said.title)):
            self._training_bar = said.total
        self._names_steps |= not evaluates and "loss" in said.values
        self._learn_total(said, counter)
        if self._waiting is not None:
            yield from self._settle_waiting()
            return
        now = self.clock()
        if self._training_bar != said.total or position <= self._step:
            return
        if now - self._bar_at >= BAR_EVERY_S or said.done == said.total:
            self._bar_at = now
            yield self._step_event(position, said)

    def _learn_total(self, said: Said, counter: Counter) -> None:
        """Learn how many steps there will be: of a bar over all steps its total, of an epoch's bar epochs times that."""
        assert said.total is not None
        epochs = _EPOCHS.search(said.title)
        if epochs is not None:
            self._total = said.total * int(epochs[1])
        elif counter.base or "epoch" in said.title.lower():
            self._total = None
        elif self._training_bar in (None, said.total):
            self._total = said.total

    def _learn_epochs(self, said: Said) -> None:
        """Learn how many steps there will be from the end of an epoch, where it says of how many it is."""
        if self._total is None and said.epoch and said.epochs and self._step % said.epoch == 0:
            self._total = int(self._step / said.epoch * said.epochs)

    def _total_of_places(self, said: Said) -> int | None:
        """Return the steps of all epochs, once it shows whether places go on counting or begin anew in each."""
        if said.total is None or said.epoch is None or self._first_epoch is None:
            return None
        if self._lines.base:
            return said.total * said.epochs if said.epochs else None
        return said.total if said.epoch > self._first_epoch else None

    def _place_of(self, said: Said) -> int:
        """Return the step that a line belongs to: what it names, else where the training's bar stands, else its number."""
        if said.done is not None:
            if (
                said.values
                and (said.epoch or 0) > (self._epoch or said.epoch or 0)
                and said.done == self._lines.last
            ):
                self._lines.begin_anew()
            self._epoch = said.epoch
            return self._lines.at(said.done, said.total) if said.values else max(self._step, said.done)
        if self._training_bar is not None:
            return self._bars[self._training_bar].position
        if said.values and not self._names_steps:
            self._counted += 1
            return self._counted
        return self._step

    def _step_event(self, step: int, said: Said) -> Progress:
        now = self.clock()
        self._first_epoch = said.epoch if self._first_epoch is None else self._first_epoch
        data: dict[str, Any] = dict(said.values)
        if said.epoch is not None:
            data["epoch"] = said.epoch
        if self._training_bar is not None:
            data["steps_total"] = self._total
        elif total := self._total or self._total_of_places(said):
            data["steps_total"] = total
        elif said.total and said.epoch is None and self._lines.base == 0:
            data["steps_total"] = said.total  # iteration 100/500000
        if self._step_at is not None and step > self._step and now - self._step_at >= AT_ONCE_S:
            data["seconds"] = now - self._step_at
        if "loss" in said.values:
            self._loss_step = step
        self._step, self._step_at = max(step, self._step), now
        return Progress("step", step, data)
