"""Memory measured on this machine: predictions held against real steps, and the largest batch found by trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from doctor.batch_search import Search, find_largest
from doctor.card_choice import largest_batch
from doctor.corrections import Key, Measurement, Point, Tuned, key_of, remember, store_path
from doctor.measuring import Bench, Measured
from doctor.measuring_place import Place, place_for
from doctor.memory_plan import knows
from doctor.memory_troubles import OutOfTime
from doctor.model import Snapshot
from doctor.plan_device import placed
from doctor.plan_options import PlanOptions
from doctor.planning import foretell
from runner.estimate import MemoryRequest
from runner.text import Text, t


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Real steps at growing batch, and what was kept of them."""

    rows: tuple[Measured, ...]
    predicted_bytes: dict[int, int]
    """By batch."""
    measurement: Measurement | None
    """None: not one batch fitted."""
    complete: bool
    """False: the time was used up before the batch asked for."""
    interrupted: bool = False
    """By hand, which is why it is not complete."""
    unkept: Text | None = None
    """Why the measurement could not be kept for later plans."""


class TunedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What ``doctor tune`` found."""

    search: Search
    tuned: Tuned
    predicted_batch: int | None
    """By the arithmetic; None: it does not know the model."""
    unkept: Text | None = None


def measure_here(
    request: MemoryRequest, snapshot: Snapshot, options: PlanOptions, environ: Mapping[str, str], limit_s: float,
    told: Callable[[Measured], None],
) -> Compared:  # fmt: skip
    """Predict as a plan with these options does, and hold that against real steps.

    Raises:
        CannotMeasure: there is no device to measure on, or a step could not be run.
        UnknownArchitecture, doctor.memory_troubles.NoTrace: there is no prediction.
    """
    request = placed(request, options)
    place = place_for(request, snapshot, options, limit_s)
    at = foretell(request, snapshot, options, environ).at
    source = at(request.batch_size).source
    return compare_with_steps(request, source, lambda batch: at(batch).allocated_bytes, place, environ, told)


def tune_here(
    request: MemoryRequest, snapshot: Snapshot, options: PlanOptions, environ: Mapping[str, str], limit_s: float,
    told: Callable[[Measured], None],
) -> TunedBatch:  # fmt: skip
    """Find the largest micro-batch on this machine's device. Raises CannotMeasure.

    Gradients are kept between micro-batches, as where a batch is taken in parts: what fits so, fits otherwise.
    """
    request = msgspec.structs.replace(placed(request, options), accumulation=2)
    place = place_for(request, snapshot, options, limit_s)
    room_bytes = min(place.card.free_bytes, place.limit_bytes or place.card.free_bytes)
    predicted = largest_batch(request, room_bytes) if knows(request) else None
    return tune(request, predicted, place, environ, told)


def growing(batch: int) -> list[int]:
    """Return 1, 2, 4 ... and ``batch`` itself."""
    sizes = [1]
    while sizes[-1] * 2 < batch:
        sizes.append(sizes[-1] * 2)
    return sizes if batch == 1 else [*sizes, batch]


def compare_with_steps(
    request: MemoryRequest, source: str, predicted: Callable[[int], int], place: Place, environ: Mapping[str, str],
    told: Callable[[Measured], None] = lambda _: None,
) -> Compared:  # fmt: skip
    """Run real steps up to the batch asked for, stop at the first that does not fit, and keep the correction.

    ``predicted``: the tensors' bytes of a batch, by ``source``. ``told`` hears of each as it comes.

    Raises:
        CannotMeasure: a library failed.
    """
    rows: list[Measured] = []
    complete, interrupted = True, False
    bench = Bench(request, place.python, environ, Path.cwd(), place.limit_bytes, place.limit_s)
    try:
        for batch in growing(request.batch_size):
            rows.append(bench.measure(batch))
            told(rows[-1])
            if not rows[-1].fits:
                break
    except OutOfTime:
        complete = False
    except KeyboardInterrupt:
        if not rows:
            raise
        complete, interrupted = False, True
    finally:
        bench.close()
    points = tuple(
        Point(batch=one.batch, length=request.sequence_length, predicted_bytes=predicted(one.batch), measured_bytes=one.peak_bytes)
        for one in rows
        if one.fits
    )  # fmt: skip
    measurement, unkept = None, None
    if points:
        key = key_of(request, place.card.name, place.torch, source)
        measurement = Measurement(key=key, at=_now(), points=points)
        unkept = keep(measurement, environ)
    return Compared(
        rows=tuple(rows), predicted_bytes={one.batch: predicted(one.batch) for one in rows}, measurement=measurement,
        complete=complete, interrupted=interrupted, unkept=unkept,
    )  # fmt: skip


def tune(
    request: MemoryRequest, predicted_batch: int | None, place: Place, environ: Mapping[str, str],
    told: Callable[[Measured], None] = lambda _: None,
) -> TunedBatch:  # fmt: skip
    """Find the largest micro-batch of samples that all have the request's length, and keep it for this model, card and build.

    Raises:
        CannotMeasure: a library failed.
    """
    bench = Bench(request, place.python, environ, Path.cwd(), place.limit_bytes, place.limit_s)

    def measure(batch: int) -> Measured:
        found = bench.measure(batch)
        told(found)
        return found

    try:
        search = find_largest(measure, lambda: bench.limit_bytes, max(1, (predicted_batch or 0) // 2))
    finally:
        bench.close()
    best = next((one for one in search.tried if one.batch == search.largest), None)
    tuned = Tuned(
        key=_tuned_key(request, place), at=_now(), length=request.sequence_length, batch=search.largest,
        process_bytes=best.process_bytes if best else 0, limit_bytes=bench.limit_bytes, complete=search.complete, capped=place.capped,
    )  # fmt: skip
    unkept = keep(tuned, environ) if search.largest else None
    return TunedBatch(search=search, tuned=tuned, predicted_batch=predicted_batch, unkept=unkept)


def _tuned_key(request: MemoryRequest, place: Place) -> Key:
    return key_of(request, place.card.name, place.torch)


def keep(record: Measurement | Tuned, environ: Mapping[str, str]) -> Text | None:
    """Keep a record for later plans; return why it could not be kept."""
    path = store_path(environ)
    try:
        remember(path, record)
    except OSError as error:
        return t("not kept for later plans: {file}: {why}", file=str(path), why=error.strerror or str(error))
    return None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
