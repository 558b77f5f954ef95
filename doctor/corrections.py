"""What was measured of memory on this machine, kept for later plans: ``memory.json`` in the doctor's state folder.

A measurement speaks for one model shape, card, torch build and way of training, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from doctor.state_dir import state_dir, write_whole
from runner.estimate import MemoryRequest
from runner.model_shapes import UnknownArchitecture, shape_of
from runner.text import Text, t

KEPT = 200
"""Records of each kind; the oldest go."""
LEAST_ERROR = 0.03
"""However well the points agree: other lengths than those measured."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement speaks for."""

    model: str
    """Digest of the model's sizes and its task."""
    source: str
    """Of the prediction beside it: arithmetic, traced, small real steps."""
    card: str
    torch: str
    precision: str
    optimizer: str
    attention: str
    gradient_checkpointing: bool
    lora_rank: int
    accumulated: bool
    variant: str = ""
    """Digest of what else is trained otherwise: frozen parameters, where adapters stand, their dropout. Empty: nothing."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    batch: int
    length: int
    predicted_bytes: int
    measured_bytes: int


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Real steps beside what was foretold for them."""

    key: Key
    at: str
    """ISO 8601."""
    points: tuple[Point, ...]

    @property
    def ratio(self) -> float:
        """Measured over foretold at the largest point: there activations weigh most, as where it matters."""
        largest = max(self.points, key=lambda one: one.predicted_bytes)
        return largest.measured_bytes / largest.predicted_bytes

    @property
    def error(self) -> float:
        """How far the upper half of the points lie from that ratio."""
        most = max(one.predicted_bytes for one in self.points)
        upper = [one for one in self.points if 2 * one.predicted_bytes >= most]
        return max(
            LEAST_ERROR, *(abs(one.measured_bytes / one.predicted_bytes / self.ratio - 1) for one in upper)
        )


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The largest micro-batch that ``doctor tune`` found."""

    key: Key
    at: str
    length: int
    """Tokens of the longest sample: every sample had as many."""
    batch: int
    process_bytes: int
    """What the device held with that batch."""
    limit_bytes: int
    complete: bool
    capped: bool = False
    """Found under a limit that was asked for, below what the device has: no run takes it by itself."""


class Kept(msgspec.Struct, kw_only=True):
    """The file."""

    schema: int = 1
    measured: list[Measurement] = []
    tuned: list[Tuned] = []


def key_of(request: MemoryRequest, card: str, torch: str, source: str = "arithmetic") -> Key:
    return Key(
        model=model_digest(request), source=source, card=card, torch=torch, precision=request.precision,
        optimizer="adamw" if request.optimizer == "adamw-loop" else request.optimizer, attention=request.attention,
        gradient_checkpointing=request.gradient_checkpointing, lora_rank=request.lora_rank,
        accumulated=request.accumulation > 1, variant=_variant(request),
    )  # fmt: skip


def _variant(request: MemoryRequest) -> str:
    told = (request.freeze, request.lora_targets, request.lora_dropout)
    return _digest(told) if any(told) else ""


def model_digest(request: MemoryRequest) -> str:
    """Two configurations of one size are one model here: weights and names take no part. Unknown architectures: all counts."""
    try:
        what: object = shape_of(request.config, request.task, request.num_labels)
    except UnknownArchitecture:
        what = request.config
    return _digest((what, request.task, request.num_labels))


def _digest(what: object) -> str:
    import hashlib  # loads OpenSSL, and most plans have nothing to look up

    return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()[:16]


def store_path(environ: Mapping[str, str]) -> Path:
    return state_dir(environ) / "memory.json"


def read_kept(path: Path) -> tuple[Kept, Text | None]:
    """Return what is kept, and why it could not be read where it could not."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept(), None
    except (OSError, msgspec.MsgspecError) as error:
        return Kept(), t("what was measured here before cannot be read ({file}): {why}", file=str(path), why=str(error))  # fmt: skip
    return kept, None


def remember(path: Path, record: Measurement | Tuned) -> None:
    """Keep ``record`` in place of an older one of the same key (and length). Raises OSError."""
    kept, _ = read_kept(path)
    if isinstance(record, Measurement):
        kept.measured = [*[one for one in kept.measured if one.key != record.key], record][-KEPT:]
    else:
        others = [one for one in kept.tuned if (one.key, one.length) != (record.key, record.length)]
        kept.tuned = [*others, record][-KEPT:]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n", 0o600)


def correction_for(kept: Kept, key: Key) -> Measurement | None:
    return next((one for one in reversed(kept.measured) if one.key == key and one.points), None)


def tuned_for(tuned: Iterable[Tuned], key: Key, length: int) -> Tuned | None:
    """Return the batch found for samples at least as long: shorter ones take less, and so does a run without accumulation."""

    def able(one: Tuned) -> bool:
        alike = msgspec.structs.replace(one.key, source=key.source, accumulated=key.accumulated) == key
        return (
            alike and one.length >= length and one.batch > 0 and (one.key.accumulated or not key.accumulated)
        )

    return min(filter(able, tuned), key=lambda one: (one.length, -one.batch), default=None)
