"""A memory plan as lines of text: the bar by part, the verdict, the remedies, the table of cards. Pure but for the width."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.article_formula import Comparison
from doctor.card_choice import CardRow
from doctor.corrections import Tuned
from doctor.language import say
from doctor.memory_plan import MemoryPlan
from doctor.remedies import Remedy
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad
from doctor.render.sparkline import bar
from runner.text import Text, t

BAR_WIDTH = 24
CARDS_SHOWN = 40


def part_name(name: str) -> str:
    names = {
        "weights": say("weights"), "gradients": say("gradients"), "optimizer": say("optimizer"),
        "activations": say("activations"), "logits": say("logits and loss"), "workspace": say("workspace"),
        "context": say("CUDA context"), "rounding": say("allocator"), "sharding": say("sharding"),
        "process": say("process"), "held": say("allocator"), "correction": say("correction"),
    }  # fmt: skip
    return names.get(name, name)


def phase_name(name: str) -> str:
    names = {
        "forward": say("forward pass"), "backward": say("backward pass"), "optimizer": say("optimizer update"),
    }  # fmt: skip
    return names.get(name, name)


def plan_lines(plan: MemoryPlan, width: int, unicode: bool = True) -> Iterator[str]:
    """Yield the plan: what is asked, the parts, whether it fits, and what to do when it does not."""
    yield from _header(plan)
    yield from _parts(plan, width, unicode)
    yield from _verdict(plan, width)
    for note in plan.notes:
        yield from indent(say(note), width, "  - ", "    ")
    if plan.cards:
        yield ""
        yield from _cards(plan, width)


def _header(plan: MemoryPlan) -> Iterator[str]:
    request = plan.request
    words = [
        say(t("batch {batch} x {length} {length:token|tokens}", batch=request.batch_size, length=request.sequence_length)),
        request.precision, request.optimizer,
        say(t("accumulated {times} {times:time|times}", times=request.accumulation)) if request.accumulation > 1 else "",
        say("gradient checkpointing") if request.gradient_checkpointing else "",
        f"LoRA r={request.lora_rank}" if request.lora_rank else "",
        say(t("{count} {count:card|cards}, {sharding}", count=request.cards, sharding=request.sharding)) if request.cards > 1 else "",
        say("optimizer states in host memory") if request.offload else "",
    ]  # fmt: skip
    parameters = say(t("{count} M parameters", count=round(plan.estimate.parameters / 1e6, 1)))
    yield f"{plan.model} ({parameters}, {request.task}): " + " · ".join(filter(None, words))


def _parts(plan: MemoryPlan, width: int, unicode: bool) -> Iterator[str]:
    found = plan.estimate
    peak = max(1, found.peak_bytes)
    names = max(display_width(part_name(part.name)) for part in found.parts)
    for part in found.parts:
        head = f"  {pad(part_name(part.name), names)}  {bar(part.size_bytes / peak, BAR_WIDTH, unicode)} {human_bytes(part.size_bytes):>8}  "
        yield from indent(say(part.why), width, head, " " * display_width(head))
    sources = {"arithmetic": say("arithmetic from the configuration"), "traced": say("traced with fake tensors"),
               "small real steps": say("small real steps, extended")}  # fmt: skip
    yield say(
        t("Peak: {peak} ({low} to {high}), in the {phase}; {source}", peak=human_bytes(found.peak_bytes),
          low=human_bytes(found.low_bytes), high=human_bytes(found.high_bytes), phase=phase_name(found.phase),
          source=sources[found.source])
    )  # fmt: skip
    if found.source != "arithmetic" and plan.arithmetic is not None:
        yield say(t("The arithmetic says {peak}.", peak=human_bytes(plan.arithmetic.peak_bytes)))
    if found.host_bytes:
        yield say(t("In the host's memory, for all cards: {size}", size=human_bytes(found.host_bytes)))


def _verdict(plan: MemoryPlan, width: int) -> Iterator[str]:
    card = plan.card
    if card is None and plan.request.device == "cpu":
        yield say("This machine's memory could not be read.")
        return
    if card is None:
        yield say("No NVIDIA card could be read here: --gpus all shows which cards it fits.")
        return
    held = say(
        t("{name}: {free} of {total} free", name=card.name, free=human_bytes(card.free_bytes), total=human_bytes(card.total_bytes))
    )  # fmt: skip
    yield f"{held}. " + say(_answer(plan))
    length, largest = plan.request.sequence_length, plan.largest_batch
    if largest:
        yield say(
            t(
                "Largest micro-batch here at {length} {length:token|tokens}: {batch}",
                length=length,
                batch=largest,
            )
        )
    elif largest == 0:
        yield say(
            t("Not even one sample of {length} {length:token|tokens} fits here as asked for.", length=length)
        )
    if plan.tuned:
        yield from indent(say(_tuned(plan.tuned)), width, "", "  ")
    if plan.remedies:
        yield say("To make it fit, least loss of speed first, each on top of the one before:")
        for number, remedy in enumerate(plan.remedies, 1):
            yield from indent(_remedy(remedy), width, f"  {number}. ", "     ")
    if plan.fits is False and not (plan.remedies and plan.remedies[-1].fits):
        yield say("Even so it does not fit here: --gpus all shows which cards it fits.") if plan.remedies else say("Nothing that could be turned on makes it fit here: --gpus all shows which cards it fits.")  # fmt: skip


def _answer(plan: MemoryPlan) -> Text:
    if plan.fits:
        return t("It fits.") if plan.surely else t("It should fit, but the high end of the range does not.")
    return (
        t("It does not fit.")
        if plan.surely
        else t("It does not fit by the expected peak; the low end of the range would.")
    )


def _tuned(tuned: Tuned) -> Text:
    return t("doctor tune found {batch} here on {date} at {length} tokens, in {limit}", batch=tuned.batch,
             date=tuned.at[:10], length=tuned.length, limit=human_bytes(tuned.limit_bytes))  # fmt: skip


def _remedy(remedy: Remedy) -> str:
    factor = remedy.time_factor
    time = say(", its time is not foretold") if factor is None else say(t(", update takes {factor} x the time", factor=f"{factor:.2f}"))  # fmt: skip
    saved = say(t("saves {saved}, peak {peak}", saved=human_bytes(remedy.saved_bytes), peak=human_bytes(remedy.peak_bytes)))  # fmt: skip
    fits = say(": it fits") if remedy.fits else ""
    return f"{say(remedy.title)} ({saved}{time}){fits}"


def _cards(plan: MemoryPlan, width: int) -> Iterator[str]:
    samples, length = plan.samples, plan.request.sequence_length
    yield say(
        t(
            "Cards, for an epoch of {samples} {samples:sample|samples} of {length} {length:token|tokens}:",
            samples=samples,
            length=length,
        )
    )
    priced = any(row.epoch_cost is not None for row in plan.cards)
    titles = [say("card"), say("memory"), say("fits"), say("max batch"), say("samples/s"), say("epoch")]
    yield from _table(
        [titles + ([say("cost")] if priced else []), *(_cells(row, priced) for row in plan.cards)]
    )
    footnotes = (
        t("Times by a roofline: half of the tensor cores' dense rate, three quarters of the memory's, no waiting for data. They rank cards; a measured run is slower."),
        t("? : fp32, or a card whose 16-bit rate is not known. * : figures of the card from memory. memory: nominal less 7 % for ECC and driver."),
    )  # fmt: skip
    for note in footnotes:
        yield from indent(say(note), width, "  ", "  ")


def _cells(row: CardRow, priced: bool) -> list[str]:
    mark = "" if row.confidence in ("verified", "derived") else " *"
    cells = [
        row.name.removeprefix("NVIDIA ") + mark,
        human_bytes(row.memory_bytes),
        say("yes") if row.fits else say("no"),
        str(row.largest_batch) if row.largest_batch else "-",
        f"{row.samples_per_s:.0f}" if row.samples_per_s is not None else "?",
        human_seconds(row.epoch_s) if row.epoch_s is not None else "?",
    ]
    if priced:
        cells.append(f"{row.epoch_cost:.2f}" if row.epoch_cost is not None else "")
    return cells


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
        (say("accelerate estimate-memory's rule: four times the weights"), found.accelerate_bytes),
        (say("ours"), found.ours_bytes),
    )
    names = max(display_width(name) for name, _ in rows)
    for name, size in rows:
        yield f"  {pad(name, names)}  {human_bytes(size):>8}"
    yield say("The formula leaves out:")
    for reason in found.left_out:
        yield from indent(say(reason), width, "  - ", "    ")
    yield say(
        "Their table for an RTX 3090 names neither length nor precision; ours for both (foreach AdamW):"
    )
    for claim in found.table:
        yield f"  {claim.model}, {say('batch')} {claim.batch_size}: " + say(
            t("they say {claimed}, the formula {formula}", claimed=f"{claim.claimed_gb:g} GB", formula=human_bytes(claim.formula_bytes))
        )  # fmt: skip
        yield "    " + "  ".join(f"{key}: {human_bytes(size)}" for key, size in claim.ours_bytes.items())
