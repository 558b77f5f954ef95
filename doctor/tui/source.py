"""What the screens ask of the world, as a protocol: live through ``service`` or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from doctor.cure import Proposal
    from doctor.expectations import Expected
    from doctor.memory_plan import MemoryPlan
    from doctor.model import Report, Snapshot
    from doctor.snapshots.diff import Diff
    from doctor.tui.fixing import Cured, FixPlan, Tell
    from runner.state import RunState
    from runner.text import Text


class Examination(NamedTuple):
    """A machine and what judging it gave."""

    snapshot: Snapshot
    report: Report
    recorded: str = ""
    """The file it came from; empty: this machine, now."""


class RunRow(NamedTuple):
    """One run of the list."""

    key: str
    """What :meth:`Source.watch` takes: its path."""
    name: str
    status: str
    step: int = 0
    steps_total: int | None = None
    seconds: float | None = None
    metrics: Mapping[str, float] = {}
    """Of the newest evaluation."""
    loss: float | None = None
    started_at: float | None = None
    """Seconds since the epoch; None: it has said nothing yet."""
    damage: tuple[str, ...] = ()
    """What of its directory cannot be read, and where."""


class SnapshotRow(NamedTuple):
    """One snapshot file that is at hand."""

    key: str
    """What :meth:`Source.snapshot_lines` takes: a shipped one's name, a path, or ``here``."""
    name: str
    label: str = ""
    origin: str = ""
    """``shipped``, ``here`` (this machine, now), ``run``; empty: a file of this folder."""


class ProfileRow(NamedTuple):
    """One profile that can be run."""

    name: str
    title: str = ""


class DecisionRow(NamedTuple):
    """One choice of a plan with its reason."""

    name: str
    value: str
    why: Text | str


class PlanRow(NamedTuple):
    profile: str
    decisions: tuple[DecisionRow, ...] = ()
    problems: tuple[str, ...] = ()
    """What stops a start, in the user's language."""
    changed: tuple[str, ...] = ()
    """The ``section.key=value`` it was planned with."""
    memory: MemoryPlan | None = None
    memory_why: Text | str | None = None
    """Why its memory could not be predicted."""


class Refused(Exception):  # noqa: N818 - it is what it says
    """What was asked is not done; ``problems`` says why, in the user's language."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(*problems)
        self.problems = problems


class Watcher(Protocol):
    """Reads one run. Its methods may wait for a disk: called in the background, one call at a time."""

    is_ours: bool
    """It is a run, and can be stopped, resumed and looked back at; not a process that somebody else started."""
    state: RunState
    """What is folded so far; while ``poll`` works, only single numbers of it may be read."""

    @property
    def name(self) -> str: ...

    def poll(self) -> RunState: ...

    def settle(self) -> None:
        """Read what there is to show at once; the first ``poll`` after it reads a long run whole."""
        ...

    def status(self) -> str: ...

    def is_over(self) -> bool: ...

    def log_tail(self, lines: int = 20) -> list[str]: ...


class Past(Protocol):
    """A run as it was at any moment. Its methods may wait for a disk: one call at a time."""

    def span(self) -> tuple[float, float] | None:
        """Return when the first and the last event were written, in seconds since the epoch."""
        ...

    def state_at(self, at: float) -> RunState: ...


class Source(Protocol):
    """Everything the screens may ask. Every method may wait; none is called on the screen's own thread."""

    def examine(self) -> Examination: ...

    def examine_deeply(self, examination: Examination) -> Examination:
        """Return the machine judged again with what happens when torch is really used on it."""
        ...

    def plan_fix(self, examination: Examination, finding_id: str, subject: str) -> FixPlan | None: ...

    def apply_fix(self, examination: Examination, proposal: Proposal, tell: Tell) -> Cured: ...

    def undo_fix(self, examination: Examination, change: str, tell: Tell) -> Cured: ...

    def snapshots(self) -> Sequence[SnapshotRow]: ...

    def snapshot_lines(self, key: str, width: int) -> Sequence[str]: ...

    def difference(self, a: str, b: str) -> Diff:
        """Return what differs from one snapshot to another, each by its key."""
        ...

    def export_difference(self, found: Diff) -> str:
        """Write a difference to a file in the current folder and return its path."""
        ...

    def export_snapshot(self) -> str:
        """Write this machine to a file in the current folder and return its path."""
        ...

    def compare(self, a: str, b: str, width: int) -> Sequence[str]:
        """Return two runs side by side, as lines."""
        ...

    def runs(self) -> Sequence[RunRow]: ...

    def watch(self, name: str) -> Watcher: ...

    def expected(self, name: str) -> Expected | None:
        """Return what the run was expected to take; None where nobody planned it."""
        ...

    def past(self, name: str) -> Past | None:
        """Return what shows a run as it was; None where nothing was recorded."""
        ...

    def profiles(self) -> Sequence[ProfileRow]: ...

    def plan(self, profile: str, changed: Sequence[str] = ()) -> PlanRow: ...

    def start(self, profile: str, changed: Sequence[str] = ()) -> str:
        """Start a run and return its key. Raises Refused where something stops it."""
        ...

    def resume(self, name: str, approximate: bool = False) -> None:
        """Go on with a run from its last checkpoint; ``approximate``: also where it cannot go on to the bit."""
        ...

    def stop(self, name: str) -> None:
        """Ask a run to save and stop."""
        ...
