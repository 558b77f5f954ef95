"""Patterns of quantised weights and adapters: bitsandbytes, GPTQ and AWQ, peft."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes
    Pattern(
        id="package-metadata-missing",
        regex=r"No package metadata was found for (?P<name>(?!The\b)[\w.-]+)|The '(?P<name2>[\w.<>=!-]+)' distribution was not found and is required by",
        meaning=t("{name}{name2} is not installed in the interpreter that runs.", name="", name2=""),
        advice=t("`python -m pip install NAME` with the `python` that runs; in a notebook `%pip install`, then restart the kernel."),
        confirms=("needed-package-missing", "user-site-shadows-env"),
        hides=("library-demanded",),
    ),
    # ValueError: `.to` is not supported for `4-bit` or `8-bit` bitsandbytes models. Please use the model as it is
    Pattern(
        id="quantized-to",
        regex=r"`\.to` is not supported for `?(?:4-bit|8-bit)|Calling `(?:cuda|to|half|float)\(\)`[^\n]{0,20} is not supported for `?(?:4-bit|8-bit)",
        meaning=t("A model in 4 or 8 bits is on its card already and cannot be moved or cast."),
        advice=t("Take .to(), .cuda() and .half() on it away; device_map={'': 0} says where it goes. If a library does it, that library is too old for it (`python -m pip install -U accelerate transformers`)."),
        confirms=("dependent-library-too-old",),
    ),
    # RuntimeError: only Tensors of floating point dtype can require gradients
    Pattern(
        id="quantized-requires-grad",
        regex=r"only Tensors of floating point (?:and complex )?dtype can require gradients",
        meaning=t("Weights of whole numbers (4 or 8 bits, or ids) were told to be trained."),
        advice=t("Train adapters on them: prepare_model_for_kbit_training(model), then get_peft_model; model.train() alone trains nothing quantised."),
    ),
    # Error named symbol not found at line 529 in file /src/csrc/ops.cu   |   Error no kernel image is available for execution on the device at line 167 in file /src/csrc/ops.cu
    Pattern(
        id="bitsandbytes-kernel",
        regex=r"Error (?:named symbol not found|no kernel image is available[^\n]{0,40}|invalid device function) at line \d+ in file \S*ops\.cu",
        meaning=t("bitsandbytes' binary has no code for this card: the card is newer than it, or older than its 8-bit kernels (before Turing)."),
        advice=t("`python -m pip install -U bitsandbytes` (RTX 50 and B200: 0.45.3 or newer); on P100 and older: 4 bits, not 8."),
        confirms=("bitsandbytes-missing-cuda-binary", "gpu-arch-not-in-torch-build"),
        hides=("no-kernel-image",),
    ),
    # Error invalid configuration argument at line 119 in file /src/csrc/ops.cu
    Pattern(
        id="bitsandbytes-failed",
        regex=r"Error [a-z][\w ,]{3,60} at line \d+ in file \S*ops\.cu",
        meaning=t("A kernel of bitsandbytes failed; the line names the kernel's file, not yours. 'Invalid configuration argument': a tensor too large or empty for it."),
        advice=t("`python -m pip install -U bitsandbytes`; then shorter sequences or a smaller micro-batch, and look for empty samples; optim='adamw_torch' shows whether its optimizer is the one."),
        general=True,
    ),
    # ImportError: Loading a GPTQ quantized model requires optimum (`pip install optimum`)   |   ImportError: Loading an AWQ quantized model requires auto-awq library
    Pattern(
        id="quantizer-missing",
        regex=r"Loading an? (?P<method>[\w-]+) quantized model requires (?P<library>[\w-]+)|Using `(?P<method2>\w+)` quantization requires (?P<library2>[\w-]+)",
        meaning=t("The model is quantised with {method}{method2}, and {library}{library2}, which reads it, is not here.", method="", method2="", library="", library2=""),
        advice=t("GPTQ: `python -m pip install optimum gptqmodel`; AWQ: the model's page names the library that goes with your transformers; or the model's unquantised weights."),
        confirms=("needed-package-missing",),
    ),
    # ValueError: You need to pass `dataset` in order to quantize your model
    Pattern(
        id="quantised-anew",
        regex=r"You need to pass `dataset` in order to quantize your model",
        meaning=t("transformers means to quantise the model itself: a GPTQConfig was passed for weights that are quantised already, or config.json has lost its quantization_config."),
        advice=t("For a model that is quantised already pass no quantization_config of your own (or one with the same bits and disable_exllama alone), and keep its config.json; to quantise one, GPTQConfig(bits=4, dataset='c4', tokenizer=tokenizer)."),
    ),
    # TypeError: LoraConfig.__init__() got an unexpected keyword argument 'corda_config'
    Pattern(
        id="adapter-from-newer-peft",
        regex=r"(?P<name>Lora|AdaLora|LoHa|LoKr|IA3|PromptTuning|PrefixTuning|Peft)Config\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("The adapter was saved by a newer peft than the one that loads it: its configuration holds {argument}, which this one does not know.", argument="?"),
        advice=t("`python -m pip install -U peft`; where that cannot be, take the line out of adapter_config.json (if its value is null)."),
        confirms=("dependent-library-too-old",),
        hides=("library-argument",),
    ),
    # size mismatch for base_model.model.model.embed_tokens.weight: copying a param with shape torch.Size([32005, 4096]) from checkpoint, the shape in current model is torch.Size([32000, 4096]).
    Pattern(
        id="vocabulary-size-mismatch",
        regex=r"size mismatch for (?P<weight>\S*(?:embed_tokens|word_embeddings|lm_head|wte|shared)\S*): copying a param with shape torch\.Size\(\[(?P<saved>\d+), \d+\]\) from checkpoint, the shape in current model is torch\.Size\(\[(?P<now>(?!0\])\d+), \d+\]\)",
        meaning=t("The saved weights are for a vocabulary of {saved}, the model that was built has {now}: tokens were added before the training.", saved="?", now="?"),
        advice=t("tokenizer = AutoTokenizer.from_pretrained(the adapter's own folder), then model.resize_token_embeddings(len(tokenizer)) (here {saved}) before the adapter is loaded.", saved="?"),
        confirms=("checkpoint-keys-not-loaded",),
        hides=("state-dict",),
    ),
    # size mismatch for base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight: copying a param with shape torch.Size([32, 1024]) from checkpoint, the shape in current model is torch.Size([16, 1024]).
    Pattern(
        id="lora-size-mismatch",
        regex=r"size mismatch for \S*lora_[AB]\S*: copying a param with shape torch\.Size\(\[(?P<saved>[\d, ]+)\]\) from checkpoint, the shape in current model is torch\.Size\(\[(?P<now>[\d, ]+)\]\)",
        meaning=t("The adapter does not fit the model it is laid on ([{saved}] and [{now}]): another rank r, or another base model than it was trained on.", saved="?", now="?"),
        advice=t("Load it with PeftModel.from_pretrained(base, FOLDER), which takes r from adapter_config.json; base_model_name_or_path there names the model it belongs to."),
        hides=("state-dict",),
    ),
    # ValueError: Cannot merge LORA layers when the model is loaded in 8-bit mode   |   ValueError: Cannot merge LORA layers when the model is gptq quantized
    Pattern(
        id="merge-quantized",
        regex=r"Cannot merge LORA layers when the model is (?P<how>loaded in \d-bit mode|gptq quantized)",
        meaning=t("An adapter cannot be merged into quantised weights ({how}).", how="?"),
        advice=t("Load the base without quantisation (dtype=torch.bfloat16, device_map='cpu' where the card is too small), PeftModel.from_pretrained, merge_and_unload, save_pretrained; quantise the result again afterwards."),
    ),
    # ValueError: Can't find 'adapter_config.json' at 'out/checkpoint-500'
    Pattern(
        id="adapter-config-missing",
        regex=r"Can't find 'adapter_config\.json' at '(?P<place>[^'\n]+)'",
        meaning=t("{place} holds no adapter: another folder, a full model, or a training that was ended before it saved.", place="?"),
        advice=t("`ls -la` it; adapters of a Trainer lie in checkpoint-*, a full model is loaded without peft."),
    ),
    # ValueError: Found modules on cpu/disk. Using Exllama or Exllamav2 backend requires all the modules to be on GPU.
    Pattern(
        id="exllama-on-cpu",
        regex=r"Using Exllama[^\n]{0,40} requires all the modules to be on GPU",
        meaning=t("A part of the quantised model found no room on the card, and the fast kernels work only with all of it there."),
        advice=t("See who else holds the card (`doctor check`); device_map={'': 0}, a smaller model, or GPTQConfig(bits=4, use_exllama=False), slower."),
        confirms=("vram-held-by-process", "vram-mostly-used"),
    ),
    # RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.   |   Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1.
    Pattern(
        id="saved-on-other-device",
        regex=r"Attempting to deserialize object on (?:a )?CUDA device",
        meaning=t("The file was saved from a card that this process does not have: no card at all, or fewer."),
        advice=t("torch.load(path, map_location='cpu'), then move the model; if a card should be there, `doctor check` says why it is not seen."),
        confirms=("no-gpu-visible", "torch-cpu-only-build", "driver-too-old-for-torch-cuda", "cuda-visible-devices-invalid"),
    ),
    # ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group
    Pattern(
        id="optimizer-groups",
        regex=r"loaded state dict (?:contains a parameter group that doesn't match the size of optimizer's group|has a different number of parameter groups)",
        meaning=t("The checkpoint's optimizer belongs to another set of trained parameters: frozen layers, LoRA or weight decay groups were changed since."),
        advice=t("Resume with the settings of then; or load the weights alone (from_pretrained of the checkpoint) and start a new run from them."),
    ),
)  # fmt: skip
