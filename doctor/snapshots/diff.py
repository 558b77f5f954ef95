"""Two snapshots held against each other: each difference with what it means for the result. Pure.

A is the reference (the run that was had), B the place where it is to be had again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from doctor.judge import judge
from doctor.model import Reading, Record, Snapshot, Text, t
from doctor.snapshots.diff_machine import machine_differences
from doctor.snapshots.diff_packages import package_differences
from doctor.snapshots.diff_run import run_differences
from doctor.snapshots.differences import Difference
from doctor.snapshots.meanings import VERDICTS, Verdict

COMPARED = ("packages", "torch", "python", "host", "driver", "gpus", "environment", "provenance")


class NotCompared(Record, frozen=True):
    """A part that says nothing because one side was not read."""

    section: str
    why: Text


class Diff(Record, frozen=True):
    a: str
    b: str
    verdict: Verdict
    """The worst of the differences; with ``not_compared`` it is what is known, not what is so."""
    differences: tuple[Difference, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    packages_equal: int = 0
    packages_equal_by_content: int = 0
    """Of those, the ones whose files were compared by digest, too."""

    @property
    def complete(self) -> bool:
        """Whether nothing was left uncompared: only then does "no difference" mean the same."""
        return not self.not_compared and self.packages_equal == self.packages_equal_by_content


def diff(a: Snapshot, b: Snapshot, a_name: str, b_name: str) -> Diff:
    """Return every difference from ``a`` to ``b``, worst first."""
    packages, equal, by_content = package_differences(a, b)
    found = [*packages, *machine_differences(a, b), *run_differences(a, b), *new_failures(a, b)]
    ordered = sorted(found, key=lambda one: VERDICTS.index(one.verdict))
    return Diff(
        a=a_name,
        b=b_name,
        verdict=ordered[0].verdict if ordered else "same-bits",
        differences=tuple(ordered),
        not_compared=tuple(_gaps(a, b, a_name, b_name)),
        packages_equal=equal,
        packages_equal_by_content=by_content,
    )


def new_failures(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    """Yield what `doctor check` fails B for and not A."""
    known = {(finding.id, finding.subject) for finding in judge(a).findings()}
    for finding in judge(b).findings():
        if finding.level == "fail" and (finding.id, finding.subject) not in known:
            yield Difference(
                section="check", subject=finding.subject or finding.id, b=finding.id, verdict="will-not-run", why=finding.title,
                source=f"doctor help {finding.id}",
            )  # fmt: skip


def _gaps(a: Snapshot, b: Snapshot, a_name: str, b_name: str) -> Iterator[NotCompared]:
    for section in COMPARED:
        sides: list[tuple[str, Reading[object]]] = [(a_name, getattr(a.facts, section)), (b_name, getattr(b.facts, section))]  # fmt: skip
        statuses = {reading.status for _, reading in sides}
        if statuses <= {"ok", "absent"} or statuses == {"skipped"}:
            continue
        yield from (
            NotCompared(section=section, why=_why(name, reading))
            for name, reading in sides
            if reading.status in ("failed", "skipped")
        )
    yield from _unset_names(a, b)


def _why(name: str, reading: Reading[object]) -> Text:
    if reading.status == "skipped":
        return t("it is not in {file}", file=name)
    reason = reading.why or t("it could not be read")
    return t("it could not be read for {file}: {why}", file=name, why=str(reason))


def _unset_names(a: Snapshot, b: Snapshot) -> Iterator[NotCompared]:
    """Variables whose values no snapshot keeps: that they are set there and not here is all that is known."""
    one, other = a.facts.environment.value, b.facts.environment.value
    if one is None or other is None or not other.complete:
        return
    missing = _without_value(one.names) - {*other.names, *other.variables}
    if missing:
        yield NotCompared(
            section="environment",
            why=t("set in A and not in B, values not kept: {names}", names=", ".join(sorted(missing)[:20])),
        )


def _without_value(names: Iterable[str]) -> set[str]:
    from doctor.redact_secrets import is_credential_variable

    return {name for name in names if is_credential_variable(name)}
