"""``doctor plan`` put together: the model's configuration, this machine's card, the prediction, the table of cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from doctor.card_choice import CardRow, card_rows
from doctor.card_sizes import sizes_for
from doctor.corrections import Measurement, Tuned, correction_for, key_of, read_kept, store_path, tuned_for
from doctor.memory_plan import MemoryPlan, knows, plan_for
from doctor.memory_troubles import NoTrace
from doctor.model import Snapshot
from doctor.model_config import FoundConfig
from doctor.plan_device import device_of, host_free_bytes, on_cpu_without_card, placed
from doctor.plan_notes import notes_of, obstacle_of
from doctor.plan_options import PlanOptions
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.model_shapes import UnknownArchitecture
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.model_step import Step


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
    notes = [*notes_of(request, snapshot, options, card), *foretold.notes]
    remembered = Remembered()
    if card is not None and not options.of_another:
        remembered = _remembered(
            request, card.name, snapshot, foretold.at(request.batch_size).source, environ
        )
    measured = measured or remembered.measured
    at = foretold.at if measured is None else _corrected_by(foretold.at, request, measured)
    plan = plan_for(
        found.name, found.source, request, at(request.batch_size), card, at,
        host_free_bytes=host_free_bytes(snapshot, options), by_profile=options.by_profile,
    )  # fmt: skip
    rows, left_out = _table(request, options) if options.all_cards and foretold.counted else ((), 0)
    sizes = sizes_for(plan.estimate, request) if card is None and not options.on_cpu else None
    return msgspec.structs.replace(
        plan, arithmetic=foretold.counted if options.exact else None, correction=measured, tuned=remembered.tuned, cards=rows, cards_left_out=left_out,
        currency=options.currency, samples=options.samples, notes=(*notes, *remembered.notes),
        card_sizes=sizes, card_is_named=options.card is not None, obstacle=obstacle_of(request),
    )  # fmt: skip


class Remembered(NamedTuple):
    """What was measured here of such a run before."""

    measured: Measurement | None = None
    tuned: Tuned | None = None
    notes: tuple[Text, ...] = ()


def _remembered(
    request: MemoryRequest, card: str, snapshot: Snapshot, source: str, environ: Mapping[str, str]
) -> Remembered:
    kept, trouble = read_kept(store_path(environ))
    if not kept.measured and not kept.tuned:
        return Remembered(notes=(trouble,) if trouble else ())
    key = key_of(request, card, torch_version(snapshot), source)
    return Remembered(
        correction_for(kept, key),
        tuned_for(kept.tuned, key, request.sequence_length),
        (trouble,) if trouble else (),
    )


def _table(request: MemoryRequest, options: PlanOptions) -> tuple[tuple[CardRow, ...], int]:
    """Return the cards asked for, and how many without a price would do too."""
    rows = tuple(card_rows(request, options.samples, options.prices))
    if not options.priced_only:
        return rows, 0
    left_out = sum(row.largest_batch > 0 for row in rows if row.price_per_hour is None)
    return tuple(row for row in rows if row.price_per_hour is not None), left_out


def _corrected_by(
    at: Callable[[int], MemoryEstimate], request: MemoryRequest, measured: Measurement
) -> Callable[[int], MemoryEstimate]:
    from doctor.corrected import corrected

    return lambda batch: corrected(at(batch), msgspec.structs.replace(request, batch_size=batch), measured)


def torch_version(snapshot: Snapshot) -> str:
    torch = snapshot.facts.torch.value
    return torch.version if torch else ""


def with_cpu_here(
    plan: MemoryPlan, snapshot: Snapshot, options: PlanOptions, environ: Mapping[str, str],
    step_of: Callable[[PlanOptions], Step],
) -> MemoryPlan:  # fmt: skip
    """Return the plan with the same on this machine's CPU beside it, by arithmetic; as it is where there is a card, or where the
    question was about cards. ``step_of`` gives the step as a CPU takes it."""
    here = on_cpu_without_card(options, snapshot)
    several = plan.request.cards > 1 or plan.request.spread > 1
    if here is options or options.all_cards or several or not knows(plan.request):
        return plan
    step = step_of(here)
    here = msgspec.structs.replace(here, exact=False, notes=())
    return msgspec.structs.replace(plan, on_cpu_here=plan_memory(step.found, step.request, snapshot, here, environ))  # fmt: skip
