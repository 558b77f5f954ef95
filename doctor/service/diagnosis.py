"""What is wrong: reading a machine, judging it, explaining a log, reading a script, choosing a torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.explain import Explanation
    from doctor.lint.rewrites import Proposal as LintProposal
    from doctor.lint.rewrites import Rewritten
    from doctor.model import Finding, Report, Snapshot
    from doctor.recommend import Recommendation


def examine(python: str | None = None, sections: Iterable[str] | None = None) -> Snapshot:
    """Read this machine and the environment of ``python`` (default: the session's own).

    The checks are loaded while the probes wait, where all sections are read: that is done in order to judge.
    """
    from doctor.checks import all_checks
    from doctor.machine import live_snapshot
    from doctor.probes import Context

    return live_snapshot(Context(python=python), sections, meanwhile=all_checks if sections is None else None)


def examine_deeply(
    snapshot: Snapshot, python: str | None = None, data: str | None = None, limit_s: float | None = None
) -> Snapshot:
    """Return ``snapshot`` with what happens when torch is really used here, and how fast ``data`` is read."""
    from doctor.machine import with_facts
    from doctor.probes import Context
    from doctor.probes.deep import LIMIT_S, probe

    reading = probe(Context(python=python), data, LIMIT_S if limit_s is None else limit_s)
    return with_facts(snapshot, deep=reading)


def examine_for_run(python: str | None = None) -> Snapshot:
    """Read this machine with what the run will stand on: contents of packages, the commit, the changes since.

    Changes that look like they hold a credential are left out: a run directory is copied about.
    """
    from doctor.probes import PROBES
    from doctor.snapshots.capture import credentials_in, without_patches

    snapshot = examine(python, [*PROBES, "provenance"])
    return without_patches(snapshot) if credentials_in(snapshot) else snapshot


def load(path: Path) -> Snapshot:
    """Read a recorded machine. Raises OSError, doctor.machine.BadSnapshot."""
    from doctor.machine import load_snapshot

    return load_snapshot(path)


def judge(snapshot: Snapshot) -> Report:
    from doctor.judge import judge

    return judge(snapshot)


def shareable(snapshot: Snapshot, live: bool) -> Snapshot:
    """Return what of a snapshot may leave this machine; a live one also loses this machine's own names."""
    if live:
        from doctor.snapshots.capture import shareable

        return shareable(snapshot)
    from doctor.redact import redact

    return redact(snapshot)


def explain(text: str, snapshot: Snapshot | None, script: tuple[str, str] | None = None) -> Explanation:
    """Say what an error text means, each cause held against ``snapshot`` and a ``script`` (source, name)."""
    from doctor.explain import explain

    return explain(text, snapshot, script)


def lint(source: str, path: str, snapshot: Snapshot | None) -> list[Finding]:
    """Say what is wrong in a training script; ``snapshot`` gives the versions and the card to judge by.

    Where TorchFix is installed beside us, its rules are asked too.
    """
    from doctor.lint import lint_source
    from doctor.lint.reader import decodable
    from doctor.lint.torchfix import is_installed, torchfix_findings

    found = lint_source(source, None, path, snapshot)
    if path.endswith((".ipynb", ".json")) or not is_installed():
        return found
    return found + torchfix_findings(decodable(source), path, found)


def rewrite_script(
    source: str, path: str, snapshot: Snapshot | None, wanted: Callable[[LintProposal], bool]
) -> Rewritten:
    """Rewrite a training script as far as ``wanted`` says. Raises doctor.lint.rewrites.NotRewritable, ImportError (libcst)."""
    from doctor.lint.rewrites import rewrite_source

    return rewrite_source(source, wanted, None, path, snapshot)


def beside_script(snapshot: Snapshot, script: str, python: str | None = None) -> Snapshot:
    """Return ``snapshot`` with the files that hide modules from ``script``: those of its own folder."""
    import msgspec

    from doctor.machine import with_facts
    from doctor.model import ok
    from doctor.probes import Context
    from doctor.probes.project import probe

    folder, project = Path(script).absolute().parent, snapshot.facts.project
    if project.value is None or str(folder) == project.value.cwd:
        return snapshot
    there = probe(Context(python=python, cwd=folder)).value
    if there is None:
        return snapshot
    seen = msgspec.structs.replace(
        project.value,
        shadowing_files=there.shadowing_files,
        shadowing_folder=there.cwd,
        is_package=there.is_package,
    )
    return with_facts(snapshot, project=ok(seen, project.source))


def judge_for_script(snapshot: Snapshot, source: str, path: str) -> tuple[Snapshot, Report]:
    """Judge a machine for a training script: what the run asks of it, and what is wrong in the script itself."""
    from doctor.purpose import judge_for_script

    return judge_for_script(snapshot, source, path)


def recommend(snapshot: Snapshot, python: str | None = None) -> Recommendation:
    """Say which torch runs on a machine; ``python`` takes the place of its interpreter's version."""
    import msgspec

    from doctor.recommend import recommend, target_of

    target = target_of(snapshot)
    return recommend(msgspec.structs.replace(target, python=python) if python else target)


def recommend_for(
    driver: str | None, cards: Sequence[str], python: str | None
) -> tuple[Recommendation, tuple[str, ...]]:
    """Say which torch runs on a driver and cards given by name; also the names that no table knows."""
    from doctor.recommend import recommend, target_from

    target, unknown = target_from(driver, cards, python)
    return recommend(target), unknown


def with_mirrors(recommendation: Recommendation) -> Recommendation:
    """Ask the mirrors for the best build, over the network, for a few seconds."""
    import msgspec

    from doctor.mirrors import ask_mirrors

    if recommendation.best is None:
        return recommendation
    return msgspec.structs.replace(recommendation, mirrors=ask_mirrors(recommendation.best))


def transformers_for(torch: str, python: str | None = None) -> str | None:
    """Return the transformers requirement that goes with a torch version."""
    from doctor.recommend import matching_transformers

    return matching_transformers(torch, python)


def exit_code(report: Report, fail_on: str) -> int:
    from doctor.judge import exit_code

    return exit_code(report, fail_on)  # type: ignore[arg-type]
