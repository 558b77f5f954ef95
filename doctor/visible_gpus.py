"""Which cards a process sees: those that answer, as CUDA_VISIBLE_DEVICES leaves and orders them. Pure, and light to import."""

from __future__ import annotations

from doctor.model import Environment, Facts, Gpu, Gpus


def visible_cards(gpus: Gpus | None, environment: Environment | None) -> list[Gpu]:
    """Return the cards that answer and that CUDA_VISIBLE_DEVICES leaves to a process, in its order."""
    cards = [gpu for gpu in gpus.items if not gpu.error] if gpus else []
    wanted = environment.get("CUDA_VISIBLE_DEVICES") if environment else None
    if wanted is None:
        return cards
    chosen: list[Gpu] = []
    for word in (part.strip() for part in wanted.split(",")):
        card = next(
            (gpu for gpu in cards if word == str(gpu.index) or (word and gpu.uuid.startswith(word))), None
        )
        if card is None:  # as the CUDA runtime does: what stands behind a wrong entry is not seen
            break
        chosen.append(card)
    return chosen


def visible_gpus(facts: Facts) -> list[Gpu]:
    """Return the cards of a machine that answer and that CUDA_VISIBLE_DEVICES leaves to a process, in its order."""
    return visible_cards(facts.gpus.value, facts.environment.value)
