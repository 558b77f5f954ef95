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
    Past,
    PlanRow,
    ProfileRow,
    Refused,
    RunRow,
    SnapshotRow,
    Watcher,
)

if TYPE_CHECKING:
    from doctor.cure import Proposal
    from doctor.expectations import Expected
    from doctor.launch import StartedRun
    from doctor.process_watch import ProcessWatcher
    from doctor.running import PlannedRun
    from doctor.snapshots.diff import Diff
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
        here = [] if self._facts else [SnapshotRow("here", say("this machine"), "", "here")]
        local = [SnapshotRow(str(path), path.name, label) for path, label in service.local_snapshots()]
        shipped = [SnapshotRow(name, name, label, "shipped") for name, _, label in service.known_snapshots()]
        runs = [SnapshotRow(row.path, row.name, "", "run") for row in service.list_runs()]
        return [*here, *local, *shipped, *runs]

    def snapshot_lines(self, key: str, width: int) -> Sequence[str]:
        if key == "here":
            return service.show_snapshot_lines(service.examine(), say("this machine"), width)
        path = Path(key)
        if (path / "snapshot.json").is_file():
            path = path / "snapshot.json"
        found, snapshot = service.find_snapshot(str(path))
        return service.show_snapshot_lines(snapshot, found.name, width)

    def difference(self, a: str, b: str) -> Diff:
        return service.diff_snapshots(a, b)

    def export_difference(self, found: Diff) -> str:
        from doctor.render.structured import record_as_json

        names = "-".join(Path(name).name.removesuffix(".json") for name in (found.a, found.b))
        path = Path(f"doctor-diff-{names}.json")
        service.write_text(record_as_json(found) + "\n", path, overwrite=True)
        return str(path)

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
        if self._foreign is not None and self._is_foreign(name):
            return self._foreign
        return service.watch_run(name)

    def _is_foreign(self, name: str) -> bool:
        return self._foreign is not None and name == self._foreign.name

    def expected(self, name: str) -> Expected | None:
        if self._is_foreign(name):
            return None
        return service.expectations_of(name)

    def past(self, name: str) -> Past | None:
        if self._is_foreign(name):
            return None
        return service.past_of_run(name)

    def profiles(self) -> Sequence[ProfileRow]:
        return [ProfileRow(name, say(words)) for name, words in service.profiles()]

    def plan(self, profile: str, changed: Sequence[str] = ()) -> PlanRow:
        snapshot = service.load(self._facts) if self._facts else None
        planned = service.plan_run(profile, changed, snapshot=snapshot)
        memory, why = service.plan_memory_of(profile, changed, planned.snapshot)
        return _plan_row(profile, planned)._replace(changed=tuple(changed), memory=memory, memory_why=why)

    def start(self, profile: str, changed: Sequence[str] = ()) -> str:
        planned = service.plan_run(profile, changed)
        against = _plan_row(profile, planned).problems
        if against:
            raise Refused(against)
        self._reap()
        self._started.append(service.start_run(planned))
        return str(self._started[-1].run.path)

    def resume(self, name: str, approximate: bool = False) -> None:
        self._reap()
        self._started.append(service.resume_run(name, approximate=approximate))

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
        loss=row.loss,
        started_at=row.started_at,
        damage=row.damage,
    )


def _plan_row(profile: str, planned: PlannedRun) -> PlanRow:
    titles = [finding.title for finding in planned.failures]
    decisions = (DecisionRow(item.name, str(item.value), item.why) for item in planned.plan.decisions)
    problems = (say(text) for text in (*planned.missing, *titles))
    return PlanRow(profile, tuple(decisions), tuple(problems))
