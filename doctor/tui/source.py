"""What the screens ask of the world, as a protocol: live through ``service`` or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from doctor.cure import Proposal
    from doctor.model import Report, Snapshot
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


class SnapshotRow(NamedTuple):
    """One snapshot file that is at hand."""

    key: str
    """What :meth:`Source.snapshot_lines` takes: a shipped one's name, or a path."""
    name: str
    label: str = ""
    is_shipped: bool = False


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


class Refused(Exception):  # noqa: N818 - it is what it says
    """What was asked is not done; ``problems`` says why, in the user's language."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(*problems)
        self.problems = problems


class Watcher(Protocol):
    """Reads one run. Its methods may wait for a disk: called in the background, one call at a time."""

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

    def export_snapshot(self) -> str:
        """Write this machine to a file in the current folder and return its path."""
        ...

    def compare(self, a: str, b: str, width: int) -> Sequence[str]:
        """Return two runs side by side, as lines."""
        ...

    def runs(self) -> Sequence[RunRow]: ...

    def watch(self, name: str) -> Watcher: ...

    def profiles(self) -> Sequence[ProfileRow]: ...

    def plan(self, profile: str) -> PlanRow: ...

    def start(self, profile: str) -> str:
        """Start a run and return its key. Raises Refused where something stops it."""
        ...

    def resume(self, name: str) -> None:
        """Go on with a run from its last checkpoint."""
        ...

    def stop(self, name: str) -> None:
        """Ask a run to save and stop."""
        ...
