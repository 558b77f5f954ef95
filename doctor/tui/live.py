"""The screens' source on a live machine: each question goes to ``service``; this only renames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor import service
from doctor.language import say
from doctor.tui.fixing import Cure, Cured, FixPlan, Tell
from doctor.tui.source import (
    DecisionRow,
    Examination,
    PlanRow,
    ProfileRow,
    Refused,
    RunRow,
    SnapshotRow,
    Watcher,
)

if TYPE_CHECKING:
    from doctor.cure import Proposal
    from doctor.launch import StartedRun
    from doctor.process_watch import ProcessWatcher
    from doctor.running import PlannedRun
    from doctor.watching import RunSummary


class LiveSource:
    """This machine and its runs; ``facts`` puts a recorded machine in its place, ``foreign`` is a process beside them."""

    def __init__(self, facts: Path | None = None, foreign: ProcessWatcher | None = None) -> None:
        self._facts = facts
        self._foreign = foreign
        self._cure = Cure()
        self._started: list[StartedRun] = []
        """Runs begun here: their processes are ours to reap while we live, and go on without us."""

    def examine(self) -> Examination:
        snapshot = service.load(self._facts) if self._facts else service.examine()
        return Examination(snapshot, service.judge(snapshot), str(self._facts) if self._facts else "")

    def examine_deeply(self, examination: Examination) -> Examination:
        snapshot = service.examine_deeply(examination.snapshot)
        return Examination(snapshot, service.judge(snapshot), examination.recorded)

    # -- fixes
    def plan_fix(self, examination: Examination, finding_id: str, subject: str) -> FixPlan | None:
        return self._cure.plan(examination, finding_id, subject)

    def apply_fix(self, examination: Examination, proposal: Proposal, tell: Tell) -> Cured:
        return self._cure.apply(examination, proposal, tell)

    def undo_fix(self, examination: Examination, change: str, tell: Tell) -> Cured:
        return self._cure.undo(examination, change, tell)

    # -- snapshots
    def snapshots(self) -> Sequence[SnapshotRow]:
        local = [SnapshotRow(str(path), path.name, label) for path, label in service.local_snapshots()]
        shipped = [SnapshotRow(name, name, label, True) for name, _, label in service.known_snapshots()]
        return [*local, *shipped]

    def snapshot_lines(self, key: str, width: int) -> Sequence[str]:
        path, snapshot = service.find_snapshot(key)
        return service.show_snapshot_lines(snapshot, path.name, width)

    def export_snapshot(self) -> str:
        return str(service.export_snapshot(None))

    # -- runs
    def compare(self, a: str, b: str, width: int) -> Sequence[str]:
        one, other = service.watch_run(a), service.watch_run(b)
        one.poll()
        other.poll()
        return service.compare_text(one, other, "text", width).splitlines()

    def runs(self) -> Sequence[RunRow]:
        self._reap()
        return [_run_row(row) for row in service.list_runs()]

    def watch(self, name: str) -> Watcher:
        if self._foreign is not None and name == self._foreign.name:
            return self._foreign
        return service.watch_run(name)

    def profiles(self) -> Sequence[ProfileRow]:
        return [ProfileRow(name) for name in service.profile_names()]

    def plan(self, profile: str) -> PlanRow:
        return _plan_row(profile, self._plan(profile))

    def _plan(self, profile: str) -> PlannedRun:
        return service.plan_run(profile, snapshot=service.load(self._facts) if self._facts else None)

    def start(self, profile: str) -> str:
        planned = service.plan_run(profile)
        against = _plan_row(profile, planned).problems
        if against:
            raise Refused(against)
        self._reap()
        self._started.append(service.start_run(planned))
        return str(self._started[-1].run.path)

    def resume(self, name: str) -> None:
        self._reap()
        self._started.append(service.resume_run(name))

    def stop(self, name: str) -> None:
        if not service.stop_run(name):
            raise Refused((say("it does not run any more"),))

    def _reap(self) -> None:
        self._started = [started for started in self._started if started.process.poll() is None]


def _run_row(row: RunSummary) -> RunRow:
    return RunRow(
        key=row.path,
        name=row.name,
        status=row.status,
        step=row.step,
        steps_total=row.steps_total,
        seconds=row.seconds,
        metrics=row.metrics,
    )


def _plan_row(profile: str, planned: PlannedRun) -> PlanRow:
    titles = [finding.title for finding in planned.failures]
    decisions = (DecisionRow(item.name, str(item.value), item.why) for item in planned.plan.decisions)
    problems = (say(text) for text in (*planned.missing, *titles))
    return PlanRow(profile, tuple(decisions), tuple(problems))
