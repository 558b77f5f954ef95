"""A report for machines and for bug trackers: JSON, SARIF, JUnit, Markdown. Each is one function from records to text."""

from __future__ import annotations

from typing import Any

import msgspec

from doctor import __version__
from doctor.language import say
from doctor.model import Finding, Report, Snapshot
from doctor.render.headline import environment_line, machine_line
from doctor.render.text import level_word, printable_text
from runner.strings import printable

_SARIF_LEVELS = {"fail": "error", "warn": "warning", "note": "note", "unknown": "none"}


def as_json(report: Report, snapshot: Snapshot, exit_code: int) -> str:
    """Return the report as JSON; sentences come as msgid with fields *and* in the current language (``text``)."""
    tree: dict[str, Any] = msgspec.to_builtins(report)
    tree["tool"] = f"rundoctor {__version__}"
    tree["exit_code"] = exit_code
    tree["environment"] = environment_line(snapshot)
    tree["machine"] = machine_line(snapshot)
    if snapshot.facts.deep.value is not None:
        tree["deep"] = msgspec.to_builtins(snapshot.facts.deep.value)
    for key in ("diagnoses", "unanswered", "unread", "passed", "not_applicable", "not_looked", "crashed"):
        tree.setdefault(key, [])
    tree.setdefault("schema", report.schema)
    _say_texts(tree)
    return _as_text(tree)


def findings_as_json(findings: list[Finding]) -> str:
    """Return findings alone as a JSON array, sentences with their ``text`` in the current language."""
    tree: list[Any] = msgspec.to_builtins(findings)
    _say_texts(tree)
    return _as_text(tree)


def record_as_json(record: object) -> str:
    """Return any record as JSON, sentences with their ``text`` in the current language."""
    tree: Any = msgspec.to_builtins(record)
    _say_texts(tree)
    return _as_text(tree)


def _as_text(tree: Any) -> str:
    try:
        raw = msgspec.json.encode(tree)
    except UnicodeEncodeError:  # half a character, from a name that is not valid UTF-8
        raw = msgspec.json.encode(_escaped(tree))
    return msgspec.json.format(raw, indent=1).decode()


def _escaped(node: Any) -> Any:
    if isinstance(node, str):
        return printable(node)
    if isinstance(node, dict):
        return {_escaped(key): _escaped(value) for key, value in node.items()}
    return [_escaped(item) for item in node] if isinstance(node, (list, tuple)) else node


def _say_texts(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("msgid"), str):
            from runner.text import Text

            node["text"] = printable_text(say(Text(node["msgid"], node.get("params", {}))))
            return
        for value in node.values():
            _say_texts(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            _say_texts(value)


def as_sarif(report: Report) -> str:
    """Return SARIF 2.1.0: one result a finding; findings of a machine have no file, so the location is logical."""
    findings = report.findings()
    rules = [{"id": finding_id} for finding_id in dict.fromkeys(item.id for item in findings)]
    driver = {"name": "rundoctor", "version": __version__, "rules": rules}
    results = [
        {
            "ruleId": item.id,
            "level": _SARIF_LEVELS[item.level],
            "message": {"text": _sentence(item)},
            "locations": [{"logicalLocations": [{"name": item.subject or item.id, "kind": "resource"}]}],
            "properties": {"evidence": {row.fact: row.value for row in item.evidence}},
        }
        for item in findings
    ]
    notifications = [
        {"level": "warning", "message": {"text": f"{item.section}: {say(item.why)}"}}
        for item in (*report.unanswered, *report.unread)
    ]
    run = {
        "tool": {"driver": driver},
        "results": results,
        "invocations": [
            {"executionSuccessful": not report.crashed, "toolExecutionNotifications": notifications}
        ],
    }
    tree = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return _as_text(tree)


def _sentence(item: Finding) -> str:
    words = say(item.title) + (" " + say(item.advice) if item.advice else "")
    return printable_text(words)


# xml.sax.saxutils has these two, and imports an HTTP client for something else: a tenth of `doctor check`.
def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoteattr(text: str) -> str:
    """Return ``text`` as a quoted XML attribute value."""
    named = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;", '"': "&quot;"}
    lines = "\n".join(
        printable(line) for line in escape(text).splitlines()
    )  # XML has no word for other controls
    return '"' + "".join(named.get(character, character) for character in lines) + '"'


def as_junit(report: Report) -> str:
    """Return JUnit XML: passed checks pass, fail and warn findings fail, what could not look is an error."""
    cases = [f'  <testcase classname="doctor" name={quoteattr(name)}/>' for name in report.passed]
    failures = 0
    for item in report.findings():
        name = quoteattr(f"{item.id} {item.subject}".strip())
        if item.level in ("fail", "warn"):
            failures += 1
            body = f'<failure type="{item.level}" message={quoteattr(printable_text(say(item.title)))}>{escape(_sentence(item))}</failure>'
        else:
            body = f"<system-out>{escape(_sentence(item))}</system-out>"
        cases.append(f'  <testcase classname="doctor" name={name}>{body}</testcase>')
    errors = 0
    for unanswered in report.unanswered:
        for check in unanswered.checks:
            errors += 1
            message = quoteattr(f"{unanswered.section}: {say(unanswered.why)}")
            cases.append(
                f'  <testcase classname="doctor" name={quoteattr(check)}><error message={message}/></testcase>'
            )
    head = f'<testsuite name="doctor check" tests="{len(cases)}" failures="{failures}" errors="{errors}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def as_markdown(report: Report, snapshot: Snapshot) -> str:
    """Return Markdown to paste into a bug report. Pass a redacted snapshot: it is meant to leave this machine."""
    lines = [
        f"**rundoctor {__version__}**",
        "",
        f"- {markdown_code(environment_line(snapshot))}",
        f"- {markdown_code(machine_line(snapshot))}",
        "",
    ]
    for diagnosis in report.diagnoses:
        for item in (diagnosis.finding, *diagnosis.symptoms):
            lead = "  -" if item is not diagnosis.finding else "-"
            lines.append(
                f"{lead} **{level_word(item.level)}** {markdown_text(say(item.title))} (`{item.id}`)"
            )
            lines += [
                f"{lead.replace('-', ' ')} - `{row.fact}` = `{_tick(row.value)}`" for row in item.evidence
            ]
    lines += [
        f"- **{level_word('unknown')}** {item.section}: {markdown_text(say(item.why))}"
        for item in (*report.unanswered, *report.unread)
    ]
    lines += ["", f"{len(report.passed)} checks passed."]
    return "\n".join(lines)


def markdown_text(text: str) -> str:
    return (
        printable_text(text).replace("\n", " ").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    )


def _tick(text: str) -> str:
    return printable_text(text).replace("`", "'").replace("\n", " ")


def markdown_code(text: str) -> str:
    return f"`{_tick(text)}`"
