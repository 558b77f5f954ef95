"""A comparison of settings as a table of 80 columns and the sentences below it."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.bench_records import Comparison, Row
from doctor.bench_stats import Interval
from doctor.bench_variants import CHANGED
from doctor.language import say
from doctor.render.bench_answer import answer_lines, percent_text
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad
from runner.strings import printable
from runner.text import Text, t

WIDTHS = (14, 7, 12, 9, 8, 7, 9, 6)
"""Name, speed, interval, samples/s, tokens/s, padding, memory, CPU; the loss takes what is left."""


def bench_lines(found: Comparison, width: int = 80) -> Iterator[str]:
    """Yield the whole answer, short enough for one screen: what to change first, the figures below."""
    yield from beginning(found, width)
    yield from _table(found)
    yield from remainder(found, width)


def beginning(found: Comparison, width: int) -> Iterator[str]:
    """Yield what was compared, and the answer."""
    yield from _command_head(found, width) if found.is_command else _head(found, width)
    yield from answer_lines(found, width)


def remainder(found: Comparison, width: int) -> Iterator[str]:
    """Yield what was not measured, and what the figures rest on."""
    yield from _not_measured(found, width)
    yield from _ending(found, width)


def _command_head(found: Comparison, width: int) -> Iterator[str]:
    if found.by_steps is None:
        yield from indent(say(t("{command}: nothing was measured to its end", command=printable(found.model))), width, "", "  ")  # fmt: skip
        return
    how = say("steps a second, as its log tells them") if found.by_steps else say("whole runs by the clock")
    yield from indent(
        say(t("{command}: {how}; each run next to one without the setting", command=printable(found.model), how=how)), width, "", "  "
    )  # fmt: skip


def _head(found: Comparison, width: int) -> Iterator[str]:
    yield from indent(
        say(t("{profile}: {model}, {steps} {steps:step|steps} of {batch} samples, at most {length} tokens, on {device}; each run a fresh "
              "process next to one of before, the usual tutorial's way: padded to max_length, fp32, plain AdamW",
              profile=printable(found.profile), model=printable(found.model), steps=found.steps, batch=found.batch_size,
              length=found.max_length, device=printable(found.device))),
        width, "", "  ",
    )  # fmt: skip


def _table(found: Comparison) -> Iterator[str]:
    measured = [row for row in found.rows if row.name != CHANGED and (row.samples_per_s is not None or row.speed is not None)]  # fmt: skip
    if not measured:
        return
    if found.is_command:
        head = [say("setting"), say("speed"), "95 %", say("memory"), say("loss")]
    else:
        head = [say("setting"), say("speed"), "95 %", say("samples/s"), say("tokens/s"), say("padded"), say("memory"), "CPU", say("loss")]  # fmt: skip
    first = (
        max(WIDTHS[0], *(display_width(row.name) + 1 for row in measured)) if found.is_command else WIDTHS[0]
    )
    for line in [head, *map(cells, measured)]:
        yield _line(line, first)


def _line(cells: list[str], first_width: int) -> str:
    first, *rest = cells
    last = cells[len(WIDTHS)] if len(cells) > len(WIDTHS) else ""
    parts = [pad(first, first_width)]
    for text, width in zip(rest, WIDTHS[1:], strict=False):
        parts.append(" " * max(1, width - display_width(text)) + text)
    return ("".join(parts) + " " + last).rstrip()


def cells(row: Row) -> list[str]:
    """Return a measured row's cells, as text."""
    speed, interval = ("x1", "") if row.speed is None else (f"x{row.speed.ratio:.2f}", interval_text(row.speed))  # fmt: skip
    if row.samples_per_s is None:
        return [
            row.name,
            speed,
            interval,
            "" if row.memory_ratio is None else f"x{row.memory_ratio:.2f}",
            loss_text(row),
        ]
    return [
        row.name, speed, interval, f"{row.samples_per_s:.3g}", f"{row.tokens_per_s:.0f}", f"{row.padding_share:.0%}",
        human_bytes(row.peak_bytes), "x1" if row.cpu is None else f"x{row.cpu.ratio:.2f}", loss_text(row),
    ]  # fmt: skip


def interval_text(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return "-"
    return f"{interval.low:.2f}-{interval.high:.2f}"


def loss_text(row: Row) -> str:
    if row.loss == "not compared":
        return ""
    if row.loss == "equal":
        return say("equal")
    if row.loss == "other rows":
        return say("other rows")
    difference = percent_text(row).replace(" ", "")
    return difference if row.loss == "rounding" else f"{difference} !"


def _not_measured(found: Comparison, width: int) -> Iterator[str]:
    """Yield what was skipped, what failed, and why; those of one reason together."""
    names: dict[str, list[str]] = {}
    for row in found.rows:
        if row.verdict == "skipped":
            names.setdefault(say(row.why or t("not reached")), []).append(row.name)
    for why, skipped in names.items():
        yield from indent(say(t("{name}: skipped: {why}", name=", ".join(skipped), why=why)), width, "- ", "  ")  # fmt: skip
    for row in found.rows:
        if row.verdict == "failed":
            yield from indent(say(t("{name}: failed: {why}", name=row.name, why=say(row.why or ""))), width, "- ", "  ")  # fmt: skip
        elif row.verdict != "skipped" and row.why is not None and not found.is_command:
            yield from indent(say(t("{name}: failed after {runs} {runs:run|runs}: {why}", name=row.name, runs=row.runs, why=say(row.why))), width, "- ", "  ")  # fmt: skip


def meanings(found: Comparison) -> Iterator[str]:
    """Yield what each name stands for."""
    for row in found.rows:
        yield say(t("{name}: {title}", name=row.name, title=say(row.title)))


def _ending(found: Comparison, width: int) -> Iterator[str]:
    for text in _closing(found):
        yield from indent(say(text), width, "", "  ")


def _closing(found: Comparison) -> Iterator[Text]:
    yield from found.notes
    if found.stopped is not None:
        yield found.stopped
    if found.is_kept and found.stopped is not None:
        yield t("Kept for a day: the same command goes on where this one ended.")
    elif found.is_kept and found.change:
        yield t("Kept for a day: the same command with --write FILE writes the profile with that at once.")
    methods = {row.speed.method for row in found.rows if row.speed is not None}
    if "t" in methods:
        yield t("Intervals of 3 to 5 pairs: Student's t on the log ratios, taken as normal.")
    if found.load_begin is not None and found.load_end is not None and methods:
        yield t("Load of this machine: {begin} at the beginning, {end} at the end; it took {time}.",
                begin=f"{found.load_begin:.1f}", end=f"{found.load_end:.1f}", time=human_seconds(found.seconds))  # fmt: skip
