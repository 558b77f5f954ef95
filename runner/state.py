"""Events folded into what a run *is* now: ``state = fold(events)``, the same live and replayed.

Faces (watch, TUI, report) show a :class:`RunState`; none of them reads events itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from runner.alerts import AlertBook
from runner.curve import Curve
from runner.events import RunEvent, amount, number, table, whole
from runner.rank_paces import RankPaces, rank_of
from runner.run_times import RunTimes
from runner.state_json import state_as_dict
from runner.text import Text
from runner.windows import Windows

__all__ = ["Curve", "RunState", "fold", "state_as_dict"]

STALLED_AFTER_S = 60.0
"""A running trainer that wrote nothing for this long is called stalled, unless it was quiet for long before and
then went on: a long evaluation is no stall (see :data:`PATIENCE`)."""
PATIENCE = 3.0
"""A trainer that was once quiet for G seconds and went on is not called stalled before PATIENCE x G."""
FIRST_STEP_S = 600.0
"""Before the first step kernels are compiled, caches filled and workers started: silence says nothing so soon."""
XIDS_KEPT = 20


class RunState:
    """What is known of a run. Every field is what events said; nothing is guessed.

    ``status`` is one of ``starting running stalled stopped interrupted completed failed non-finite lost damaged``; *lost* is set
    by the reader when the trainer's process is gone without a word (see :meth:`status_at`), *damaged* where nothing of
    the run can be read.
    """

    def __init__(self) -> None:
        self.started: dict[str, Any] = {}
        self.finished: dict[str, Any] = {}
        self.supervised = False
        """A command of the user's own: whoever started it says how it ends, not the training inside."""
        self.training_finished: dict[str, Any] = {}
        """What the training inside a supervised command said at its end."""
        self.on_finish: dict[str, Any] = {}
        """``data`` of the newest ``on-finish`` event."""
        self.preparing: dict[str, Any] = {}
        """``data`` of the newest ``preparing`` event: how far the rows are tokenised."""
        self.step = 0
        self.steps_total: int | None = None
        self.last: dict[str, Any] = {}
        """``data`` of the newest step event."""
        self.has_stepped = False
        """A step has been done since the newest start."""
        self.loss, self.eval_loss = Curve(), Curve()
        self.lr, self.grad_norm = Curve(), Curve()
        self.samples_per_s, self.tokens_per_s = Curve(), Curve()
        self.metrics: dict[str, Curve] = {}
        self.evaluations: list[RunEvent] = []
        self.checkpoints: list[RunEvent] = []
        self.notes: list[RunEvent] = []
        self.memory: dict[str, Any] = {}
        """``data`` of the newest ``memory`` event: the first steps' peak, foretold and measured."""
        self.host: dict[str, Any] = {}
        self.gpus: dict[str, Any] = {}
        """As the newest sample has it; with ``seen_at`` (seconds since the epoch) where it could not read the cards."""
        self._gpus_at = 0.0
        self.xids: list[dict[str, Any]] = []
        """``data`` of the newest ``xid`` events, oldest first."""
        self.xid_source: dict[str, Any] = {}
        """Where they come from, or ``why`` from nowhere: ``data`` of ``sample-xids``; empty: nobody looked."""
        self.stacks: dict[str, Any] = {}
        self.standing: dict[str, Any] = {}
        """``data`` of the newest ``standing`` event of the silence under way."""
        self.evaluating: dict[str, Any] = {}
        """``data`` of the newest ``evaluating`` event: how far an evaluation is; empty: none is under way."""
        self.log_pace: list[float] = []
        """Seconds a step between the newest words of a supervised command's log."""
        self._paced_step = 0
        self.samples_seen = 0
        self.tokens_seen = 0
        self.padded_tokens_seen = 0
        """Positions of the steps that told both them and the tokens in them."""
        self._tokens_of_padded = 0
        self.non_finite_losses = 0
        self.split_seconds: dict[str, float] = {}
        self.times = RunTimes()
        self.last_trainer_t: float | None = None
        self.is_begun_anew = False
        """The trainer spoke after its end: another start prepares, and has not said yet where it goes on."""
        self.longest_gap_s = 0.0
        """Between two words of the trainer within one start."""
        self.ranks = RankPaces()
        """The other processes of the same training; what stands elsewhere here is rank 0's."""
        self.windows = Windows()
        """Where the time went, for :mod:`runner.verdict`."""
        self.alerts = AlertBook()
        self.damage: list[Text] = []
        """What of the run directory cannot be read, and where; set by whoever reads it (:mod:`runner.damage`)."""
        self.is_approximate = False
        """Folded from a part of the events: ends and newest values are right, counts are lower bounds."""

    # -- fold ---------------------------------------------------------------------------------------------------
    def add(self, event: RunEvent) -> None:
        """Fold one event in. Unknown kinds and keys are passed over."""
        self.times.add(event, self.last_trainer_t)
        if self._is_another_ranks(event):
            return
        if event.source.startswith(("trainer", "log")):
            if self.last_trainer_t is not None:
                self.longest_gap_s = max(self.longest_gap_s, event.t - self.last_trainer_t)
            self.last_trainer_t = event.t
            self.standing, self.evaluating = {}, {}
            self.is_begun_anew = bool(self.finished) and event.kind != "run-finished"
        handler = getattr(self, "_on_" + event.kind.replace("-", "_"), None)
        if handler is not None:
            handler(event)
        self.windows.add(event)
        self.alerts.add(event)

    def add_thinned(self, event: RunEvent) -> None:
        """Fold in one of a few events taken from many: its values count, the time since the one before does not."""
        if self._is_another_ranks(event):
            return
        self._paced_step = event.step or self._paced_step
        handler = getattr(self, "_on_" + event.kind.replace("-", "_"), None)
        if handler is not None:
            handler(event)
        self.windows.pause()
        self.last_trainer_t = None

    def _is_another_ranks(self, event: RunEvent) -> bool:
        """Fold an event into the ranks where there are several; of another rank than the first only its notes go further."""
        if event.source == "trainer-0":
            if self.ranks:
                self.ranks.add(event)
            return False
        if not event.source.startswith("trainer-") or rank_of(event.source) == 0:
            return False
        self.ranks.add(event)
        if event.kind == "note":
            self.notes.append(event)
        return True

    def _on_run_started(self, event: RunEvent) -> None:
        if (
            self.supervised and event.source != "log"
        ):  # a callback inside the supervised command tells more of it
            self.started = {**self.started, **event.data}
            self._begin_at(event)
            return
        self.supervised = event.source == "log"
        self.started = event.data
        self.finished, self.training_finished = {}, {}
        self.longest_gap_s, self.has_stepped = 0.0, False
        self._begin_at(event)

    def _begin_at(self, event: RunEvent) -> None:
        self.steps_total = whole(event.data.get("steps_total"), self.steps_total)
        self.step = whole(event.data.get("resumed_from_step"), 0) or 0

    def _on_preparing(self, event: RunEvent) -> None:
        self.preparing = event.data

    def _on_memory(self, event: RunEvent) -> None:
        self.memory = event.data

    def _on_step(self, event: RunEvent) -> None:
        self.step = whole(event.step, self.step) or self.step
        self.steps_total = whole(event.data.get("steps_total"), self.steps_total)
        self.last, self.has_stepped = event.data, True
        loss = number(event.data.get("loss"))
        if loss is not None:
            self.loss.add(self.step, loss)
        self.non_finite_losses += bad_losses(event.data)
        for name, curve in (("lr", self.lr), ("grad_norm", self.grad_norm)):
            value = number(event.data.get(name))
            if value is not None:
                curve.add(self.step, value)
        self._count(event.data, amount(event.data.get("seconds")) or 0.0)

    def _count(self, data: dict[str, Any], seconds: float) -> None:
        """Add up what a step counted; what is no amount (below 0, not finite, no number) counts as not written."""
        self._learn_pace(amount(data.get("seconds")))
        samples, tokens, padded = (amount(data.get(name)) for name in ("samples", "tokens", "padded_tokens"))
        for counted, curve in ((samples, self.samples_per_s), (tokens, self.tokens_per_s)):
            if counted is not None and seconds > 0:
                curve.add(self.step, counted / seconds)
        self.samples_seen += int(samples or 0)
        self.tokens_seen += int(tokens or 0)
        if tokens is not None and padded is not None and tokens <= padded:
            self.padded_tokens_seen += int(padded)
            self._tokens_of_padded += int(tokens)
        for name, part in table(data.get("split")).items():
            self.split_seconds[name] = self.split_seconds.get(name, 0.0) + (amount(part) or 0.0)

    def _learn_pace(self, seconds: float | None) -> None:
        """A log tells every so many steps: its ``seconds`` are of all steps since the event before. Lines that were read at one
        moment have none after the first: their steps count with the next one that took time."""
        steps = self.step - self._paced_step
        if self.supervised and seconds and steps > 0:
            self.log_pace = [*self.log_pace[-49:], seconds / steps]
        if seconds != 0.0:
            self._paced_step = self.step

    def _on_evaluation(self, event: RunEvent) -> None:
        self.evaluations.append(event)
        for name, value in event.data.items():
            value = number(value)
            if value is None or name in ("samples", "seconds"):
                continue
            curve = self.eval_loss if name == "loss" else self.metrics.setdefault(name, Curve())
            curve.add(whole(event.step, self.step) or self.step, value)

    def _on_checkpoint(self, event: RunEvent) -> None:
        self.checkpoints.append(event)

    def _on_note(self, event: RunEvent) -> None:
        self.notes.append(event)

    def _on_run_finished(self, event: RunEvent) -> None:
        if self.supervised and event.source != "log":
            self.training_finished = event.data  # the command goes on; its supervisor says how it ends
            return
        self.finished = {**self.training_finished, **event.data}

    def _on_on_finish(self, event: RunEvent) -> None:
        self.on_finish = event.data

    def _on_sample_host(self, event: RunEvent) -> None:
        self.host = event.data

    def _on_sample_gpu(self, event: RunEvent) -> None:
        """Cards that cannot be read now are kept as they were last seen, with the reason and since when."""
        if event.data.get("gpus") or not self.gpus.get("gpus"):
            self.gpus, self._gpus_at = event.data, event.t
        else:
            self.gpus = {**event.data, "gpus": self.gpus["gpus"], "seen_at": self._gpus_at}

    def _on_xid(self, event: RunEvent) -> None:
        self.xids = [*self.xids[-(XIDS_KEPT - 1) :], {"at": event.t, **event.data}]

    def _on_sample_xids(self, event: RunEvent) -> None:
        self.xid_source = event.data

    def _on_standing(self, event: RunEvent) -> None:
        self.standing = event.data

    def _on_evaluating(self, event: RunEvent) -> None:
        self.evaluating = event.data

    def _on_sample_stacks(self, event: RunEvent) -> None:
        self.stacks = event.data

    @property
    def first_t(self) -> float | None:
        return self.times.first_t

    @property
    def last_t(self) -> float | None:
        return self.times.last_t

    # -- derived ------------------------------------------------------------------------------------------------
    def status_at(self, now: float, trainer_alive: bool | None = None) -> str:
        """Return the status at wall time ``now``; ``trainer_alive`` is None where nobody could look."""
        if self.finished:
            return str(self.finished.get("outcome", "completed"))
        if self.damage and not self.started:
            return "damaged"
        if trainer_alive is False:
            return "lost"
        if not self.started:
            return "starting"
        if self.supervised and not self.last:
            return "running"  # a command that tells no steps may well be silent for long
        patience_s = max(STALLED_AFTER_S if self.has_stepped else FIRST_STEP_S, PATIENCE * self.longest_gap_s)
        if self.last_trainer_t is not None and now - self.last_trainer_t > patience_s:
            return "stalled"
        return "running"

    def eta_seconds(self) -> float | None:
        """Return the seconds to the last planned step from the median of recent step times; None when unknown."""
        recent = sorted(value for value in self._recent_step_seconds() if value > 0)
        if self.steps_total is None or not recent or self.finished:
            return None
        return max(0, self.steps_total - self.step) * recent[len(recent) // 2]

    def seconds_a_step(self) -> float | None:
        """Return the median of a supervised command's newest steps; None: nothing tells it."""
        recent = sorted(pace for pace in self.log_pace if pace > 0)
        return recent[len(recent) // 2] if recent else None

    def _recent_step_seconds(self) -> list[float]:
        samples = amount(self.last.get("samples")) or 0.0
        if not samples and self.supervised:
            return [pace for pace in self.log_pace[-50:] if pace > 0]
        return [samples / value for value in self.samples_per_s.values[-50:] if value > 0] if samples else []

    def padding_share(self) -> float | None:
        """Return the share of padded positions that were padding, 0 to 1; None when unknown."""
        return 1 - self._tokens_of_padded / self.padded_tokens_seen if self.padded_tokens_seen else None


def bad_losses(step: dict[str, Any]) -> int:
    """Return how many losses of a step event were no numbers: counted one by one, where the trainer did, else its own."""
    counted, loss = amount(step.get("non_finite")), number(step.get("loss"))
    if counted is not None:
        return int(counted)
    return int(loss is not None and not math.isfinite(loss))


def fold(events: Iterable[RunEvent], state: RunState | None = None) -> RunState:
    """Fold ``events`` into ``state`` (a new one by default) and return it."""
    state = state or RunState()
    for event in events:
        state.add(event)
    return state
