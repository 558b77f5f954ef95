"""Loss with its evaluations, learning rate, and throughput as charts."""

from __future__ import annotations

from rich.text import Text as Styled

from doctor.language import say
from doctor.tui.view import RunView, Series
from doctor.tui.widgets.plot import Line, beside, chart, short_number

LOSS_SHARE = 0.58
"""Part of the height that the loss gets."""


def curve_rows(view: RunView, width: int, height: int, is_log: bool = False) -> list[Styled]:
    """Return ``height`` rows: the loss above, learning rate and throughput side by side under it."""
    upper = height if height < 12 else round(height * LOSS_SHARE)
    rows = _loss(view, width, upper, is_log)
    lower = height - upper
    if lower < 4:
        return rows
    left_width = (width - 1) // 2
    left = _small(say("learning rate"), view.lr, left_width, lower)
    return rows + beside(left, _throughput(view, width - left_width - 1, lower), left_width)


def _loss(view: RunView, width: int, height: int, is_log: bool) -> list[Styled]:
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


def _small(name: str, series: Series, width: int, height: int) -> list[Styled]:
    title = Styled(name, "bold")
    if series.values:
        title.append(f" {short_number(series.values[-1])}", "")
    return chart(
        [Line(series.steps, series.values, "joined", "green")], width, height, title, empty=say("nothing yet")
    )


def _throughput(view: RunView, width: int, height: int) -> list[Styled]:
    if view.tokens_per_s.values:
        return _small(say("tokens/s"), view.tokens_per_s, width, height)
    return _small(say("samples/s"), view.samples_per_s, width, height)
