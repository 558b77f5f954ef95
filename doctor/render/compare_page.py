"""Two runs side by side: text for the terminal, Markdown to paste, HTML that needs no network, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from doctor.language import current_language, say
from doctor.proofs import stage_words
from doctor.render.curve_svg import chart
from doctor.render.layout import display_width, human_seconds, pad
from doctor.render.page_parts import STYLE, Rows, cell, html_table, markdown_table
from doctor.render.run_page_rows import curves_of
from doctor.render.run_text import cut, figure, status_word
from doctor.render.snapshot_compare import verdict_words
from doctor.render.sparkline import sparkline
from doctor.render.weighed_text import weighed_lines
from runner.events import finite_or_name, number
from runner.state import Curve
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.comparison import Comparison, Pair

ENVIRONMENT_ROWS = 60
NARROWEST = 10
"""No column is cut to less."""


# -- the parts, said ---------------------------------------------------------------------------------------------
def names(found: Comparison) -> tuple[str, str]:
    """Return both runs' names; of two with one name, A and B."""
    one, other = printable(found.a.name), printable(found.b.name)
    return (one, other) if one != other else (f"{one} (A)", f"{other} (B)")


def result_rows(found: Comparison) -> Rows:
    """Return status and figures of both, and B minus A; what neither said is left out."""
    rows = [[say("status"), status_word(found.a.status), status_word(found.b.status), ""]]
    for pair in found.results:
        if pair.a is not None or pair.b is not None:
            rows.append([_result_name(pair.name), _value(pair, pair.a), _value(pair, pair.b), _change(pair)])
    return rows


def _result_name(name: str) -> str:
    return {
        "steps": say("steps"),
        "seconds": say("time"),
        "loss": say("loss"),
        "eval_loss": say("evaluation loss"),
        "samples_per_s": say("samples/s"),
        "tokens_per_s": say("tokens/s"),
        "padding_share": say("padding"),
        "non_finite_losses": say("losses that were not finite"),
    }.get(name, printable(name))


def _value(pair: Pair, value: Any) -> str:
    amount = number(value)
    if pair.name == "seconds":
        return human_seconds(amount)
    return str(value) if isinstance(value, int) else figure(amount)


def _change(pair: Pair) -> str:
    """Return B minus A, of a rate or a time in percent."""
    if pair.change is None or pair.change == 0:
        return "=" if pair.change == 0 else ""
    if pair.name in ("seconds", "samples_per_s", "tokens_per_s") and pair.a:
        return f"{100 * pair.change / pair.a:+.1f} %"
    return f"{pair.change:+.4g}"


def setting_rows(found: Comparison) -> Rows:
    return [[printable(pair.name), _setting(pair.a), _setting(pair.b)] for pair in found.settings]


def _setting(value: Any) -> str:
    return "-" if value is None else printable(str(value))


def environment_rows(found: Comparison) -> Rows:
    """Return the differences by what they mean for the numbers, worst first."""
    if found.environment is None:
        return []
    return [
        [printable(one.subject), printable(one.a) or "-", printable(one.b) or "-", verdict_words(one.verdict)]
        for one in found.environment.differences[:ENVIRONMENT_ROWS]
    ]


def remarks(found: Comparison) -> Iterator[str]:
    """Yield what a table cannot say: equal beginnings, proofs, and what could not be compared."""
    if found.same_loss_until is not None:
        yield say(t("Both recorded the same losses up to step {step}.", step=f"{found.same_loss_until:g}"))
    yield from weighed_lines(found.weighed, names(found))
    yield from _proof_remarks(found)
    if not found.settings and not found.settings_why and not found.script_changes:
        yield say("They were told the same: no setting differs.")
    for run, why in found.settings_why:
        yield say(t("Settings not compared: {run}: {why}", run=printable(run), why=say(why)))
    for run, why in found.environment_why:
        yield say(t("Environments not compared: {run}: {why}", run=printable(run), why=say(why)))
    if found.environment is not None:
        if not found.environment.differences:
            yield say(t("Environment: {count} {count:package is|packages are} of the same version, and no difference was found.",
                        count=found.environment.packages_equal))  # fmt: skip
        rest = len(found.environment.differences) - ENVIRONMENT_ROWS
        if rest > 0:
            yield say(t("and {count} more: --json lists them all", count=rest))
        for gap in found.environment.not_compared:
            yield say(t("Not compared: {section}: {why}", section=gap.section, why=say(gap.why)))


def _proof_remarks(found: Comparison) -> Iterator[str]:
    if found.proof_steps is None:
        return
    one, other = found.proof_steps
    if one != other:
        yield say(t("Their proofs are of {a} and {b} steps: not to be compared.", a=one, b=other))
    elif found.proof_parting is None:
        yield say(t("Their proofs agree: the same bits over {steps} {steps:step|steps}.", steps=one))
    else:
        stage, step = say(stage_words(found.proof_parting.stage)), found.proof_parting.window + 1
        yield say(t("Their proofs part in step {step}, in {stage}.", step=step, stage=stage))


def sections(found: Comparison) -> Iterator[tuple[str, list[str], Rows]]:
    """Yield (title, column names, rows) of every table; no rows, no table."""
    one, other = names(found)
    yield say("Results"), ["", one, other, say("change")], result_rows(found)
    yield say("Settings that differ"), [say("setting"), one, other], setting_rows(found)
    yield say("Changes in the script"), [""], [[printable(line)] for line in found.script_changes]
    yield say("Environment"), [say("what"), one, other, say("for the numbers")], environment_rows(found)


def charts(found: Comparison) -> list[tuple[str, list[tuple[str, Curve]]]]:
    """Return the charts of both runs laid over each other, by title."""
    merged: dict[str, list[tuple[str, Curve]]] = {}
    for name, page in zip(names(found), (found.a, found.b), strict=True):
        for title, curves in curves_of(page):
            labels = [name if len(curves) == 1 else f"{name}: {label}" for label, _ in curves]
            merged.setdefault(title, []).extend(zip(labels, (curve for _, curve in curves), strict=True))
    return list(merged.items())


# -- forms -------------------------------------------------------------------------------------------------------
def as_text(found: Comparison, width: int, unicode: bool) -> str:
    """Return the tables in columns, the curves as one line each, then the remarks."""
    lines: list[str] = []
    for title, head, rows in sections(found):
        if rows:
            lines += ["", title, *_columns([head, *rows], width)]
    drawn = [(title, curves) for title, curves in charts(found) if any(len(curve) > 1 for _, curve in curves)]
    for title, curves in drawn:
        lines += ["", title]
        label = min(34, max(display_width(name) for name, _ in curves))
        for name, curve in curves:
            if curve.values:
                line = sparkline(curve.values, max(10, min(60, width - label - 26)), unicode)
                lines.append(
                    f"  {pad(name, label)}  {line}  {figure(curve.values[0])} … {figure(curve.values[-1])}"
                )
    return "\n".join([*lines[1:], "", *remarks(found)]) + "\n"


def _columns(rows: Rows, width: int) -> Iterator[str]:
    """Yield rows in aligned columns; where the terminal is narrow the widest are cut."""
    widths = [max(display_width(row[index]) for row in rows) for index in range(len(rows[0]))]
    while sum(widths) + 2 * len(widths) > width and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    for row in rows:
        cells = (pad(cut(text, size), size) for text, size in zip(row, widths, strict=True))
        yield "  " + "  ".join(cells).rstrip()


def as_markdown(found: Comparison) -> str:
    one, other = names(found)
    lines = [f"# {cell(one)} / {cell(other)}"]
    for title, head, rows in sections(found):
        if rows:
            lines += ["", f"## {title}", "", *markdown_table(head, rows)]
    return "\n".join([*lines, "", *(f"- {cell(line)}" for line in remarks(found))]) + "\n"


def as_html(found: Comparison) -> str:
    """Return one file: style and curves inside, nothing fetched, every name escaped."""
    title = escape(" / ".join(names(found)))
    parts = [
        f'<!doctype html><html lang="{"zh-CN" if current_language() == "zh" else "en"}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{escape(line)}</p>" for line in remarks(found)),
        '<div class="charts">',
        *(chart(name, curves) for name, curves in charts(found)),
        "</div>",
    ]
    for heading, head, rows in sections(found):
        if rows:
            parts += [f"<h2>{escape(heading)}</h2>", *html_table(head, rows)]
    return "\n".join([*parts, "<p><small>rundoctor</small></p></body></html>"]) + "\n"


def as_json(found: Comparison) -> str:
    one, other = found.a, found.b
    tree: dict[str, Any] = {
        "a": {"run": one.name, "status": one.status, "digest": one.plan.digest if one.plan else None},
        "b": {"run": other.name, "status": other.status, "digest": other.plan.digest if other.plan else None},
        "results": {pair.name: {"a": pair.a, "b": pair.b, "change": pair.change} for pair in found.results},
        "settings": {pair.name: {"a": pair.a, "b": pair.b} for pair in found.settings},
        "settings_not_compared": {run: say(why) for run, why in found.settings_why},
        "environment": msgspec.to_builtins(found.environment) if found.environment else None,
        "environment_not_compared": {run: say(why) for run, why in found.environment_why},
        "same_loss_until": found.same_loss_until,
        "script_changes": list(found.script_changes),
        "weighed": [asdict(one) | {"is_more_than_chance": one.is_more_than_chance} for one in found.weighed],
        "proofs": list(_proof_remarks(found)),
        "curves": {
            title: {name: {"step": curve.steps, "value": curve.values} for name, curve in curves}
            for title, curves in charts(found)
        },
    }
    return json.dumps(finite_or_name(tree), indent=1) + "\n"
