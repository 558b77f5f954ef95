"""Patterns of vLLM: memory for its cache, types and numbers of cards that a model does not fit, an engine that ends."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
    Pattern(
        id="kv-cache",
        regex=r"No available memory for the cache blocks|max seq len \((?P<length>\d+)\) is larger than the maximum number of tokens that can be stored in KV cache|To serve at least one request with the models?'s max seq len",
        meaning=t("vLLM: beside the weights no room is left for the cache of even one sequence of the full length."),
        advice=t("A smaller --max-model-len first; then more --gpu-memory-utilization, more cards (--tensor-parallel-size), or quantised weights."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used"),
    ),
    # ValueError: Free memory on device cuda:0 (3.25/23.43 GiB) on startup is less than desired GPU memory utilization (0.96, 22.49 GiB).
    Pattern(
        id="vllm-memory-taken",
        regex=r"Free memory on device[^\n(]*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired GPU memory utilization",
        meaning=t("vLLM wants its share of the card at once, and only {free} of {total} GiB are free: another process holds the rest.", free="?", total="?"),
        advice=t("`doctor check` names who holds it; end that, or lower --gpu-memory-utilization."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "gpu-processes-hidden-by-pid-namespace", "vram-mostly-used"),
    ),
    # RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
    Pattern(
        id="vllm-engine",
        regex=r"Engine core initialization failed|EngineCore failed to start",
        meaning=t("vLLM's engine process ended while starting. This is not the error itself: it stands further up, in the first traceback of EngineCore."),
        advice=t("Search upwards for `EngineCore` and its last line; hand that part to `doctor explain`. With nothing there: memory or the driver, so `doctor check`."),
        confirms=("vram-held-by-process", "driver-too-old-for-torch-cuda", "gpu-arch-not-in-torch-build", "shm-too-small"),
        general=True,
    ),
    # ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100-SXM2-32GB GPU has compute capability 7.0.
    Pattern(
        id="vllm-bfloat16",
        regex=r"Bfloat16 is only supported on GPUs with compute capability of at least 8\.0\. Your (?P<card>.{1,60}?) GPU has",
        meaning=t("vLLM takes the model's own type, bfloat16, and {card} is older than Ampere and has none.", card="?"),
        advice=t("`--dtype half` (dtype='half' in LLM(...)); if the answers turn into nonsense then, the model overflows in float16 and wants a newer card."),
    ),
    # ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).
    Pattern(
        id="vllm-heads",
        regex=r"Total number of (?:attention|key/value|kv) heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<size>\d+)\)",
        meaning=t("The model's {heads} attention heads cannot be dealt out evenly to {size} cards.", heads="?", size="?"),
        advice=t("--tensor-parallel-size a number that divides {heads} (2 or 4 mostly do); more cards through --pipeline-parallel-size or a second server.", heads="it"),
    ),
)  # fmt: skip
