"""Which card to rent, and what tutorials say instead: the tables of ``doctor plan`` as text. Pure but for the width."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.article_formula import Comparison
from doctor.card_choice import LARGEST_BATCH, CardRow, choice_of
from doctor.language import say
from doctor.memory_plan import MemoryPlan
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad
from runner.text import Text, t

_SHORTER = (
    ("NVIDIA ", ""), ("GeForce ", ""), ("Tesla ", ""), ("Quadro ", ""), (" Blackwell", ""), (" Generation", ""),
    ("Max-Q Workstation Edition", "Max-Q"), ("Workstation Edition", "Workstation"), ("Server Edition", "Server"),
)  # fmt: skip


def cards_lines(plan: MemoryPlan, width: int) -> Iterator[str]:
    """Yield the table, best first, with what it rests on."""
    samples, length = plan.samples, plan.request.sequence_length
    yield say(
        t(
            "Cards, for an epoch of {samples} {samples:sample|samples} of {length} {length:token|tokens}:",
            samples=samples,
            length=length,
        )
    )
    priced = any(row.price_per_hour is not None for row in plan.cards)
    shown = [row for row in plan.cards if row.largest_batch]
    titles = [say("card"), say("memory"), say("fits"), say("batch"), say("samples/s"), say("epoch")]
    yield from _table(
        [titles + ([say("cost")] if priced else []), *(_cells(row, priced, plan.currency) for row in shown)]
    )
    yield from _left_out(plan, width)
    footnotes = (
        t("Times by a roofline: half of the tensor cores' dense rate, three quarters of the memory's, no waiting for data. They rank cards; a measured run is slower."),
        t("batch: the largest micro-batch; with more than that the batch is taken in parts. tight: the high end of the range does not fit. memory: nominal less 7 % for ECC and driver."),
        t("? : fp32, or a card whose 16-bit rate is not known. * : figures of the card from memory. ~ : no bf16 in hardware, fp16 in its place."),
    )  # fmt: skip
    for note in footnotes:
        yield from indent(say(note), width, "  ", "  ")


def _left_out(plan: MemoryPlan, width: int) -> Iterator[str]:
    """Yield which cards the table does not show, and why."""
    small = [short_name(row.name) for row in plan.cards if not row.largest_batch]
    if small:
        yield from indent(
            say(t("Too small, one sample at a time too: {names}", names=", ".join(small))),
            width,
            "  ",
            "    ",
        )
    if plan.cards_left_out:
        yield from indent(say(t("{count} {count:card|cards} without a price would do too: --gpus all without --price shows them.", count=plan.cards_left_out)), width, "  ", "    ")  # fmt: skip


def advice(plan: MemoryPlan) -> Text:
    """Return what to rent, in one sentence."""
    choice = choice_of(plan.cards, plan.request.precision == "bf16-pure")
    if choice is None and any(row.largest_batch and row.epoch_s is None for row in plan.cards):
        return t(
            "Which card is the best buy cannot be told: no time is known for fp32. Take the smallest that fits, or train in 16 bits"
        )
    if choice is None:
        return t("It fits none of these cards, one sample at a time either: see above what to turn on")
    best, fastest = choice.best, choice.fastest
    words: dict[str, str | int] = {
        "card": short_name(best.name), "time": human_seconds(best.epoch_s or 0.0), "batch": best.largest_batch,
        "fast": short_name(fastest.name), "fast_time": human_seconds(fastest.epoch_s or 0.0), "count": choice.priced,
    }  # fmt: skip
    if not choice.priced:
        return t("The smallest card that does it is the {card} ({time} an epoch), the fastest the {fast} ({fast_time}). --price \"{card}=PRICE, ...\" says which is the best buy.", **words)  # fmt: skip
    words |= {"cost": cost_text(best, plan.currency), "fast_cost": cost_text(fastest, plan.currency)}
    if fastest == best:
        return t("Rent the {card}: {cost} and {time} an epoch, in micro-batches of {batch}: the cheapest and the fastest of the {count} with a price.", **words)  # fmt: skip
    return t("Rent the {card}: {cost} and {time} an epoch, in micro-batches of {batch}: the cheapest of the {count} with a price. The fastest, {fast}, takes {fast_time} for {fast_cost}.", **words)  # fmt: skip


def batch_words(batch: int) -> str:
    """Return a largest batch; it was looked for no further than to where it is no question of memory any more."""
    return f"{batch}+" if batch == LARGEST_BATCH else str(batch)


def cost_text(row: CardRow, currency: str) -> str:
    return f"{currency}{row.epoch_cost:.2f}" if row.epoch_cost is not None else "-"


def _cells(row: CardRow, priced: bool, currency: str) -> list[str]:
    marks = ("" if row.confidence in ("verified", "derived") else "*") + ("~" if row.as_fp16 else "")
    fits = (say("yes") if row.surely else say("tight")) if row.fits else say("no")
    cells = [
        f"{short_name(row.name)} {marks}".rstrip(),
        human_bytes(row.memory_bytes),
        fits,
        batch_words(row.largest_batch) if row.largest_batch else "-",
        f"{row.samples_per_s:.0f}" if row.samples_per_s is not None else "?",
        human_seconds(row.epoch_s) if row.epoch_s is not None else "?",
    ]
    if priced:
        cells.append(cost_text(row, currency))
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
