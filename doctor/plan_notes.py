"""What a reader must know to take a plan's numbers for what they are, and what no memory would mend. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.card_state import CardState
from doctor.model import Snapshot
from doctor.plan_options import PlanOptions
from doctor.visible_gpus import visible_gpus
from runner.capability import parse_capability
from runner.memory_request import MemoryRequest
from runner.model_positions import position_limit, trained_positions
from runner.text import Text, t


def obstacle_of(request: MemoryRequest) -> Text | None:
    """Return why the step cannot be taken, however much memory there is."""
    limit = position_limit(request.config)
    if limit is None or request.sequence_length <= limit:
        return None
    return t("It cannot run as asked: the model has positions for {limit} tokens, and {length} are asked for (--seq {limit} is its most).",
             limit=limit, length=request.sequence_length)  # fmt: skip


def notes_of(
    request: MemoryRequest, snapshot: Snapshot, options: PlanOptions, card: CardState | None
) -> Iterator[Text]:
    yield from options.notes
    if options.card is None and not options.on_cpu:
        yield from _of_cards_here(request, snapshot)
    usual = trained_positions(request.config)
    if usual is not None and usual < request.sequence_length:
        yield t("the model was made for {limit} tokens: {length} can be computed, and are more than it has learnt",
                limit=usual, length=request.sequence_length)  # fmt: skip
    if card is not None and request.precision.startswith("bf16") and _is_before_bf16(card):
        yield t("{card} has no bf16 in hardware: fp16 takes as much memory, and is what it is fast in", card=card.name)  # fmt: skip
    if options.memory_limit_bytes is not None and card is not None:
        yield t("as if the device had {size} MB, as asked for", size=options.memory_limit_bytes >> 20)
    if request.cards == 1 and request.sharding != "ddp":
        yield t(
            "{sharding} has nothing to share out on one card: --gpus N plans for N", sharding=request.sharding
        )
    if request.cards > 1:
        yield t("the batch is what each of the {count} cards takes", count=request.cards)


def _of_cards_here(request: MemoryRequest, snapshot: Snapshot) -> Iterator[Text]:
    gpus = snapshot.facts.gpus
    if gpus.status == "failed":
        yield t("the cards here could not be read: {why}", why=str(gpus.why or "-"))
    elif gpus.value is not None and any(gpu.mig_enabled for gpu in gpus.value.items):
        yield t("MIG is on: a process sees an instance's share of the card, not all of its memory")
    here = len(visible_gpus(snapshot.facts))
    if request.cards > max(1, here):
        yield t("{here} {here:card is|cards are} here: planned as if there were {count} like it", here=here, count=request.cards)  # fmt: skip


def _is_before_bf16(card: CardState) -> bool:
    capability = parse_capability(card.compute_capability)
    return capability is not None and capability < (8, 0)
