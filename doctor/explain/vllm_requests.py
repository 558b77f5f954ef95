"""Patterns of vLLM and SGLang: lengths, types, models and cards that a server does not take, and what it answers."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: User-specified max_model_len (32768) is greater than the derived max_model_len (max_position_embeddings=8192 or model_max_length=None in model's config.json).
    Pattern(
        id="vllm-length",
        regex=r"max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len \((?:\w+=)?(?P<limit>[\d.]+)",
        meaning=t("{asked} tokens were asked for, and the model's configuration allows {limit}.", asked="?", limit="?"),
        advice=t("--max-model-len {limit} or less. Longer only where the model's page says how (rope scaling); VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 without it gives nonsense.", limit="?"),
    ),
    # ValueError: torch.bfloat16 is not supported for quantization method awq. Supported dtypes: [torch.float16]
    Pattern(
        id="vllm-quantised-type",
        regex=r"(?P<type>torch\.\w+) is not supported for quantization method (?P<method>\w+)\. Supported dtypes: \[(?P<there>[^\]\n]*)\]",
        meaning=t("{method} weights are computed in {there} only, and {type} was asked for (or stands in the model's configuration).", type="?", method="?", there="?"),
        advice=t("--dtype half (float16)."),
    ),
    # RuntimeError: Failed to infer device type   |   RuntimeError: Device string must not be empty
    Pattern(
        id="vllm-no-device",
        regex=r"Failed to infer device type|No platform detected, vLLM is running on UnspecifiedPlatform|RuntimeError: Device string must not be empty",
        meaning=t("vLLM sees no card: none is here, the driver does not answer, or this vLLM is a build for another platform."),
        advice=t("`nvidia-smi` first, then `python -c 'import torch; print(torch.cuda.is_available(), torch.version.cuda)'`; `doctor check` says what is in the way."),
        confirms=("no-gpu-visible", "torch-cpu-only-build", "driver-too-old-for-torch-cuda", "nvml-lost-in-container"),
    ),
    # ValueError: Model architectures ['Qwen3MoeForCausalLM'] are not supported for now.
    Pattern(
        id="vllm-architecture",
        regex=r"Model architectures \[(?P<names>[^\]\n]*)\] (?:are not supported for now|failed to be inspected)|(?P<names2>\w+) has no vLLM implementation",
        meaning=t("This vLLM does not know the model ({names}{names2}), or its own file for it does not import here.", names="", names2=""),
        advice=t("A newer vLLM (the model's page names the first that has it). 'Failed to be inspected': the true error stands above it, mostly a transformers that does not fit (`python -m pip check`)."),
        confirms=("declared-requirement-not-met",),
    ),
    # RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
    Pattern(
        id="sglang-memory",
        regex=r"Please try to (?:increase|decrease|reduce) --mem-fraction-static|Please try increasing --mem-fraction-static",
        meaning=t("SGLang: beside the weights no room is left for the cache."),
        advice=t("See who else holds the card (`doctor check`); a larger --mem-fraction-static (0.85 to 0.9), a smaller --context-length, --tp for more cards, or quantised weights."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used"),
    ),
    # AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current free memory 22.3 GiB. This happens when other processes sharing the same container release GPU memory
    Pattern(
        id="vllm-profiling",
        regex=r"Error in memory profiling\. Initial free memory",
        meaning=t("While vLLM measured the card's memory another process on it gave some back, so the measurement is worthless."),
        advice=t("Wait until the earlier process has ended (`nvidia-smi`), then start again."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram"),
    ),
    # openai.NotFoundError: Error code: 404 - {'object': 'error', 'message': 'The model `gpt-4` does not exist.'}
    Pattern(
        id="served-name",
        regex=r"The model `(?P<name>[^`\n]+)` does not exist",
        meaning=t("The server is asked for a model named {name}, and serves its own under another name.", name="?"),
        advice=t("`curl localhost:8000/v1/models` prints the name; or start it with --served-model-name {name}.", name="NAME"),
    ),
    # ValueError: This model's maximum context length is 4096 tokens. However, you requested 5012 tokens
    Pattern(
        id="request-too-long",
        regex=r"maximum context length is (?P<limit>\d+) tokens\. However, you requested (?P<asked>\d+) tokens|[Pp]rompt \(length (?P<asked2>\d+)\) is longer than the maximum model length of (?P<limit2>\d+)",
        meaning=t("The request needs {asked}{asked2} tokens with its answer, and the server was started for {limit}{limit2}.", asked="", asked2="", limit="", limit2=""),
        advice=t("A shorter prompt or max_tokens, or a larger --max-model-len if the model and the card's memory allow."),
    ),
)  # fmt: skip
