"""The rows above a run's panes: what it is, how far it is, the newest numbers, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, human_seconds, indent
from doctor.render.on_finish_text import on_finish_lines
from doctor.render.preparing_text import preparing_text
from doctor.render.verdict_text import alert_lines, evidence_lines, verdict_line
from doctor.tui.view import RunView
from doctor.tui.widgets.plot import short_number
from doctor.tui.words import STATUS_STYLES, error_of, one_line, status_label, words_of
from runner.events import number
from runner.strings import printable
from runner.text import t

_LEAST_BAR = 4 + len(" 100%  ")
WIDE_COLUMNS = 120
"""From this width on there is room for what the verdict rests on."""


def head_rows(view: RunView, width: int) -> list[Styled]:
    """Return the head: what and how far, the newest numbers, and a row for what needs attention."""
    attention = next(_attentions(view), None)
    return [
        _identity(view, width),
        *_verdict(view, width),
        _progress(view, width),
        *_numbers(view, width),
        *_wrapped(attention, width),
        *_on_finish(view, width),
    ]


def _wrapped(row: Styled | None, width: int) -> list[Styled]:
    """Return a sentence in at most three rows: an error's first line can be long."""
    if row is None:
        return []
    return [Styled(line, row.style) for line in indent(row.plain, width, "", "  ")[:3]]


def _on_finish(view: RunView, width: int) -> list[Styled]:
    """Return what is done at the end, and how to keep it from being done: it may be that the machine is switched off."""
    lines = on_finish_lines(view.on_finish, view.now, width)
    return [Styled(line, "bold yellow" if lines[0].startswith("!") else "") for line in lines]


def _verdict(view: RunView, width: int) -> list[Styled]:
    """Return where the time goes in three rows at most; a wide screen adds what was seen."""
    if view.verdict is None:
        return []
    style = "bold" if view.verdict.is_known else "dim"
    lines = indent(verdict_line(view.verdict), width, "> ", "  ")
    if len(lines) > 3:
        lines = [*lines[:2], lines[2] + " …"]
    rows = [Styled(line, style) for line in lines]
    if width >= WIDE_COLUMNS and view.verdict.is_known:
        seen = " · ".join(evidence_lines(view.verdict))
        rows += [Styled(line, "dim") for line in indent(seen, width, "  ", "  ")[:1]]
    return rows


def _identity(view: RunView, width: int) -> Styled:
    row = Styled.assemble((printable(view.name), "bold"), "  ")
    row.append(status_label(view.status), STATUS_STYLES.get(view.status, "bold"))
    gap = "  "
    for fact in _facts(view):
        words = "" if fact is None else printable(str(fact))
        if words and row.cell_len + len(gap) + display_width(words) <= width:
            row.append(gap + words, "dim")
            gap = " · "
    return row


def _facts(view: RunView) -> list[object]:
    count = len(view.ranks.get("ranks") or ())
    ranks = say(t("{count} {count:rank|ranks}", count=count)) if count > 1 else None
    *what, hostname = (view.started.get(key) for key in ("model", "device", "precision", "hostname"))
    return [*what, ranks, hostname]


def _progress(view: RunView, width: int) -> Styled:
    if not view.step and (waiting := _waiting(view)):
        return Styled(waiting, "dim")
    parts = [say(t("step {step}/{total}", step=view.step, total=view.steps_total or "?"))]
    epoch = _epoch(view)
    if epoch:
        parts.append(say(t("epoch {epoch}", epoch=epoch)))
    if view.eta_s is not None:
        parts.append(say(t("{time} left", time=human_seconds(view.eta_s))))
    if view.elapsed_s is not None:
        parts.append(say(t("{time} elapsed", time=human_seconds(view.elapsed_s))))
    share = min(1.0, view.step / view.steps_total) if view.steps_total else None
    while len(parts) > 1 and display_width(" · ".join(parts)) + (0 if share is None else _LEAST_BAR) > width:
        del parts[-1 if len(parts) == 2 else 1]  # first the epoch: step and time left matter most
    words = " · ".join(parts)
    if share is None:
        return Styled(words)
    cells = max(4, min(40, width // 5, width - display_width(words) - len(" 100%  ")))
    full = int(share * cells)
    return Styled.assemble(("█" * full, "green"), ("░" * (cells - full), "dim"), f" {share:>4.0%}  {words}")


def _waiting(view: RunView) -> str:
    """Return what there is to see before the first step; empty: its progress."""
    if told := preparing_text(view.preparing):
        return told
    if view.status == "starting" and view.started:
        return say("starting: loading model and data")
    if not view.started:
        return (
            say("no events of it could be read")
            if view.damage
            else say("no events yet: the run has just begun")
        )
    return ""


def _epoch(view: RunView) -> str:
    """Return the epoch under way counted from 1 (``2/3``), or as the trainer gives it where that is a share."""
    epoch, epochs = view.last.get("epoch"), view.started.get("epochs")
    if isinstance(epoch, int) and isinstance(epochs, int):
        return f"{min(epoch + 1, epochs)}/{epochs}"
    value = number(epoch)
    return "" if value is None else f"{value:.2f}"


def _numbers(view: RunView, width: int) -> Iterator[Styled]:
    parts: list[tuple[str, str]] = []
    loss = number(view.last.get("loss"))
    if loss is not None:
        parts.append((say("loss"), short_number(loss)))
    if view.lr.values:
        parts.append((say("learning rate"), short_number(view.lr.values[-1])))
    for label, name, series in (
        (say("tokens/s"), "tokens_per_s", view.tokens_per_s),
        (say("samples/s"), "samples_per_s", view.samples_per_s),
    ):
        rate = number(view.ranks.get(name)) if view.ranks else series.values[-1] if series.values else None
        if rate is not None:  # of all ranks together; not told by one of them: none
            parts.append((label, short_number(rate)))
    if view.seconds_a_step is not None and not view.samples_per_s.values:
        parts.append((say("seconds a step"), short_number(view.seconds_a_step)))
    grad_norm = number(view.last.get("grad_norm"))
    if grad_norm is not None:
        parts.append((say("grad norm"), short_number(grad_norm)))
    if view.mfu is not None:
        parts.append(("MFU", f"{view.mfu:.1%}"))
    if view.padding_share is not None:
        parts.append((say("padding"), f"{view.padding_share:.0%}"))
    parts += [(printable(name), short_number(value)) for name, value in view.metrics.items()]
    row = Styled()
    for label, value in parts:
        piece = Styled.assemble((f"{label} ", "dim"), (value, "bold"), "  ")
        if row.cell_len and row.cell_len + piece.cell_len > width + 2:
            yield row
            row = Styled()
        row += piece
    if row.cell_len:
        yield row


def _attentions(view: RunView) -> Iterator[Styled]:
    """Yield what needs attention, worst first."""
    error = error_of(view.finished)
    if error:
        yield Styled(f"✗ {error}", "bold red")
    for text in view.damage:
        yield Styled("✗ " + words_of(text), "bold red")
    if view.status == "lost":
        yield Styled(
            "? " + say("the trainer's process is gone and left no word; its log may say why"), "bold magenta"
        )
    if view.status == "stalled":
        quiet = human_seconds(view.silent_s)
        yield Styled(
            "! " + say(t("nothing written for {time}; the stacks show where it is", time=quiet)),
            "bold yellow",
        )
    if view.non_finite_losses:
        yield Styled(
            "✗ " + say(t("{count} {count:loss was|losses were} not finite", count=view.non_finite_losses)),
            "bold red",
        )
    outcome = _outcome(view)
    if outcome:
        yield outcome
    for alert in view.alerts:
        if alert.kind != "non-finite":  # counted above
            yield Styled(
                f"! {alert_lines([alert])[0]}", "bold red" if alert.level == "fail" else "bold yellow"
            )
    for entry in reversed(view.log):
        if entry.kind == "note" and entry.data.get("level") in ("warn", "fail"):
            yield Styled(f"! {one_line(entry.data.get('text'))}", "yellow")


def _outcome(view: RunView) -> Styled:
    """Return what came of it: the figures that are not among the newest numbers, and where the model is."""
    metrics = view.finished.get("metrics")
    pairs = metrics.items() if isinstance(metrics, dict) else ()
    parts = [
        f"{printable(str(key))} {short_number(value)}"
        for key, raw in pairs
        if (value := number(raw)) is not None and value != view.metrics.get(str(key))
    ]
    final = view.finished.get("final_dir")
    parts += [say(t("model in {place}", place=printable(str(final))))] if final else []
    return Styled(" · ".join(parts))


def pane_names() -> Sequence[tuple[str, str]]:
    """Return id and name of each pane in the order of the tabs."""
    return (
        ("curves", say("Curves")),
        ("machine", say("GPU and host")),
        ("stacks", say("Stacks")),
        ("log", say("Events")),
    )
