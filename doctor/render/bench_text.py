"""A comparison of settings as a table of 80 columns and the sentences below it."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.bench_records import Comparison, Row
from doctor.bench_stats import Interval
from doctor.language import say
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad
from runner.strings import printable
from runner.text import t

WIDTHS = (14, 7, 12, 9, 8, 7, 9, 6)
"""Name, speed, interval, samples/s, tokens/s, padding, memory, CPU; the loss takes what is left."""


def bench_lines(found: Comparison, width: int = 80) -> Iterator[str]:
    """Yield the whole answer."""
    yield from _command_head(found, width) if found.is_command else _head(found, width)
    yield from _table(found)
    for row in found.rows:
        yield from row_sentences(row, width)
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
        say(t("{profile}: {model}, {steps} {steps:step|steps} of {batch} samples, at most {length} tokens, on {device}; the "
              "same samples and seed in every run, each run a fresh process next to one of before",
              profile=printable(found.profile), model=printable(found.model), steps=found.steps, batch=found.batch_size,
              length=found.max_length, device=printable(found.device))),
        width, "", "  ",
    )  # fmt: skip


def _table(found: Comparison) -> Iterator[str]:
    head = [say("setting"), say("speed"), "95 %", say("samples/s"), say("tokens/s"), say("padded"), say("memory"), "CPU", say("loss")]  # fmt: skip
    measured = [row for row in found.rows if row.samples_per_s is not None or row.speed is not None]
    for line in [head, *map(cells, measured)] if measured else []:
        yield _line(line)


def _line(cells: list[str]) -> str:
    first, *rest = cells
    last = cells[len(WIDTHS)] if len(cells) > len(WIDTHS) else ""
    parts = [pad(first, WIDTHS[0])]
    for text, width in zip(rest, WIDTHS[1:], strict=False):
        parts.append(" " * max(1, width - display_width(text)) + text)
    return ("".join(parts) + " " + last).rstrip()


def cells(row: Row) -> list[str]:
    """Return a measured row's cells, as text."""
    speed, interval = ("x1", "") if row.speed is None else (f"x{row.speed.ratio:.2f}", interval_text(row.speed))  # fmt: skip
    if row.samples_per_s is None:
        return [row.name, speed, interval]
    return [
        row.name, speed, interval, f"{row.samples_per_s:.3g}", f"{row.tokens_per_s:.0f}", f"{row.padding_share:.0%}",
        human_bytes(row.peak_bytes), "x1" if row.cpu is None else f"x{row.cpu.ratio:.2f}", loss_text(row),
    ]  # fmt: skip


def interval_text(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return "-"
    return f"{interval.low:.2f}-{interval.high:.2f}"


def loss_text(row: Row) -> str:
    if row.loss == "equal":
        return say("equal")
    if row.loss == "other rows":
        return say("other rows")
    difference = f"{100 * (row.loss_difference or 0):.2g}%"
    return difference if row.loss == "rounding" else f"{difference} !"


def row_sentences(row: Row, width: int) -> Iterator[str]:
    """Yield what a row's figures mean: the verdict, and what speaks against it."""
    name, title = row.name, say(row.title)
    if row.verdict == "before":
        yield from indent(say(t("{name}: {title}", name=name, title=title)), width, "- ", "  ")
        return
    if row.verdict in ("skipped", "failed"):
        words = t("{name}: skipped: {why}", name=name, why=say(row.why or t("not reached")))
        if row.verdict == "failed":
            words = t("{name}: failed: {why}", name=name, why=say(row.why or ""))
        yield from indent(say(words), width, "- ", "  ")
        return
    yield from indent(f"{name}: {title}: {verdict_text(row)}", width, "- ", "  ")
    if row.loss == "differs":
        words = t("{name}: the loss of the same samples is not the same ({percent} apart): it computes something else, and is not recommended",
                  name=name, percent=f"{100 * (row.loss_difference or 0):.2g} %")  # fmt: skip
        yield from indent(say(words), width, "  ! ", "    ")


def verdict_text(row: Row) -> str:
    if row.verdict == "too few pairs":
        return say(t("{count} {count:pair|pairs}: too few to say", count=row.runs))
    if row.verdict == "no proven difference":
        return say("no proven difference")
    if row.memory_ratio is None:
        word = say("faster") if row.verdict == "faster" else say("slower")
        return f"{word}; {say(row.why)}" if row.why else word
    memory = f"{row.memory_ratio:.2f}"
    if row.verdict == "faster":
        return say(t("faster, x{memory} the memory", memory=memory))
    return say(t("slower, x{memory} the memory", memory=memory))


def _ending(found: Comparison, width: int) -> Iterator[str]:
    if found.stopped is not None:
        yield from indent(say(found.stopped), width, "", "  ")
    measured = [row.speed for row in found.rows if row.speed is not None]
    methods = {one.method for one in measured}
    if "signed-rank" in methods:
        yield from indent(say(t("Intervals from 6 pairs on: Wilcoxon's signed ranks, exact (95 % or more).")), width, "", "  ")  # fmt: skip
    if "t" in methods:
        yield from indent(say(t("Intervals of 3 to 5 pairs: Student's t on the log ratios, taken as normal.")), width, "", "  ")  # fmt: skip
    if found.load_begin is not None and found.load_end is not None:
        yield from indent(
            say(t("Load of this machine: {begin} at the beginning, {end} at the end; it took {time}.",
                  begin=f"{found.load_begin:.1f}", end=f"{found.load_end:.1f}", time=human_seconds(found.seconds))),
            width, "", "  ",
        )  # fmt: skip
    if found.winners:
        shown = ", ".join(f"{key} = {value}" for key, value in found.winners.items())
        yield from indent(say(t("Proven faster: {settings}. --write FILE keeps the profile with them.", settings=shown)), width, "", "  ")  # fmt: skip
