"""Runs and processes as they are seen: watched, replayed, reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.expectations import Expected
    from doctor.process_watch import ProcessWatcher
    from doctor.pyspy import Sample
    from doctor.rank_stacks import RankStack
    from doctor.replay import Replay
    from doctor.stack_groups import Group
    from doctor.watching import RunSummary, RunWatcher
    from runner.text import Text


def list_runs(home: Path | None = None) -> list[RunSummary]:
    """Return the runs under ``home`` (default: DOCTOR_RUNS, else ./runs), newest first."""
    from doctor.watching import list_runs

    return list_runs(home)


def watch_run(name: str) -> RunWatcher:
    """Return what follows a run, live or over: its directory, its name, or ``last``. Raises
    FileNotFoundError."""
    from doctor.watching import RunWatcher
    from runner.rundir import find_run

    return RunWatcher(find_run(name))


def past_of_run(name: str) -> Replay:
    """Return what shows a run as it was at any moment. Raises FileNotFoundError."""
    from doctor.replay import Replay
    from runner.rundir import find_run

    return Replay(find_run(name))


def expectations_of(name: str) -> Expected:
    """Return what a run was expected to take, by its plan. Raises FileNotFoundError."""
    from doctor.expectations import expected_of
    from runner.rundir import find_run

    return expected_of(find_run(name))


def record_stacks(pid: int, seconds: int) -> tuple[Sample, list[Group]]:
    """Watch a process and its children from outside for ``seconds``; return what was seen, and that by rank."""
    from doctor.pace import starting_rate
    from doctor.probes.process_tree import tree_of
    from doctor.probes.rank_of_process import ranks_among
    from doctor.pyspy import record
    from doctor.stack_groups import by_rank

    tree = tree_of(pid)
    sample = record(pid, seconds, starting_rate(sum(stat.threads for stat in tree.values())))
    return sample, by_rank(sample.stacks, ranks_among(tree))


def rank_stacks(name: str, seconds: int) -> list[RankStack]:
    """Return where each process of a run stands, looked at for ``seconds``, or as it left it; empty: one process trains, or
    left nothing. Raises FileNotFoundError."""
    from doctor.rank_stacks import left_behind, living_ranks, record_ranks
    from runner.rundir import find_run

    run = find_run(name)
    living = living_ranks(run)
    return record_ranks(living, seconds) if living else left_behind(run) if trainer_pid(name) is None else []


def watch_pid(pid: int, log: Path | None = None) -> ProcessWatcher:
    """Return what follows any process of this machine, and its log. Raises ProcessLookupError, OSError."""
    from doctor.process_watch import ProcessWatcher

    return ProcessWatcher(pid, log)


def trainer_pid(name: str) -> int | None:
    """Return the process that trains a run here; None when it does not run here. Raises FileNotFoundError."""
    from doctor.probes.process_tree import tree_of
    from doctor.probes.rank_of_process import ranks_among
    from doctor.probes.trainer_of import busiest_python
    from doctor.trainer_pid import lives, read_mark
    from runner.rundir import find_run

    run = find_run(name)
    mark = read_mark(run.trainer_pid)
    if mark is None or not lives(mark):
        return None
    return (
        busiest_python(mark.pid)
        if run.supervisor_pid.exists() and not ranks_among(tree_of(mark.pid))
        else mark.pid
    )


def kept_stacks(name: str) -> Path | None:
    """Return the newest file in which it is kept where a run stood; None: there is none. Raises FileNotFoundError."""
    from runner.rundir import find_run

    kept = [path for path in find_run(name).stacks.glob("*.txt") if path.stat().st_size]
    return max(kept, key=lambda path: path.stat().st_mtime, default=None)


def report_text(watcher: RunWatcher, form: str) -> str:
    """Return the report of a run that has been polled; ``form`` is html, markdown or json."""
    from doctor.render import run_page
    from doctor.run_page import collect

    forms = {"html": run_page.as_html, "markdown": run_page.as_markdown, "json": run_page.as_json}
    return forms[form](collect(watcher))


def compare_text(a: RunWatcher, b: RunWatcher, form: str, width: int = 100, unicode: bool = True) -> str:
    """Return two runs that have been polled side by side; ``form`` is html, markdown, json or text."""
    from doctor.comparison import compare
    from doctor.render import compare_page
    from doctor.run_page import collect

    found = compare(collect(a), collect(b))
    if form == "text":
        return compare_page.as_text(found, width, unicode)
    forms = {"html": compare_page.as_html, "markdown": compare_page.as_markdown, "json": compare_page.as_json}
    return forms[form](found)


def write_report(watcher: RunWatcher) -> tuple[Path | None, Text | None]:
    """Write RUN/report.html; return its path, or None and the reason."""
    from doctor.run_page import write_page

    return write_page(watcher.run, report_text(watcher, "html"))
