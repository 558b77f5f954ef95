"""``doctor plan`` put together: the model's configuration, this machine's card, the prediction, the table of cards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from doctor.card_choice import CardRow, card_rows
from doctor.card_state import CardState, card_state, cpu_state, limited
from doctor.corrected import corrected
from doctor.corrections import Kept, Measurement, correction_for, key_of, read_kept, store_path, tuned_for
from doctor.machine_facts import visible_gpus
from doctor.memory_plan import MemoryPlan, plan_for
from doctor.memory_troubles import NoTrace
from doctor.model import Snapshot
from doctor.model_config import FoundConfig, cache_of, find_config
from runner.estimate import MemoryEstimate, MemoryRequest, Precision, estimate
from runner.model_shapes import UnknownArchitecture
from runner.text import Text, t

DEFAULT_SAMPLES = 25_000
"""An epoch for the table of cards where nobody says: IMDb's training reviews."""


DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "smollm3")


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a plan beside the run itself."""

    exact: bool = False
    all_cards: bool = False
    priced_only: bool = False
    """Of the table those cards alone that have a price."""
    samples: int = DEFAULT_SAMPLES
    prices: dict[str, float] = {}
    currency: str = ""
    """The prices' sign; empty: nobody said."""
    on_cpu: bool = False
    """Train on the CPU, in the machine's memory."""
    memory_limit_bytes: int | None = None
    """As if the device had no more."""
    recorded: bool = False
    """The machine is a file: what was measured here is not about it."""
    by_profile: bool = False
    """The step is a profile's: what to turn on is what a profile can say."""
    notes: tuple[Text, ...] = ()
    """What is to be said of the step beside the figures."""


def config_of_model(name: str) -> FoundConfig:
    """Return the configuration of ``--model``. Raises doctor.model_config.NoConfig."""
    return find_config(name, cache_of(os.environ))


def default_precision(on_cpu: bool, card: CardState | None) -> Precision:
    """Return what a model is trained in when nobody says: 16 bits, but for a CPU that has no unit for them."""
    return "fp32" if on_cpu and not (card and card.has_bf16) else "bf16"


def default_task(config: Mapping[str, object]) -> str:
    """Return what a model is for when nobody says: decoders write on, encoders classify."""
    return "causal-lm" if config.get("model_type") in DECODERS else "classification"


def device_of(snapshot: Snapshot, options: PlanOptions, cards: int = 1) -> CardState | None:
    """Return the visible card with the most free memory, or the CPU where that is asked for; None: none could be read.

    Of several cards together the one with the least free counts, since each holds as much; of several processes on the CPU
    each has its share.
    """
    if options.on_cpu:
        device = cpu_state(snapshot.facts)
        device = limited(device, device.free_bytes // cards) if device and cards > 1 else device
    else:
        states = [state for gpu in visible_gpus(snapshot.facts) if (state := card_state(gpu)) is not None]
        states.sort(key=lambda one: -one.free_bytes)
        device = states[min(cards, len(states)) - 1] if states else None
    return limited(device, options.memory_limit_bytes) if device else None


def host_free_bytes(snapshot: Snapshot) -> int | None:
    """Return what of the host's memory a process here can have; None: that could not be read."""
    host = cpu_state(snapshot.facts)
    return host.free_bytes if host else None


def options_here(options: PlanOptions, snapshot: Snapshot) -> PlanOptions:
    """Return the options for real steps: on the CPU where there is no card, as ``doctor run`` trains there.

    Cards that could not be looked for are not taken for none.
    """
    here = snapshot.facts.gpus.status in ("ok", "absent") and not options.recorded
    if options.on_cpu or not here or device_of(snapshot, options) is not None:
        return options
    return msgspec.structs.replace(options, on_cpu=True)


def placed(request: MemoryRequest, options: PlanOptions) -> MemoryRequest:
    """Return the request as the device takes it."""
    return msgspec.structs.replace(request, device="cpu") if options.on_cpu else request


class Foretold(NamedTuple):
    """A prediction for any batch of one request."""

    at: Callable[[int], MemoryEstimate]
    counted: MemoryEstimate | None
    """By arithmetic, for the batch asked for; None: it does not know the architecture."""
    notes: tuple[Text, ...] = ()


def foretell(
    request: MemoryRequest, snapshot: Snapshot, options: PlanOptions, environ: Mapping[str, str], with_line: bool = True
) -> Foretold:  # fmt: skip
    """Predict by arithmetic, or by tracing where an exact answer is asked for.

    Raises:
        UnknownArchitecture: the arithmetic does not know the model and no exact answer was asked for.
        doctor.memory_troubles.NoTrace: an exact one was asked for and neither way worked.
    """
    replace = msgspec.structs.replace
    if not options.exact:
        return Foretold(lambda batch: estimate(replace(request, batch_size=batch)), estimate(request))
    from doctor.exact_memory import as_estimate, trace

    python = snapshot.facts.python.value
    if python is None or not python.executable:
        raise NoTrace(t("no Python with torch and transformers was found; name one with --python PATH"))
    traced = trace(request, python.executable, environ, Path.cwd(), with_line=with_line)
    notes: tuple[Text, ...] = ()
    if traced.mode == "real":
        notes = (t("the model could not be walked with fake tensors ({why}): batches of 1 and 2 were really run on the CPU, and the rest is a straight line through them", why=traced.why_real),)  # fmt: skip
    try:
        counted = estimate(request)
    except UnknownArchitecture:
        counted = None
    return Foretold(lambda batch: as_estimate(replace(request, batch_size=batch), traced), counted, notes)


def plan_memory(
    found: FoundConfig,
    request: MemoryRequest,
    snapshot: Snapshot,
    options: PlanOptions,
    environ: Mapping[str, str],
    measured: Measurement | None = None,
) -> MemoryPlan:
    """Predict, hold against this machine's device, and against every card of the table where asked.

    ``measured``: what was just measured of this very request. What was kept of earlier ones is used too.

    Raises:
        UnknownArchitecture: the arithmetic does not know the model and no exact answer was asked for.
        doctor.memory_troubles.NoTrace: an exact one was asked for and neither way worked.
    """
    request = placed(request, options)
    card = device_of(snapshot, options, max(request.cards, request.spread))
    foretold = foretell(request, snapshot, options, environ, with_line=card is not None)
    notes = [*_notes(request, snapshot, options), *foretold.notes]
    kept, trouble = Kept(), None
    if card is not None and not options.recorded:
        kept, trouble = read_kept(store_path(environ))
    at, now = foretold.at, foretold.at(request.batch_size)
    tuned = None
    if card is not None:
        key = key_of(request, card.name, torch_version(snapshot), now.source)
        measured = measured or correction_for(kept, key)
        tuned = tuned_for(kept.tuned, key, request.sequence_length)
    if measured is not None:
        at = _corrected_by(foretold.at, request, measured)
    plan = plan_for(
        found.name, found.source, request, at(request.batch_size), card, lambda batch: at(batch).peak_bytes,
        host_free_bytes=host_free_bytes(snapshot), by_profile=options.by_profile,
    )  # fmt: skip
    rows: tuple[CardRow, ...] = ()
    left_out = 0
    if options.all_cards and foretold.counted:
        rows = tuple(card_rows(request, options.samples, options.prices))
    if options.priced_only:
        left_out = sum(row.largest_batch > 0 for row in rows if row.price_per_hour is None)
        rows = tuple(row for row in rows if row.price_per_hour is not None)
    return msgspec.structs.replace(
        plan, arithmetic=foretold.counted if options.exact else None, correction=measured, tuned=tuned, cards=rows, cards_left_out=left_out,
        currency=options.currency, samples=options.samples, notes=(*notes, *([trouble] if trouble else [])),
    )  # fmt: skip


def _corrected_by(
    at: Callable[[int], MemoryEstimate], request: MemoryRequest, measured: Measurement
) -> Callable[[int], MemoryEstimate]:
    return lambda batch: corrected(at(batch), msgspec.structs.replace(request, batch_size=batch), measured)


def torch_version(snapshot: Snapshot) -> str:
    torch = snapshot.facts.torch.value
    return torch.version if torch else ""


def _notes(request: MemoryRequest, snapshot: Snapshot, options: PlanOptions) -> list[Text]:
    """Return what a reader must know to take the numbers for what they are."""
    gpus = snapshot.facts.gpus
    notes = [*options.notes]
    if gpus.status == "failed" and not options.on_cpu:
        notes.append(t("the cards here could not be read: {why}", why=str(gpus.why or "-")))
    elif gpus.value is not None and any(gpu.mig_enabled for gpu in gpus.value.items):
        notes.append(t("MIG is on: a process sees an instance's share of the card, not all of its memory"))
    limit = request.config.get("max_position_embeddings")
    if isinstance(limit, int) and 0 < limit < request.sequence_length:
        notes.append(
            t("the model has {limit} positions: {length} tokens are more than it can take", limit=limit, length=request.sequence_length)
        )  # fmt: skip
    if options.memory_limit_bytes is not None:
        notes.append(t("as if the device had {size} MB, as asked for", size=options.memory_limit_bytes >> 20))
    here = len(visible_gpus(snapshot.facts))
    if request.cards > max(1, here) and not options.on_cpu:
        notes.append(
            t(
                "{here} {here:card is|cards are} here: planned as if there were {count} like it",
                here=here,
                count=request.cards,
            )
        )
    if request.cards > 1:
        notes.append(t("the batch is what each of the {count} cards takes", count=request.cards))
    return notes
