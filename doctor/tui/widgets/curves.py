"""Loss with its evaluations, learning rate, and throughput as charts."""

from __future__ import annotations

from rich.text import Text as Styled

from doctor.language import say
from doctor.tui.view import RunView, Series
from doctor.tui.widgets.plot import Line, beside, chart, short_number
from runner.text import t

LOSS_SHARE = 0.58
"""Part of the height that the loss gets."""


def curve_rows(view: RunView, width: int, height: int, is_log: bool = False) -> list[Styled]:
    """Return ``height`` rows: the loss above; learning rate, gradient norm and throughput side by side under it."""
    upper = height if height < 12 else round(height * LOSS_SHARE)
    rows = loss_rows(view, width, upper, is_log)
    lower = height - upper
    if lower < 4:
        return rows
    cells = (width - 2) // 3
    left = _small(say("learning rate"), view.lr, cells, lower, is_noisy=False)
    middle = _small(say("grad norm"), view.grad_norm, cells, lower)
    right = _throughput(view, width - 2 - 2 * cells, lower)
    return rows + beside(beside(left, middle, cells), right, 2 * cells + 1)


def loss_rows(view: RunView, width: int, height: int, is_log: bool = False) -> list[Styled]:
    """Return the chart of the loss, raw and smoothed, with the evaluations."""
    title = Styled.assemble((say("loss"), "bold"), " ", (say("log scale") + " " if is_log else "", ""))
    title.append("⠂ " + say("raw") + "  ", "dim")
    title.append("⠒ " + say("smoothed") + "  ", "bold cyan")
    lines = [
        Line(view.loss.steps, view.loss.values, "dots", "dim"),
        Line(view.loss_smoothed.steps, view.loss_smoothed.values, "joined", "bold cyan"),
    ]
    if view.eval_loss.values:
        title.append(
            "◆ " + say("evaluation") + f" {short_number(view.eval_loss.values[-1])}  ", "bold yellow"
        )
        lines.append(Line(view.eval_loss.steps, view.eval_loss.values, "marks", "bold yellow"))
    if view.non_finite_losses:
        title.append("× " + say("not finite"), "bold red")
    return chart(lines, width, height, title, is_log, say("no loss yet"))


def _small(name: str, series: Series, width: int, height: int, is_noisy: bool = True) -> list[Styled]:
    title = Styled(name, "bold")
    if series.values:
        title.append(f" {short_number(series.values[-1])}", "")
    lines = [Line(series.steps, series.values, "joined", "green")]
    if is_noisy:  # a joined line of noise is a block of dots
        raw = Line(series.steps, series.values, "dots", "dim")
        lines = [raw, Line(series.steps, series.smoothed(), "joined", "green")]
    return chart(lines, width, height, title, empty=say("nothing yet"))


def _throughput(view: RunView, width: int, height: int) -> list[Styled]:
    has_tokens = bool(view.tokens_per_s.values)
    name, series = (
        (say("tokens/s"), view.tokens_per_s) if has_tokens else (say("samples/s"), view.samples_per_s)
    )
    if view.ranks:  # the curve is the first rank's: its head has the sum
        name = say(t("{name} of rank 0", name=name))
    return _small(name, series, width, height)
