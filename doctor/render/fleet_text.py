"""A fleet as text for a terminal: where its machines differ, what they share, what is alike."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from doctor import __version__
from doctor.fleet_records import FleetReport, Shared, some_names
from doctor.language import say
from doctor.model import LEVELS, Finding, t
from doctor.render.layout import indent, paint
from doctor.render.section_names import listed, section_name
from doctor.render.structured import markdown_code, markdown_text
from doctor.render.text import finding_lines, level_word, note_lines
from runner.strings import shown

_ALIKE = {
    "fleet-torch-differs": t("torch"),
    "fleet-nccl-differs": t("NCCL"),
    "fleet-cards-differ": t("cards"),
    "fleet-code-differs": t("code"),
    "fleet-packages-differ": t("packages"),
    "fleet-python-differs": t("Python"),
    "fleet-driver-differs": t("driver"),
    "fleet-infiniband-differs": t("InfiniBand"),
    "fleet-glibc-differs": t("glibc"),
}


def fleet_lines(report: FleetReport, width: int = 100, colour: bool = False) -> Iterator[str]:
    """Yield the lines of ``doctor merge`` and ``doctor check --fleet``."""
    count = len(report.members)
    names = some_names([shown(name) for name in report.members])
    yield from indent(say(t("{count} machines: {names}", count=count, names=names)), width, "", "  ")
    own = [(finding, None) for finding in report.differences]
    held = [(one.finding, one) for one in report.shared]
    noted = False
    for finding, shared in sorted([*own, *held], key=lambda both: LEVELS.index(both[0].level)):
        brief = finding.level == "note" and shared is not None
        yield from [] if noted and brief else [""]
        noted = brief
        yield from (
            finding_lines(finding, width, colour)
            if shared is None
            else _shared_lines(shared, count, width, colour)
        )
    yield ""
    if report.alike:
        words = listed([say(_ALIKE[one]) for one in report.alike])
        yield from indent(say(t("alike on all: {names}", names=words)), width, "", "  ")
    for unread in report.unread:
        words = say(t("could not be read on {who}: {section}", who=some_names(unread.members), section=section_name(unread.section)))  # fmt: skip
        yield paint(words, "unknown", colour)
    if not report.differences and not report.unread:
        yield paint(say("no difference found"), "good", colour)


def _shared_lines(one: Shared, count: int, width: int, colour: bool) -> Iterator[str]:
    who = say("on all") if len(one.members) == count else say(t("on {count} of {all}: {who}", count=len(one.members), all=count, who=some_names(one.members)))  # fmt: skip
    finding = replace(one.finding, title=t("{title} ({who})", title=say(one.finding.title), who=who))
    if finding.level == "note":
        yield from note_lines(finding, width, colour)
    else:
        yield from finding_lines(finding, width, colour)


def fleet_markdown(report: FleetReport) -> str:
    """Return Markdown to paste into a bug report: what differs, then what some or all have. Of redacted members."""
    count = len(report.members)
    lines = [f"**rundoctor {__version__}**", "", f"- {markdown_code(say(t('{count} machines: {names}', count=count, names=some_names(report.members))))}", ""]  # fmt: skip
    for finding in report.differences:
        lines.append(_markdown_line(finding))
        lines += [f"  - {markdown_code(row.fact)} = {markdown_code(row.value)}" for row in finding.evidence]
    lines += [_markdown_line(one.finding, some_names(one.members)) for one in report.shared]
    lines += [f"- {markdown_code(one.section)}: {level_word('unknown')} ({some_names(one.members)})" for one in report.unread]  # fmt: skip
    if not report.differences and not report.unread:
        lines.append(f"- {say('no difference found')}")
    return "\n".join(lines)


def _markdown_line(finding: Finding, who: str = "") -> str:
    behind = f" ({markdown_text(who)})" if who else ""
    return f"- **{level_word(finding.level)}** {markdown_text(say(finding.title))} ({markdown_code(finding.id)}){behind}"
