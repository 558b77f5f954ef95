"""Patterns of loading models: names, access, files, types that an older transformers does not know."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

_OLDER_THAN_TYPE = t("This transformers is older than the model type {type}.", type="?")
_NEWER_TRANSFORMERS = t(
    "`python -m pip install -U transformers` with the python that runs (the traceback's paths show which), or the minimum that the model's page names; where it ships its own code, trust_remote_code=True after reading it."
)

PATTERNS: tuple[Pattern, ...] = (
    # Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-2-7b/resolve/main/config.json.
    Pattern(
        id="gated-model",
        regex=r"Cannot access gated repo for url https?://[^/\s]+/(?P<model>[\w.-]+/[\w.-]+)|You are trying to access a gated repo|GatedRepoError",
        meaning=t("The model {model} is behind a licence: it must be accepted, and the download needs your token.", model="?"),
        advice=t("Accept it on the model's page, then `hf auth login` or HF_TOKEN; or take the same model from ModelScope."),
        confirms=("pod-variables-missing-over-ssh",),
        hides=("model-not-found", "hub-unreachable"),
    ),
    # OSError: bert-base-chines is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'
    Pattern(
        id="model-not-found",
        regex=r"(?P<model>\S+) is not a local folder and is not a valid model identifier|RepositoryNotFoundError|Repo id must (?:be in the form|use alphanumeric chars)",
        meaning=t("There is no model of this name on the Hub, and no such folder here: a typing error, a private model, or a path that does not exist ({model}).", model="?"),
        advice=t("`ls` the path as the script sees it (its working directory); a private model needs HF_TOKEN."),
        confirms=("pod-variables-missing-over-ssh", "hub-endpoint-invalid"),
    ),
    # ValueError: The checkpoint you are trying to load has model type `qwen3` but Transformers does not recognize this architecture.
    Pattern(
        id="model-type-unknown",
        regex=r"has model type `(?P<type>[\w.-]+)`\s+but Transformers does not recognize this architecture",
        meaning=_OLDER_THAN_TYPE,
        advice=_NEWER_TRANSFORMERS,
        confirms=("transformers-torch-too-old",),
    ),
    # config_class = CONFIG_MAPPING[config_dict["model_type"]]
    Pattern(
        id="model-type-key",
        regex=r"CONFIG_MAPPING\[config_dict\[\"model_type\"\]\](?:(?:[^\n]*\n){1,12}?KeyError: '(?P<type>[\w.-]+)')?",
        meaning=_OLDER_THAN_TYPE,
        advice=_NEWER_TRANSFORMERS,
        confirms=("transformers-torch-too-old", "user-site-shadows-env"),
    ),
    # ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.
    Pattern(
        id="tokenizer-class-unknown",
        regex=r"Tokenizer class (?P<name>\w+) does not exist or is not currently imported",
        meaning=t("The tokenizer class {name} is not in this transformers: it is too old, or the class is the model's own code.", name="?"),
        advice=t("`python -m pip install -U transformers`; models with their own code need trust_remote_code=True."),
    ),
    # ImportError: cannot import name 'Qwen2_5_VLForConditionalGeneration' from 'transformers' (/root/miniconda3/lib/python3.10/site-packages/transformers/__init__.py)
    Pattern(
        id="model-class-unknown",
        regex=r"cannot import name '(?P<name>(?!TF|Flax|Auto)[A-Z]\w*(?:For[A-Z]\w+|Config|Processor|Pipeline))' from '(?P<module>transformers|diffusers)'",
        meaning=t("The installed {module} has no {name}: mostly it is older than that model, which a newer release brought; more rarely a newer one dropped an old class.", module="?", name="?"),
        advice=t("`python -m pip install -U {module}` with the python that runs, or the release that the model's page names; then restart the notebook's kernel.", module="transformers"),
        confirms=("transformers-torch-too-old", "user-site-shadows-env"),
        hides=("removed-import",),
    ),
    # Please pass the argument `trust_remote_code=True` to allow custom code to be run.
    Pattern(
        id="remote-code",
        regex=r"[Pp]lease pass the argument `trust_remote_code=True`|requires you to execute the (?:tokenizer|configuration|modeling) file",
        meaning=t("The model brings its own Python code, which is run only when you allow it."),
        advice=t("Read that code on the model's page, then trust_remote_code=True with a fixed revision."),
    ),
    # OSError: ./out does not appear to have a file named pytorch_model.bin, model.safetensors ...   |   Error no file named pytorch_model.bin
    Pattern(
        id="model-files-missing",
        regex=r"(?P<place>\S+) does not appear to have a file named (?P<file>[\w.]+)|Error no file named (?P<file2>[\w.]+)",
        meaning=t("The folder {place} holds no whole model (missing: {file}): an adapter alone, a checkpoint of another program, or a download cut short.", place="?", file="?"),
        advice=t("`ls -la` it. An adapter (adapter_config.json) is loaded with peft on top of its base model; a trainer's folder keeps models in checkpoint-*."),
    ),
    # OSError: Consistency check failed: file should be of size 4227858712 but has size 2290365199 (model-00045-of-00061.safetensors).
    Pattern(
        id="download-cut",
        regex=r"Consistency check failed: file should be of size (?P<wanted>\d+) but has size (?P<got>\d+)",
        meaning=t("A download was cut short: {got} of {wanted} bytes.", got="?", wanted="?"),
        advice=t("Start it again (it goes on where it stopped); if the size stays, the disk or its quota is full."),
        confirms=("disk-nearly-full", "quota-exceeded-on-target", "hf-cache-on-small-disk"),
    ),
    # huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/...
    Pattern(
        id="too-many-requests",
        regex=r"429 Client Error|HTTP Error 429",
        meaning=t("The server asks for fewer requests: many workers or machines behind one address download at once."),
        advice=t("Log in (HF_TOKEN has a higher limit), download once with `hf download NAME`, and let all ranks read the cache with HF_HUB_OFFLINE=1."),
        hides=("hub-unreachable",),
    ),
    # wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])
    Pattern(
        id="wandb-login",
        regex=r"api_key not configured \(no-tty\)|wandb\.errors\.(?:errors\.)?CommError|wandb: ERROR (?:Network|Error while calling W&B API)",
        meaning=t("Weights & Biases has no key here, or its server cannot be reached, and the run stopped for that."),
        advice=t("`export WANDB_MODE=offline` (upload later with `wandb sync`), or report_to='none'; else `wandb login`."),
        confirms=("pod-variables-missing-over-ssh",),
    ),
    # ValueError: Target modules {'query_key_value'} not found in the base model. Please check the target modules and try again.
    Pattern(
        id="lora-targets",
        regex=r"Target modules (?P<names>.{0,200}?) not found in the base model",
        meaning=t("LoRA was told to change layers ({names}) that this model does not have: the names differ from model to model.", names="?"),
        advice=t("target_modules='all-linear', or the names that `for name, _ in model.named_modules()` prints."),
    ),
    # ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0
    Pattern(
        id="bf16-unsupported",
        regex=r"Your setup doesn't support bf16/gpu|bf16 mixed precision requires|fp16 mixed precision requires a (?:GPU|device)",
        meaning=t("The precision asked for is not to be had here: the card is older than Ampere (compute capability 8.0), or torch sees no card at all."),
        advice=t("On V100, T4 and RTX 20: fp16 with loss scaling. Where the card is newer, torch does not see it: `doctor check`."),
        confirms=("no-gpu-visible", "torch-cpu-only-build", "driver-too-old-for-torch-cuda"),
    ),
    # RuntimeError: FlashAttention only support fp16 and bf16 data type
    Pattern(
        id="flash-attn-type",
        regex=r"FlashAttention only supports? fp16 and bf16 data type",
        meaning=t("FlashAttention works on fp16 and bf16 only, and the model is in fp32."),
        advice=t("dtype=torch.bfloat16 (or float16) in from_pretrained, or train under autocast; else attn_implementation='sdpa'."),
    ),
    # NotImplementedError: Cannot copy out of meta tensor; no data!
    Pattern(
        id="meta-tensor",
        regex=r"Cannot copy out of meta tensor",
        meaning=t("A part of the model was never put into memory: device_map left it on the disk for want of room, or it was built empty and not filled."),
        advice=t("Leave device_map and low_cpu_mem_usage out (always under DeepSpeed and FSDP); where the model does not fit without, load it in 4 bits or take a larger card."),
        confirms=("vram-held-by-process", "vram-mostly-used"),
    ),
    # ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.
    Pattern(
        id="quantized-offload",
        regex=r"Some modules are dispatched on the CPU or the disk",
        meaning=t("Even quantised, the model does not fit the memory that is free on the card."),
        advice=t("See who else holds the card (`doctor check`); 4 bits for 8, a smaller model or a larger card. device_map={'': 0} shows by how much it misses."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used"),
    ),
    # RuntimeError: probability tensor contains either `inf`, `nan` or element < 0
    Pattern(
        id="generation-nan",
        regex=r"probability tensor contains either `inf`, `nan`",
        meaning=t("The model's output is NaN or infinite while it generates: mostly fp16 with a model trained in bf16, or weights that a training has ruined."),
        advice=t("Load it in bfloat16 (float32 on older cards); if the base model answers and yours does not, go back to an earlier checkpoint."),
        confirms=("fp16-on-bf16-pretrained",),
    ),
    # ValueError: `rope_scaling` must be a dictionary with two fields, `type` and `factor`, got {'factor': 8.0, 'rope_type': 'llama3'}
    Pattern(
        id="config-newer",
        regex=r"`rope_scaling`(?: must be a dictionary|'s \w+ field must be)",
        meaning=t("config.json describes the positions in a form that this transformers is too old to read (Llama 3.1's came with 4.43)."),
        advice=_NEWER_TRANSFORMERS,
        confirms=("transformers-torch-too-old",),
    ),
    # AttributeError: 'Qwen2TokenizerFast' object has no attribute 'apply_chat_template'
    Pattern(
        id="no-apply-chat-template",
        regex=r"'(?P<name>\w+)' object has no attribute 'apply_chat_template'",
        meaning=t("{name} has no apply_chat_template: tokenizers have it since transformers 4.34, processors of pictures since later releases of 4.4x.", name="?"),
        advice=_NEWER_TRANSFORMERS,
        confirms=("transformers-torch-too-old", "user-site-shadows-env"),
    ),
)  # fmt: skip
