"""Two traces of one plan held against each other: the same to the bit, or the first place where they part. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from doctor.model import Record
from runner.text import Text, t

STAGES = ("init", "data", "random", "gradients", "parameters", "optimizer")
"""In the order in which a window computes them: the first that differs is where two runs parted."""


class Parting(Record, frozen=True):
    """The first difference between two traces."""

    window: int
    """Counted from 0, as windows are; shown as step ``window + 1``."""
    stage: str
    """One of :data:`STAGES`, or ``length``: one trace is shorter."""
    names: tuple[str, ...] = ()
    """The first tensors that differ."""
    count: int = 0
    """How many differ in that stage."""
    losses: tuple[str, ...] = ()


class Trace(Record, frozen=True):
    """What a run computed in its first windows; one record a line of ``proof.jsonl``."""

    lines: tuple[dict[str, Any], ...]

    @property
    def sha256(self) -> str:
        """The hash that stands for all of it."""
        return hashlib.sha256(msgspec.json.encode(self.lines, order="sorted")).hexdigest()


class Place(Record, frozen=True):
    """What a proof was made on: as far as these agree, equal bits may be expected."""

    device: str = ""
    """The card's or the CPU's name."""
    driver: str = ""
    python: str = ""
    torch: str = ""
    runner_sha256: str = ""
    """Over the sources of the runner that trained."""
    packages_sha256: str = ""
    """Over name and version of every package."""
    hostname_hash: str = ""
    """Tells machines apart without naming them."""
    threads: int = 0


class ProofRecord(Record, frozen=True):
    """``RUN/proof.json``."""

    schema: int = 1
    made_at: str = ""
    plan_digest: str = ""
    """Of the plan without what the proof itself adds."""
    steps: int = 0
    sha256: str = ""
    level: str = ""
    place: Place = Place()
    lines: tuple[dict[str, Any], ...] = ()
    """The trace itself, so that a later proof can say where it parts from this one."""


def read_trace(content: bytes) -> Trace:
    """Read ``proof.jsonl``; of a window that was tried again the last line counts. Raises ValueError."""
    lines: dict[int, dict[str, Any]] = {}
    for number, raw in enumerate(content.splitlines(), 1):
        try:
            line = msgspec.json.decode(raw)
            lines[int(line["window"])] = line
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} of the trace is not one: {error}") from error
    return Trace(lines=tuple(lines[window] for window in sorted(lines)))


def parting(first: Trace, second: Trace) -> Parting | None:
    """Return the first difference; None: every bit looked at is the same."""
    for one, other in zip(first.lines, second.lines, strict=False):
        for stage in STAGES:
            names = differing(one.get(stage) or {}, other.get(stage) or {})
            if names:
                losses = tuple(str(line.get("loss", "")) for line in (one, other))
                return Parting(
                    window=one["window"], stage=stage, names=tuple(names[:3]), count=len(names), losses=losses
                )
    if len(first.lines) != len(second.lines):
        return Parting(window=min(len(first.lines), len(second.lines)), stage="length")
    return None


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def stage_words(stage: str) -> Text:
    """Return what a stage is, and what makes it differ."""
    words = {
        "init": t("the initial weights: other files, another seed, or weights that are drawn without one"),
        "data": t("the batches: other rows, another order, or a transform that draws its own random numbers"),
        "random": t(
            "the random state before the forward pass: something draws a different number of random numbers"
        ),
        "gradients": t("forward or backward: kernels that add in a changing order, or are chosen by timing"),
        "parameters": t("the update of the weights: an optimizer kernel that adds in a changing order"),
        "optimizer": t("the optimizer's state, though the weights agree"),
        "length": t("one of the two ended sooner"),
    }
    return words.get(stage, t("a stage that this doctor does not know ({stage})", stage=stage))


def level_of(same: bool, before: ProofRecord | None, now: ProofRecord) -> str:
    """Return the level reached: ``none``, ``new-process``, ``new-session`` (an earlier proof of this machine), or
    ``new-machine`` (an earlier proof of another machine with the same card and packages)."""
    if not same:
        return "none"
    if before is None or not comparable(before, now) or before.sha256 != now.sha256:
        return "new-process"
    return "new-session" if before.place.hostname_hash == now.place.hostname_hash else "new-machine"


def comparable(before: ProofRecord, now: ProofRecord) -> bool:
    """Return whether an earlier proof is of the same plan and as many steps: then its hash should be the same."""
    return (before.plan_digest, before.steps) == (now.plan_digest, now.steps)


def level_words(level: str) -> Text:
    words = {
        "none": t("not reproducible: two starts on this machine already differ"),
        "new-process": t("the same bits in a new process on this machine"),
        "new-session": t("the same bits in a new process, and as proved here before"),
        "new-machine": t("the same bits on another machine with the same plan"),
    }
    return words.get(level, t("a level that this doctor does not know ({level})", level=level))


def place_differences(before: Place, now: Place) -> list[str]:
    """Return the names of what differs between the places of two proofs, the machine itself left out."""
    names = ("device", "driver", "python", "torch", "runner_sha256", "packages_sha256", "threads")
    return [name for name in names if getattr(before, name) != getattr(now, name)]
