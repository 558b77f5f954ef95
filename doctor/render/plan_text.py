"""A memory plan as lines of text: the bar by part, the verdict, the remedies, the table of cards. Pure but for the width."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from doctor.corrections import Tuned
from doctor.language import say
from doctor.memory_plan import MemoryPlan, Remedy
from doctor.render.cards_text import batch_words, cards_lines
from doctor.render.layout import display_width, human_bytes, indent, pad
from doctor.render.plan_answer import answers
from doctor.render.sparkline import bar
from runner.strings import printable
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
    """Yield the plan: the answer, then what it rests on."""
    for sentence in answers(plan):
        yield from indent(sentence, width, "", "  ")
    yield ""
    yield from grounds_lines(plan, width, unicode)


def grounds_lines(plan: MemoryPlan, width: int, unicode: bool = True) -> Iterator[str]:
    """Yield what was asked, the parts, what to do where it does not fit, and the table of cards."""
    yield from indent(_header(plan), width, "", "  ")
    yield from _parts(plan, width, unicode)
    for sentence in (*_source(plan), *_room(plan)):
        yield from indent(sentence, width, "", "  ")
    yield from _remedies(plan, width)
    for note in plan.notes:
        yield from indent(say(note), width, "  - ", "    ")
    if plan.cards:
        yield ""
        yield from cards_lines(plan, width)


def _header(plan: MemoryPlan) -> str:
    request = plan.request
    words = [
        say(t("batch {batch} x {length} {length:token|tokens}", batch=request.batch_size, length=request.sequence_length)),
        request.precision, request.optimizer,
        say(t("accumulated {times} {times:time|times}", times=request.accumulation)) if request.accumulation > 1 else "",
        say("gradient checkpointing") if request.gradient_checkpointing else "",
        f"LoRA r={request.lora_rank}" if request.lora_rank else "",
        say(t("frozen: {patterns}", patterns=printable(", ".join(rule.parameters for rule in request.freeze)))) if request.freeze else "",
        say(t("layers over {count} cards", count=request.spread)) if request.spread > 1 else "",
        say(t("{count} {count:card|cards}, {sharding}", count=request.cards, sharding=request.sharding)) if request.cards > 1 else "",
        say("optimizer states in host memory") if request.offload else "",
        say("parameters in host memory") if request.offload_parameters else "",
    ]  # fmt: skip
    parameters = say(t("{count} M parameters", count=round(plan.estimate.parameters / 1e6, 1)))
    return f"{plan.model} ({parameters}, {request.task}): " + " · ".join(filter(None, words))


def _parts(plan: MemoryPlan, width: int, unicode: bool) -> Iterator[str]:
    found = plan.estimate
    peak = max(1, found.peak_bytes)
    names = max(display_width(part_name(part.name)) for part in found.parts)
    for part in found.parts:
        head = f"  {pad(part_name(part.name), names)}  {bar(part.size_bytes / peak, BAR_WIDTH, unicode)} {human_bytes(part.size_bytes):>8}  "
        yield from indent(say(part.why), width, head, " " * display_width(head))


def _source(plan: MemoryPlan) -> Iterator[str]:
    found = plan.estimate
    sources = {"arithmetic": say("arithmetic from the configuration"), "traced": say("traced with fake tensors"),
               "small real steps": say("small real steps, extended")}  # fmt: skip
    yield say(
        t("The peak comes in the {phase}; {source}.", phase=phase_name(found.phase), source=sources[found.source])
    )  # fmt: skip
    if plan.correction is not None:
        yield say(t("Corrected by real steps measured here on {date}.", date=plan.correction.at[:10]))
    if found.source != "arithmetic" and plan.arithmetic is not None:
        yield say(t("The arithmetic says {peak}.", peak=human_bytes(plan.arithmetic.peak_bytes)))
    if found.host_bytes:
        yield say(_host(plan))


def _host(plan: MemoryPlan) -> Text:
    size = human_bytes(plan.estimate.host_bytes)
    if plan.host_free_bytes is None:
        return t("In the host's memory, for all cards: {size}", size=size)
    return t("In the host's memory, for all cards: {size}, of {free} that can be had", size=size, free=human_bytes(plan.host_free_bytes))  # fmt: skip


def _room(plan: MemoryPlan) -> Iterator[str]:
    """Yield what else the device has room for."""
    length, largest = plan.request.sequence_length, plan.largest_batch
    if largest:
        yield say(t("Largest micro-batch at {length} {length:token|tokens}: {batch}", length=length, batch=batch_words(largest)))  # fmt: skip
    elif largest == 0:
        yield say(
            t("Not even one sample of {length} {length:token|tokens} fits here as asked for.", length=length)
        )
    if plan.tuned:
        yield say(_tuned(plan.tuned))
    if plan.fits is False and not plan.remedies and not plan.host_is_short:
        yield say("Nothing that could be turned on makes it fit here: --gpus all shows which cards it fits.")


def _remedies(plan: MemoryPlan, width: int) -> Iterator[str]:
    if not plan.remedies:
        return
    head = say(
        "To make it fit: least loss of speed first, what changes the numbers after what does not, each on top of the last:"
    )
    yield from indent(head, width, "", "  ")
    for number, remedy in enumerate(plan.remedies, 1):
        yield from indent(_remedy(remedy), width, f"  {number}. ", "     ")
    if not plan.remedies[-1].fits:
        yield from indent(say("Even so it does not fit here: --gpus all shows which cards it fits."), width, "", "  ")  # fmt: skip


def _tuned(tuned: Tuned) -> Text:
    return t("doctor tune found {batch} here on {date} at {length} tokens, in {limit}", batch=tuned.batch,
             date=tuned.at[:10], length=tuned.length, limit=human_bytes(tuned.limit_bytes))  # fmt: skip


def _remedy(remedy: Remedy) -> str:
    factor = remedy.time_factor
    time = say(", its time is not foretold") if factor is None else say(t(", update takes {factor} x the time", factor=f"{factor:.2f}"))  # fmt: skip
    saved = say(t("saves {saved}, peak {peak}", saved=human_bytes(remedy.saved_bytes), peak=human_bytes(remedy.peak_bytes)))  # fmt: skip
    fits = say(": it fits") if remedy.fits else ""
    setting = f" · --set {shlex.quote(remedy.setting)}" if remedy.setting else ""
    return f"{say(remedy.title)} ({saved}{time}){fits}{setting}"
