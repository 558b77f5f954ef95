"""What happened, in order: start, evaluations, checkpoints, notes, end; times count from the run's start."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes, human_seconds, indent
from doctor.tui.view import RunView
from doctor.tui.view_log import Entry
from doctor.tui.widgets.plot import short_number
from doctor.tui.widgets.rows import wrapped
from doctor.tui.words import error_of, one_line, status_label
from runner.events import number
from runner.strings import printable
from runner.text import t

_TIME = 9
_STYLES = {"fail": "bold red", "warn": "yellow"}


def log_rows(view: RunView, width: int) -> list[Styled]:
    """Return what happened, oldest first; where it went wrong, the end of the trainer's log under it."""
    shows_log = view.went_wrong and bool(view.trainer_log)
    if not view.log and not shows_log:
        return [Styled(say("no events yet: the run has just begun"), "dim")]
    rows = [row for entry in view.log for row in _entry_rows(entry, width)]
    if shows_log:
        rows += [Styled(say("the end of the trainer's log:"), "bold"), *_log_lines(view, width)]
    return rows


def output_rows(view: RunView, width: int) -> list[Styled]:
    """Return the end of the trainer's log: what it and its libraries wrote to the terminal they do not have."""
    if view.is_past:
        words = say("the log's lines carry no times: End shows its newest ones")
        return [Styled(line, "dim") for line in indent(words, width, "", "")]
    head = Styled(say("the end of the trainer's log:"), "bold")
    return [head, *(_log_lines(view, width) or [Styled(say("nothing was written to it"), "dim")])]


def _log_lines(view: RunView, width: int) -> list[Styled]:
    return [row for line in view.trainer_log for row in wrapped(printable(line), width, "dim")]


def _entry_rows(entry: Entry, width: int) -> Iterator[Styled]:
    style = _STYLES.get(str(entry.data.get("level")), "") if entry.kind == "note" else ""
    first, *rest = indent(_words(entry), width, "", " " * (_TIME + 1))
    yield Styled.assemble((f"{clock(entry.at_s):>{_TIME}}", "dim"), " ", (first, style))
    yield from (Styled(line, style) for line in rest)


def clock(seconds: float | None) -> str:
    """Return time since the start: ``+01:05``, ``+2:00:05``."""
    if seconds is None:
        return ""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"+{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"+{minutes:02d}:{whole % 60:02d}"


def _words(entry: Entry) -> str:
    kinds = {
        "run-started": _started,
        "evaluation": _evaluation,
        "checkpoint": _checkpoint,
        "run-finished": _finished,
    }
    sentence = kinds[entry.kind](entry) if entry.kind in kinds else _note(entry)
    return sentence


def _note(entry: Entry) -> str:
    sign = {"fail": "✗ ", "warn": "! "}.get(str(entry.data.get("level")), "")
    return sign + one_line(entry.data.get("text"))


def _started(entry: Entry) -> str:
    resumed = entry.data.get("resumed_from_step")
    what = printable(str(entry.data.get("model") or ""))
    if resumed:
        return say(t("▶ resumed from step {step} {what}", step=str(resumed), what=what)).rstrip()
    return say(t("▶ started {what}", what=what)).rstrip()


def _evaluation(entry: Entry) -> str:
    skip = ("samples", "seconds", "best")
    values = [(key, number(raw)) for key, raw in entry.data.items() if key not in skip]
    shown = "  ".join(f"{printable(key)} {short_number(value)}" for key, value in values if value is not None)
    best = "  " + say("best so far") if entry.data.get("best") is True else ""
    return say(t("◆ evaluation at step {step}: {values}", step=str(entry.step or "?"), values=shown)) + best


def _checkpoint(entry: Entry) -> str:
    size, seconds = (
        human_bytes(number(entry.data.get("bytes"))),
        human_seconds(number(entry.data.get("seconds"))),
    )
    step, reason = str(entry.step or "?"), str(entry.data.get("reason") or "?")
    why = {
        "interval": say("every so many steps"),
        "best": say("best so far"),
        "signal": say("on request"),
        "end": say("at the end"),
    }.get(reason, printable(reason))
    return say(
        t("▪ saved at step {step}: {size} in {time} ({why})", step=step, size=size, time=seconds, why=why)
    )


def _finished(entry: Entry) -> str:
    outcome = status_label(str(entry.data.get("outcome", "completed")))
    error = error_of(entry.data)
    return f"{outcome}: {error}" if error else outcome
