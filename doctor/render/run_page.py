"""A run as a page: HTML that needs no network, Markdown to paste, JSON for other tools."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from doctor.language import current_language, say
from doctor.proofs import level_words
from doctor.redact_secrets import without_secrets
from doctor.render.curve_svg import curve_svg
from doctor.render.headline import environment_line, machine_line
from doctor.render.layout import human_bytes, human_seconds
from doctor.render.memory_words import memory_words
from doctor.render.page_parts import STYLE, Rows, cell, html_table, markdown_table
from doctor.render.run_text import event_words, figure, frame_line, host_line, status_word, words_of
from doctor.render.verdict_text import verdict_rows
from runner.command_plan import CommandPlan
from runner.events import RunEvent, finite_or_name, number
from runner.state import Curve, state_as_dict
from runner.strings import printable
from runner.text import t
from runner.verdict import is_worth_saying, verdict_of

if TYPE_CHECKING:
    from doctor.run_page import Page


# -- the parts, said -------------------------------------------------------------------------------------------
def summary_rows(page: Page) -> Rows:
    """Return what a reader asks first: how it ended, how far, how good, how long."""
    state = page.state
    seconds = number(state.finished.get("seconds"))
    if seconds is None and state.first_t is not None and state.last_t is not None:
        seconds = state.last_t - state.first_t
    rows = [
        *command_rows(page),
        [say("status"), status_word(page.status)],
        [say("steps"), f"{state.step} / {state.steps_total or '?'}"],
        [say("time"), human_seconds(seconds)],
    ]
    metrics = state.finished.get("metrics") or {}
    rows += [[printable(str(name)), figure(number(value))] for name, value in metrics.items()]
    if state.padding_share() is not None:
        rows.append([say("padding"), f"{100 * (state.padding_share() or 0):.1f} %"])
    if told := memory_words(state.memory, words_of(state.memory.get("why"))):
        rows.append([say("memory of the first steps"), told])
    if state.non_finite_losses:
        rows.append([say("losses that were not finite"), str(state.non_finite_losses)])
    if state.finished.get("error"):
        rows.append([say("error"), words_of(state.finished["error"])])
    return [*rows, *proof_rows(page)]


def proof_rows(page: Page) -> Rows:
    """Return what was proved of the run's reproducibility, with the hash."""
    if page.proof is None:
        return []
    words = say(level_words(page.proof.level))
    return [[say("proof"), say(t("{words} ({steps} {steps:step|steps})", words=words, steps=page.proof.steps))],
            ["", f"sha256:{page.proof.sha256}"]]  # fmt: skip


def command_rows(page: Page) -> Rows:
    """Return what was started, where it was a command of the user's own; what in it looks like a key is hidden."""
    if not isinstance(page.plan, CommandPlan):
        return []
    rows = [[say("command"), printable(without_secrets(page.plan.command))], [say("folder"), page.plan.cwd]]
    attempt = number(page.state.started.get("attempt"))
    if attempt:
        rows.append([say("started again"), f"{attempt:g} / {page.plan.retries}"])
    return rows


def curves_of(page: Page) -> list[tuple[str, list[tuple[str, Curve]]]]:
    """Return the charts: a title and the curves in it; empty ones left out."""
    state = page.state
    charts = [
        (say("loss"), [(say("training"), state.loss), (say("evaluation"), state.eval_loss)]),
        *((printable(name), [(printable(name), curve)]) for name, curve in state.metrics.items()),
        (say("learning rate"), [("lr", state.lr)]),
        (say("gradient norm"), [(say("gradient norm"), state.grad_norm)]),
        (say("samples/s"), [(say("samples/s"), state.samples_per_s)]),
    ]
    kept = [(title, [(name, curve) for name, curve in curves if len(curve)]) for title, curves in charts]
    return [(title, curves) for title, curves in kept if curves]


def split_rows(page: Page) -> Rows:
    """Return where the steps' time went, by the trainer's own clock."""
    total = sum(page.state.split_seconds.values())
    return [
        [printable(name), human_seconds(seconds), f"{100 * seconds / total:.1f} %"]
        for name, seconds in page.state.split_seconds.items()
        if total > 0
    ]


def evaluation_rows(events: list[RunEvent]) -> Rows:
    return [[str(event.step or 0), event_words(event)] for event in events]


def decision_rows(page: Page) -> Rows:
    if page.plan is None:
        return [["plan.json", "", say(page.unread["plan.json"])]]
    return [[item.name, printable(str(item.value)), say(item.why)] for item in page.plan.decisions]


def environment_lines(page: Page) -> list[str]:
    if page.snapshot is None:
        return [f"snapshot.json: {say(page.unread['snapshot.json'])}"]
    return [environment_line(page.snapshot), machine_line(page.snapshot)]


def event_rows(page: Page) -> Rows:
    events = sorted([*page.state.notes, *page.state.checkpoints], key=lambda event: event.t)
    return [
        [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(event.t)), event_words(event)] for event in events
    ]


def sections(page: Page) -> Iterator[tuple[str, list[str], Rows]]:
    """Yield (title, column names, rows) of every table; no rows, no table."""
    yield say("Evaluations"), [say("step"), say("result")], evaluation_rows(page.state.evaluations)
    verdict = verdict_of(page.state, page.status, page.now)
    if is_worth_saying(verdict, page.status, page.state.step):
        yield say("Verdict"), ["", ""], verdict_rows(verdict)
    yield say("Where the steps' time went"), [say("part"), say("time"), say("share")], split_rows(page)
    yield say("Decisions"), [say("choice"), say("value"), say("why")], decision_rows(page)
    yield say("Events"), [say("time (UTC)"), say("what")], event_rows(page)
    yield (
        say("Hottest functions (self, with callees)"),
        [""],
        [[frame_line(frame).strip()] for frame in page.frames],
    )


# -- forms -----------------------------------------------------------------------------------------------------
def as_json(page: Page) -> str:
    tree: dict[str, Any] = {
        "run": page.name,
        "state": state_as_dict(page.state, page.now) | {"status": page.status},
        "evaluations": [{"step": event.step, **event.data} for event in page.state.evaluations],
        "curves": {
            title: {name: {"step": curve.steps, "value": curve.values} for name, curve in curves}
            for title, curves in curves_of(page)
        },
        "decisions": decision_rows(page),
        "digest": page.plan.digest if page.plan else None,
        "proof": {"sha256": page.proof.sha256, "level": page.proof.level, "steps": page.proof.steps}
        if page.proof
        else None,
        "unread": {name: say(why) for name, why in page.unread.items()},
    }
    return json.dumps(finite_or_name(tree), indent=1) + "\n"


def as_markdown(page: Page) -> str:
    lines = [f"# {cell(printable(page.name))}", "", *markdown_table(["", ""], summary_rows(page))]
    lines += ["", *(f"- {cell(line)}" for line in environment_lines(page))]
    for title, head, rows in sections(page):
        if rows:
            lines += ["", f"## {title}", "", *markdown_table(head, rows)]
    return "\n".join(lines) + "\n"


def as_html(page: Page) -> str:
    """Return one file: style and curves inside, nothing fetched, every name escaped."""
    name = escape(printable(page.name))
    parts = [
        f'<!doctype html><html lang="{"zh-CN" if current_language() == "zh" else "en"}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{name}</title><style>{STYLE}</style></head><body><h1>{name}</h1>",
        *(f"<p><small>{escape(line)}</small></p>" for line in environment_lines(page)),
        *html_table([], summary_rows(page)),
        '<div class="charts">',
        *(
            f"<figure><figcaption>{escape(title)}</figcaption>{curve_svg(curves)}</figure>"
            for title, curves in curves_of(page)
        ),
        "</div>",
    ]
    for title, head, rows in sections(page):
        if rows:
            parts += [f"<h2>{escape(title)}</h2>", *html_table(head, rows)]
    if page.state.host:
        parts.append(f"<p><small>{escape(host_line(page.state.host))}</small></p>")
    saved = [event for event in page.state.checkpoints if event.data.get("bytes")]
    if saved:
        size = human_bytes(number(saved[-1].data["bytes"]))
        parts.append(f"<p><small>{escape(say(t('a checkpoint takes {size}', size=size)))}</small></p>")
    digest = f" · {page.plan.digest}" if page.plan else ""
    parts.append(f"<p><small>rundoctor{escape(digest)}</small></p></body></html>\n")
    return "\n".join(parts)
