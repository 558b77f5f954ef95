"""What a comparison of two runs says, part by part: the same for the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doctor.language import say
from doctor.proofs import stage_words
from doctor.render.layout import human_seconds
from doctor.render.page_parts import Rows
from doctor.render.run_page_rows import curves_of
from doctor.render.run_text import figure, status_word
from doctor.render.snapshot_compare import verdict_words
from doctor.render.weighed_text import weighed_lines
from runner.events import number
from runner.state import Curve
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.comparison import Comparison, Pair

ENVIRONMENT_ROWS = 60
NARROWEST = 10
"""No column is cut to less."""


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
    yield from proof_remarks(found)
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


def proof_remarks(found: Comparison) -> Iterator[str]:
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


def colours_of(found: Comparison, curves: list[tuple[str, Curve]]) -> list[int]:
    """Return a colour a curve: A's have the even ones in every chart, B's the odd ones."""
    counts = [0, 1]
    chosen = []
    for name, _ in curves:
        run = 0 if name == names(found)[0] or name.startswith(f"{names(found)[0]}: ") else 1
        chosen.append(counts[run])
        counts[run] += 2
    return chosen
