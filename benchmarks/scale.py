"""What a run takes past this machine, on paper: memory a card and bytes on the wire, by strategy and number of cards.

``python -m benchmarks.scale`` prints the tables of docs/scale.md. Nothing is measured here: memory is `doctor plan`'s
arithmetic, communication the volumes of the collectives that each strategy makes (ring algorithms), in bf16 where the
strategy sends bf16. Times divide them by a bandwidth that is named, so they are floors, not predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from runner.estimate import MemoryRequest, estimate

GIB = 1 << 30
CARDS = (8, 64, 256, 1024)
CARD_GIB = 80
LINK_BYTES_PER_S = {
    "NVLink in a node (450 GB/s)": 450e9,
    "400 Gbit/s between nodes": 50e9,
    "100 Gbit/s between nodes": 12.5e9,
}
Strategy = Literal["ddp", "zero1", "zero2", "zero3"]
STRATEGIES: tuple[Strategy, ...] = ("ddp", "zero1", "zero2", "zero3")
LLAMA: dict[str, Any] = {"model_type": "llama", "vocab_size": 128256, "tie_word_embeddings": False}
MODELS: dict[str, dict[str, Any]] = {
    "8B": {**LLAMA, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336},
    "70B": {**LLAMA, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672},
}  # fmt: skip


def step(config: dict[str, Any], strategy: Strategy, cards: int, offload: bool = False) -> MemoryRequest:
    """One micro-batch of one sequence of 2,048 tokens, autocast bf16 over fp32 weights, gradient checkpointing."""
    return MemoryRequest(
        config=config, task="causal-lm", precision="bf16", batch_size=1, sequence_length=2048,
        gradient_checkpointing=True, sharding=strategy, cards=cards, offload=offload,
    )  # fmt: skip


def wire_bytes(
    parameters: int, strategy: Strategy, cards: int, gradient_bytes: int = 4, weight_bytes: int = 4
) -> float:
    """Return what one card sends in one update.

    A ring all-reduce sends ``2 (n-1)/n`` of the tensor, a reduce-scatter or an all-gather ``(n-1)/n``. DDP all-reduces the
    gradients; ZeRO-1 and 2 reduce-scatter them and all-gather the weights; ZeRO-3 (FSDP) all-gathers the weights for the
    forward and again for the backward, and reduce-scatters the gradients.
    """
    share = (cards - 1) / cards
    gradients, weights = parameters * gradient_bytes * share, parameters * weight_bytes * share
    return {"ddp": 2 * gradients, "zero1": gradients + weights, "zero2": gradients + weights, "zero3": gradients + 2 * weights}[strategy]  # fmt: skip


def memory_table(name: str) -> Iterator[str]:
    yield f"| {name}, GiB a card | " + " | ".join(f"{cards} cards" for cards in CARDS) + " |"
    yield "| --- |" + " --- |" * len(CARDS)
    for strategy in STRATEGIES:
        for offload in (False, True):
            if strategy == "ddp" and offload:
                continue
            cells = []
            for cards in CARDS:
                peak = estimate(step(MODELS[name], strategy, cards, offload)).peak_bytes / GIB
                cells.append(f"{peak:.0f}" + ("" if peak <= CARD_GIB else " (too much)"))
            yield f"| {strategy}{', optimizer on the host' if offload else ''} | " + " | ".join(cells) + " |"


def wire_table(name: str) -> Iterator[str]:
    parameters = parameters_of(name)
    heads = " | ".join(f"{cards} cards" for cards in CARDS)
    yield f"| {name} ({parameters / 1e9:.1f} B parameters), GB that a card sends an update | {heads} |"
    yield "| --- |" + " --- |" * len(CARDS)
    for strategy in STRATEGIES:
        cells = [f"{wire_bytes(parameters, strategy, cards) / 1e9:.0f}" for cards in CARDS]
        yield f"| {strategy} | " + " | ".join(cells) + " |"


def seconds_table(name: str) -> Iterator[str]:
    """Floors: the bytes over one link's bandwidth, nothing hidden behind computing and nothing lost to latency."""
    yield f"| {name} on 64 cards, seconds an update at least | " + " | ".join(LINK_BYTES_PER_S) + " |"
    yield "| --- |" + " --- |" * len(LINK_BYTES_PER_S)
    for strategy in STRATEGIES:
        sent = wire_bytes(parameters_of(name), strategy, 64)
        cells = [f"{sent / rate:.1f}" for rate in LINK_BYTES_PER_S.values()]
        yield f"| {strategy} | " + " | ".join(cells) + " |"


def parameters_of(name: str) -> int:
    return estimate(step(MODELS[name], "zero3", 8)).parameters


def tables() -> list[str]:
    """Return every table of docs/scale.md as lines, an empty one behind each."""
    makers = (memory_table, wire_table, seconds_table)
    return [line for name in MODELS for maker in makers for line in (*maker(name), "")]


def main() -> None:
    print("\n".join(tables()))


if __name__ == "__main__":
    main()
