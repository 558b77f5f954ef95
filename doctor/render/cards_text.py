"""Which card to rent, and what tutorials say instead: the tables of ``doctor plan`` as text. Pure but for the width."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.article_formula import Comparison
from doctor.card_choice import CardRow
from doctor.language import say
from doctor.memory_plan import MemoryPlan
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad
from runner.text import t

_SHORTER = (
    ("NVIDIA ", ""), ("GeForce ", ""), ("Tesla ", ""), ("Quadro ", ""), (" Blackwell", ""), (" Generation", ""),
    ("Max-Q Workstation Edition", "Max-Q"), ("Workstation Edition", "Workstation"), ("Server Edition", "Server"),
)  # fmt: skip


def cards_lines(plan: MemoryPlan, width: int) -> Iterator[str]:
    samples, length = plan.samples, plan.request.sequence_length
    """Yield the table, best first, with what it rests on."""
    yield say(
        t(
            "Cards, for an epoch of {samples} {samples:sample|samples} of {length} {length:token|tokens}:",
            samples=samples,
            length=length,
        )
    )
    priced = any(row.epoch_cost is not None for row in plan.cards)
    titles = [say("card"), say("memory"), say("fits"), say("batch"), say("samples/s"), say("epoch")]
    yield from _table(
        [titles + ([say("cost")] if priced else []), *(_cells(row, priced) for row in plan.cards)]
    )
    footnotes = (
        t("Times by a roofline: half of the tensor cores' dense rate, three quarters of the memory's, no waiting for data. They rank cards; a measured run is slower."),
        t("batch: the largest micro-batch; with more than that the batch is taken in parts. tight: the high end of the range does not fit. memory: nominal less 7 % for ECC and driver."),
        t("? : fp32, or a card whose 16-bit rate is not known. * : figures of the card from memory. ~ : no bf16 in hardware, fp16 in its place."),
    )  # fmt: skip
    for note in footnotes:
        yield from indent(say(note), width, "  ", "  ")


def _cells(row: CardRow, priced: bool) -> list[str]:
    marks = ("" if row.confidence in ("verified", "derived") else "*") + ("~" if row.as_fp16 else "")
    fits = (say("yes") if row.surely else say("tight")) if row.fits else say("no")
    cells = [
        f"{short_name(row.name)} {marks}".rstrip(),
        human_bytes(row.memory_bytes),
        fits,
        str(row.largest_batch) if row.largest_batch else "-",
        f"{row.samples_per_s:.0f}" if row.samples_per_s is not None else "?",
        human_seconds(row.epoch_s) if row.epoch_s is not None else "?",
    ]
    if priced:
        cells.append(f"{row.epoch_cost:.2f}" if row.epoch_cost is not None else "")
    return cells


def short_name(name: str) -> str:
    """Return a card's name as people say it, in a third of a narrow terminal."""
    for long, short in _SHORTER:
        name = name.replace(long, short)
    return name


def _table(rows: list[list[str]]) -> Iterator[str]:
    """Yield rows in columns: the first to the left, numbers to the right."""
    widths = [max(display_width(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        numbers = [" " * (size - display_width(cell)) + cell for size, cell in zip(widths, row, strict=True)]
        yield "  " + "  ".join([pad(row[0], widths[0]), *numbers[1:]]).rstrip()


def comparison_lines(found: Comparison, width: int) -> Iterator[str]:
    """Yield the articles' formula and table beside ours."""
    yield say("Beside it, what tutorials say:")
    rows = (
        (say("formula: parameters x 4 + batch x length x hidden x 8"), found.formula_bytes),
        (say("accelerate estimate-memory: 4 x the weights, 2 x in 16 bits"), found.accelerate_bytes),
        (say("ours"), found.ours_bytes),
    )
    names = max(display_width(name) for name, _ in rows)
    for name, size in rows:
        yield f"  {pad(name, names)}  {human_bytes(size):>8}"
    yield say("The formula leaves out:")
    for reason in found.left_out:
        yield from indent(say(reason), width, "  - ", "    ")
    yield from indent(say("Their table for an RTX 3090 names neither length nor precision; ours for both (foreach AdamW):"), width, "", "  ")  # fmt: skip
    for claim in found.table:
        yield f"  {claim.model}, {say('batch')} {claim.batch_size}: " + say(
            t("they say {claimed}, the formula {formula}", claimed=f"{claim.claimed_gb:g} GB", formula=human_bytes(claim.formula_bytes))
        )  # fmt: skip
        sizes = (
            f"{key}:\u00a0{human_bytes(size)}".replace(" ", "\u00a0")
            for key, size in claim.ours_bytes.items()
        )
        for line in indent(", ".join(sizes), width, "    ", "    "):
            yield line.replace("\u00a0", " ")
