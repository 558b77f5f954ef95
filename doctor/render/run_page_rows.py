"""What a run's page says, part by part, as rows of words: the same for HTML, Markdown and JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doctor.language import say
from doctor.proofs import level_words
from doctor.redact_secrets import without_secrets
from doctor.render.headline import environment_line, machine_line
from doctor.render.layout import human_bytes, human_seconds
from doctor.render.memory_words import memory_words
from doctor.render.metric_names import metric_name
from doctor.render.page_parts import Rows
from doctor.render.rank_text import RANKS_SHOWN, attention_lines, more_ranks, rank_words, together_line
from doctor.render.run_text import event_words, figure, frame_line, host_line, status_word, words_of
from doctor.render.sparkline import sparkline
from doctor.render.verdict_text import verdict_rows
from runner.command_plan import CommandPlan
from runner.events import RunEvent, number, rows
from runner.part_names import part_name
from runner.state import Curve, RunState
from runner.strings import printable
from runner.text import t
from runner.verdict import is_worth_saying, verdict_of

if TYPE_CHECKING:
    from doctor.run_page import Page

FIRST_ROWS, LAST_ROWS = 20, 180
"""Of a long table: a run of a million steps may have evaluated ten thousand times."""
SPARK_COLUMNS = 40
COLUMNS = 8
"""Of metrics in the table of evaluations; the charts show all."""


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
    if len(state.loss):
        rows.append(
            [say("training loss"), f"{figure(state.loss.values[0])} → {figure(state.loss.values[-1])}"]
        )
    rows += [[metric_name(name), figure(number(value))] for name, value in last_metrics(state).items()]
    if state.padding_share() is not None:
        rows.append([say("padding"), f"{100 * (state.padding_share() or 0):.1f} %"])
    if told := memory_words(state.memory, words_of(state.memory.get("why"))):
        rows.append([say("memory of the first steps"), told])
    if state.non_finite_losses:
        rows.append([say("losses that were not finite"), str(state.non_finite_losses)])
    if error := state.finished.get("error_text") or state.finished.get("error"):
        rows.append([say("error"), words_of(error)])
    return [*rows, *proof_rows(page)]


def last_metrics(state: RunState) -> dict[str, Any]:
    """Return the metrics at the end: as the run's last word has them, else those of its newest evaluation."""
    told = state.finished.get("metrics")
    if isinstance(told, dict) and told:
        return told
    newest = state.evaluations[-1].data if state.evaluations else {}
    return {name: value for name, value in newest.items() if name not in ("samples", "seconds", "best")}


def curve_rows(page: Page) -> Rows:
    """Return each curve in figures and as one line of text: what the charts show, where none can be drawn."""
    return [
        [title if len(curves) == 1 else f"{title}: {name}", *map(figure, (curve.values[0], curve.values[-1], *_range(curve))),
         sparkline(curve.values, SPARK_COLUMNS, True)]
        for title, curves in curves_of(page)
        for name, curve in curves
    ]  # fmt: skip


def _range(curve: Curve) -> tuple[float | None, float | None]:
    finite = [value for value in curve.values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (None, None)


def rank_rows(page: Page) -> Rows:
    """Return all ranks together, who is waited for, and a row a rank; none where one process trained."""
    told = page.state.ranks.as_dict(page.state.started)
    if told is None:
        return []
    ranks = [[str(row["rank"]), rank_words(row)] for row in rows(told.get("ranks"))[:RANKS_SHOWN]]
    more = [["", line] for line in more_ranks(told)]
    return [["", together_line(told)], *(["", line] for line in attention_lines(told)), *ranks, *more]


def small_rows(page: Page) -> Rows:
    """Return what stands at the foot of the page."""
    rows = [[say("host"), host_line(page.state.host)]] if page.state.host else []
    saved = [event for event in page.state.checkpoints if event.data.get("bytes")]
    if saved:
        rows.append([say("a checkpoint takes"), human_bytes(number(saved[-1].data["bytes"]))])
    if page.plan:
        rows.append([say("digest of the plan"), page.plan.digest])
    return rows


def bounded(rows: Rows) -> Rows:
    """Return the first and the last rows of a long table, with how many stand between them."""
    left_out = len(rows) - FIRST_ROWS - LAST_ROWS
    if left_out <= 0:
        return rows
    words = say(t("... {count} more, all in the folder events of the run", count=left_out))
    return [*rows[:FIRST_ROWS], [words, *[""] * (len(rows[0]) - 1)], *rows[-LAST_ROWS:]]


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
        [say(printable(part_name(name))), human_seconds(seconds), f"{100 * seconds / total:.1f} %"]
        for name, seconds in page.state.split_seconds.items()
        if total > 0
    ]


def evaluation_table(events: list[RunEvent]) -> tuple[list[str], Rows]:
    """Return the column names and a row an evaluation: its step, its metrics by name, over how many rows."""
    names = list(
        dict.fromkeys(name for event in events for name in event.data if name not in ("seconds", "best"))
    )
    names = [name for name in names if any(number(event.data.get(name)) is not None for event in events)][
        :COLUMNS
    ]
    head = [say("step"), *(say("rows") if name == "samples" else metric_name(name) for name in names)]
    rows = [
        [str(event.step or 0), *(_cell(name, number(event.data.get(name))) for name in names)]
        for event in events
    ]
    return head, rows


def _cell(name: str, value: float | None) -> str:
    return f"{value:.0f}" if name == "samples" and value is not None else figure(value)


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
    head, rows = evaluation_table(page.state.evaluations)
    yield say("Evaluations"), head, bounded(rows)
    verdict = verdict_of(page.state, page.status, page.now)
    if is_worth_saying(verdict, page.status, page.state.step):
        yield say("Verdict"), ["", ""], verdict_rows(verdict)
    yield say("Where the steps' time went"), [say("part"), say("time"), say("share")], split_rows(page)
    yield say("Processes"), [say("rank"), ""], rank_rows(page)
    yield say("Decisions"), [say("choice"), say("value"), say("why")], decision_rows(page)
    yield say("Events"), [say("time (UTC)"), say("what")], bounded(event_rows(page))
    yield (
        say("Hottest functions (self, with callees)"),
        [""],
        [[frame_line(frame).strip()] for frame in page.frames],
    )
    yield say("The rest"), ["", ""], small_rows(page)
