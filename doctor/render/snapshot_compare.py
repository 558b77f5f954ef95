"""A diff, a verification, a fit and a restore plan as text for a terminal. Says what they found; decides nothing. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from doctor.language import say
from doctor.model import Text, t
from doctor.render.layout import indent, pad, paint
from doctor.snapshots.diff import Diff
from doctor.snapshots.differences import Difference
from doctor.snapshots.fit import Fit
from doctor.snapshots.meanings import VERDICTS, Verdict
from doctor.snapshots.restore_plan import RestorePlan
from doctor.snapshots.verify import Deviation, Verification
from runner.strings import shown

_ROLES: dict[str, str] = {
    "will-not-run": "fail",
    "other-numbers": "warn",
    "same-numbers": "note",
    "same-bits": "dim",
}
SHOWN = 40


def verdict_words(verdict: Verdict) -> str:
    return {
        "will-not-run": say("will not run"),
        "other-numbers": say("other numbers expected"),
        "same-numbers": say("same numbers expected, not the same bits"),
        "same-bits": say("no effect on the numbers"),
    }[verdict]


def _text(text: Text) -> str:
    return shown(say(text))


# ---------------------------------------------------------------------------------------- diff
def diff_lines(found: Diff, width: int, colour: bool, everything: bool) -> Iterator[str]:
    """Yield the verdict, the differences by what they mean, and what could not be compared."""
    yield paint(headline(found), _ROLES[found.verdict] if found.complete else "unknown", colour)
    for verdict in VERDICTS:
        rows = [one for one in found.differences if one.verdict == verdict]
        if rows and verdict == "same-bits" and not everything:
            yield ""
            yield say(
                t(
                    "{count} {count:difference|differences} without effect on the numbers: --all shows them",
                    count=len(rows),
                )
            )
        elif rows:
            yield ""
            yield paint(verdict_words(verdict), _ROLES[verdict], colour)
            yield from difference_lines(rows, width)
    yield from uncompared_lines(found, width)


def headline(found: Diff) -> str:
    """Return the whole diff in one sentence."""
    if found.verdict != "same-bits":
        return say(t("{a} -> {b}: {verdict}", a=shown(found.a), b=shown(found.b), verdict=verdict_words(found.verdict)))  # fmt: skip
    if not found.complete:
        return say(t("{a} -> {b}: nothing found that changes the numbers, but not everything could be compared", a=shown(found.a), b=shown(found.b)))  # fmt: skip
    return say(
        t("{a} -> {b}: the same bits, for a run that repeats itself", a=shown(found.a), b=shown(found.b))
    )


def difference_lines(rows: Sequence[Difference], width: int, limit: int = SHOWN) -> Iterator[str]:
    """Yield each difference with its reason; of many the first ``limit``."""
    for row in rows[:limit]:
        change = f"{shown(row.a) or '-'} -> {shown(row.b) or '-'}"
        yield from indent(f"{shown(row.subject)} {change}", width, "  ", "      ")
        source = f" [{say(row.source)}]" if row.source else ""
        yield from indent(_text(row.why) + source, width, "      ", "      ")
    if len(rows) > limit:
        yield "  " + say(t("and {count} more: --json lists them all", count=len(rows) - limit))


def uncompared_lines(found: Diff, width: int) -> Iterator[str]:
    """Yield how many packages are equal, and what could not be compared."""
    yield ""
    yield say(t("{equal} {equal:package is|packages are} of the same version, {by_content} of them compared by content", equal=found.packages_equal, by_content=found.packages_equal_by_content))  # fmt: skip
    if found.not_compared:
        yield say("Not compared:")
    for row in found.not_compared:
        yield from indent(f"{row.section}: {_text(row.why)}", width, "  ", "    ")


# ---------------------------------------------------------------------------------------- verify
def verification_lines(found: Verification, width: int, colour: bool) -> Iterator[str]:
    """Yield the answer, then every package that deviates, then what of the machine is another."""
    yield paint(
        _verified(found), "fail" if found.differs else "unknown" if found.incomplete else "good", colour
    )
    if found.why:
        yield from indent(_text(found.why), width, "  ", "  ")
    for row in [one for one in found.deviations if one.counts][:SHOWN]:
        yield from indent(_deviation(row), width, "  ", "      ")
    open_rows = [one for one in found.deviations if one.outcome == "not-compared"]
    for row in open_rows[:5]:
        yield from indent(_deviation(row), width, "  ", "      ")
    if len(open_rows) > 5:
        yield "  " + say(t("and {count} more: --json lists them all", count=len(open_rows) - 5))
    extras = [one.name for one in found.deviations if one.outcome == "extra" and not one.counts]
    if extras:
        more = say(t("Also installed here: {names}", names=", ".join(map(shown, extras[:12]))))
        yield from indent(more + (" ..." if len(extras) > 12 else ""), width, "", "  ")
    machine = [one for one in found.machine if one.verdict != "same-bits"]
    if machine:
        yield say("The machine is another one:")
        yield from difference_lines(machine, width)


def _verified(found: Verification) -> str:
    level = {"versions": say("versions"), "record": say("versions and digests"), "files": say("versions, digests and files"), "proof": say("versions, digests and files")}[found.level]  # fmt: skip
    if found.differs:
        count = sum(one.counts for one in found.deviations)
        return say(t("not the same environment: {count} {count:package deviates|packages deviate}, {equal} are equal ({level})", count=count, equal=found.equal, level=level))  # fmt: skip
    if found.incomplete:
        return say(t("nothing deviates, but not everything could be compared: {equal} {equal:package is|packages are} equal ({level})", equal=found.equal, level=level))  # fmt: skip
    return say(
        t(
            "the same environment: all {equal} {equal:package is|packages are} equal ({level})",
            equal=found.equal,
            level=level,
        )
    )


def _deviation(row: Deviation) -> str:
    words = {
        "missing": say(t("{name} {version} is missing", name=row.name, version=row.expected)),
        "version": say(t("{name} is {found}, should be {expected}", name=row.name, found=row.found, expected=row.expected)),
        "bytes": say(t("{name}: the same version with other bytes ({expected} -> {found})", name=row.name, expected=row.expected, found=row.found)),
        "damaged": say(t("{name}: files are not what was installed: {files}", name=row.name, files=", ".join(row.files))),
        "extra": say(t("{name} {version} is installed here and was not there", name=row.name, version=row.found)),
        "not-compared": say(t("{name} could not be compared", name=row.name)),
    }[row.outcome]  # fmt: skip
    return shown(words) + (f": {_text(row.why)}" if row.why else "")


# ---------------------------------------------------------------------------------------- fit
def fit_lines(found: Fit, width: int, colour: bool) -> Iterator[str]:
    words, role = {
        "fits": (say("That machine can take it."), "good"),
        "does-not-fit": (say("That machine cannot take it as it is."), "fail"),
        "unknown": (say("Whether that machine can take it cannot be told."), "unknown"),
    }[found.answer]
    yield paint(words, role, colour)
    for one in found.obstacles:
        name = {"fail": say("no"), "warn": say("but"), "unknown": say("?")}[one.level]
        yield from indent(_text(one.why), width, paint(pad(f"  {name}", 6), one.level, colour), "      ")
        if one.change is not None:
            yield from indent("-> " + _text(one.change), width, "      ", "         ")
    if found.numbers and found.answer != "does-not-fit":
        yield say("The numbers of a run there:")
        yield from difference_lines(found.numbers, width)


# ---------------------------------------------------------------------------------------- restore
def plan_lines(plan: RestorePlan, commands: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield every command of a restore, what each installs, what is left out and what is doubtful."""
    yield shlex.join(commands[0])
    for phase, command in zip(plan.phases, commands[1:], strict=True):
        yield shown(shlex.join(command))
        yield from indent(", ".join(shown(line) for line in phase.lines), width, "    ", "    ")
    for heading, rows in ((say("Left out:"), plan.left_out), (say("Asked for by version, then compared:"), plan.doubtful)):  # fmt: skip
        if rows:
            yield heading
        for one in rows:
            yield from indent(f"{shown(one.name)} {shown(one.version)}: {_text(one.problem) if one.problem else ''}", width, "  ", "    ")  # fmt: skip
