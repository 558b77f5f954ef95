"""What real steps took, as lines of text: each as it comes, beside what was foretold, and the batch that was found."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.batch_search import MARGIN
from doctor.language import say
from doctor.measuring import Measured
from doctor.render.layout import human_bytes, human_seconds, indent
from doctor.tuning import Compared, TunedBatch
from runner.estimate import MemoryRequest
from runner.text import t


def measured_line(measured: Measured) -> str:
    """Return one line for a batch that was just run."""
    if not measured.fits:
        return say(t("batch {batch}: does not fit ({why})", batch=measured.batch, why=measured.why))
    return say(
        t("batch {batch}: {peak}, {seconds} an update", batch=measured.batch, peak=human_bytes(measured.peak_bytes),
          seconds=human_seconds(measured.seconds))
    )  # fmt: skip


def compared_lines(compared: Compared, width: int) -> Iterator[str]:
    """Yield what was foretold and measured for each batch, and what was kept of it."""
    yield say("Measured here, beside what was foretold for the same tensors:")
    for row in compared.rows:
        foretold = compared.predicted_bytes[row.batch]
        line = say(t("batch {batch}: foretold {foretold}", batch=row.batch, foretold=human_bytes(foretold)))
        if row.fits:
            apart = f"{100 * (row.peak_bytes / foretold - 1):+.0f} %"
            line += say(
                t(", measured {measured} ({apart})", measured=human_bytes(row.peak_bytes), apart=apart)
            )
        else:
            line += say(", did not fit")
        yield from indent(line, width, "  ", "    ")
    if compared.interrupted:
        yield "  " + say("Interrupted: what was measured until then is shown.")
    elif not compared.complete:
        yield from indent(say("The time given was used up before the batch asked for: --limit-seconds gives more."), width, "  ", "  ")  # fmt: skip
    if compared.unkept is not None:
        yield from indent(say(compared.unkept), width, "  ", "  ")
    elif compared.measurement is not None:
        yield from indent(say("Kept: later plans for this model, device, torch and precision are corrected by it."), width, "  ", "  ")  # fmt: skip


def tuned_lines(found: TunedBatch, request: MemoryRequest, width: int) -> Iterator[str]:
    """Yield the batch that was found and what it rests on."""
    search, tuned = found.search, found.tuned
    if not search.largest and not search.complete:
        yield say("Nothing was found before it ended: --limit-seconds gives more time.")
        return
    if not search.largest:
        yield say(t("Not even one sample of {length} {length:token|tokens} fits here as asked for.", length=request.sequence_length))  # fmt: skip
        return
    yield say(
        t("Largest micro-batch on {device} with every sample {length} tokens long: {batch}", device=tuned.key.card,
          length=tuned.length, batch=search.largest)
    )  # fmt: skip
    share = round(100 * MARGIN)
    held = t("it held {held} of {limit}; {share} % is kept free for what later batches do differently",
             held=human_bytes(tuned.process_bytes), limit=human_bytes(tuned.limit_bytes), share=share)  # fmt: skip
    yield from indent(say(held), width, "  ", "  ")
    if found.predicted_batch is not None:
        yield "  " + say(t("foretold: {batch}", batch=found.predicted_batch))
    if search.interrupted:
        yield "  " + say("Interrupted: a larger one may fit.")
    elif not search.complete:
        yield from indent(say("The time given was used up: a larger one may fit (--limit-seconds gives more)."), width, "  ", "  ")  # fmt: skip
    if search.most:
        yield "  " + say("Larger ones were not tried.")
    if found.unkept is not None:
        yield from indent(say(found.unkept), width, "  ", "  ")
    elif tuned.capped:
        yield "  " + say(
            "Kept: doctor plan shows it. No run takes it by itself, since the limit was asked for."
        )
    else:
        yield from indent(say("Kept: doctor plan shows it, and a profile with train.micro_batch_size = \"auto\" takes it."), width, "  ", "  ")  # fmt: skip
