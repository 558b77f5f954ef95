"""Patterns of models that bring their own Python code (trust_remote_code): what it needs, and which transformers it fits."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

_CODE_IS_OLDER = t(
    "The model's own code (trust_remote_code) was written for an older transformers than the one that runs it."
)

PATTERNS: tuple[Pattern, ...] = (
    # AttributeError: 'DynamicCache' object has no attribute 'get_max_length'. Did you mean: 'get_seq_length'?
    Pattern(
        id="remote-code-cache",
        regex=r"'DynamicCache' object has no attribute '(?:seen_tokens|get_max_length|get_usable_length)'",
        meaning=_CODE_IS_OLDER,
        advice=t("Leave trust_remote_code out where transformers has this model by now; else download the model's files again, or `python -m pip install 'transformers<4.49'`."),
        hides=("remote-code-fails",),
    ),
    # TypeError: ChatGLMTokenizer._pad() got an unexpected keyword argument 'padding_side'
    Pattern(
        id="remote-code-padding",
        regex=r"_pad\(\) got an unexpected keyword argument 'padding_side'",
        meaning=_CODE_IS_OLDER,
        advice=t("Download the model's files again (the authors have mended most), or `python -m pip install 'transformers<4.45'`."),
        hides=("remote-code-fails",),
    ),
    # AttributeError: 'ChatGLMTokenizer' object has no attribute 'tokenizer'. Did you mean: 'tokenize'?   |   AttributeError: 'BaichuanTokenizer' object has no attribute 'sp_model'
    Pattern(
        id="remote-code-tokenizer",
        regex=r"'\w+Tokenizer' object has no attribute '(?:tokenizer|sp_tokenizer|sp_model)'",
        meaning=t("The model's own tokenizer code was written for transformers before 4.34, which asks for the vocabulary while the tokenizer is still being made."),
        advice=t("Download the model's *.py files again (ChatGLM2, ChatGLM3 and Baichuan2 are mended), or go back to what its users went back to: `python -m pip install transformers==4.33.2`."),
        hides=("remote-code-fails",),
    ),
    # AttributeError: 'ChatGLMForConditionalGeneration' object has no attribute '_extract_past_from_model_output'   |   AttributeError: 'GenerationConfig' object has no attribute '_eos_token_tensor'
    Pattern(
        id="remote-code-generation",
        regex=r"_extract_past_from_model_output|'GenerationConfig' object has no attribute '_\w+_tensor'",
        meaning=_CODE_IS_OLDER,
        advice=t("Leave trust_remote_code out where transformers has the model (GLM-4: the files with -hf at the end); else an older transformers: ChatGLM3 4.40.2, GLM-4 and CogAgent 4.47."),
        hides=("remote-code-fails",),
    ),
    # File "/root/.cache/huggingface/modules/transformers_modules/Qwen-7B/modeling_qwen.py", line 1122, in forward AttributeError: 'NoneType' object has no attribute 'shape'
    Pattern(
        id="remote-code-fails",
        regex=r"transformers_modules[/\\](?P<file>[^\"\n]*?\.py)\", line \d+[^\n]*(?:\n[^\n]*){0,2}?(?:AttributeError|TypeError|ImportError|KeyError): ",
        meaning=t("The error comes out of the model's own code ({file}), and such code fits only some releases of transformers.", file="?"),
        advice=t("`grep transformers_version CONFIG_FOLDER/config.json` says which release it was saved with: `python -m pip install transformers==VERSION`. Or download the model's files again, or leave trust_remote_code out where transformers has the model by now."),
        hides=("removed-import",),
    ),
    # ModuleNotFoundError: No module named 'transformers_modules.Qwen1'
    Pattern(
        id="model-folder-with-dot",
        regex=r"No module named 'transformers_modules\.(?P<name>[^'\n]*)'",
        meaning=t("The model's folder is imported as a Python module, and a dot in its name (Qwen1.5 becomes {name}) or a relative path such as . breaks that.", name="?"),
        advice=t("Rename the folder without dots (`mv Qwen1.5-7B Qwen1_5-7B`) and give its whole path, or update transformers, which minds dots since 2024."),
        hides=("module-not-found",),
    ),
    # ImportError: This modeling file requires the following packages that were not found in your environment: transformers_stream_generator, einops. Run `pip install ...`
    Pattern(
        id="modeling-file-requires",
        regex=r"This modeling file requires the following packages that were not found in your environment: (?P<names>[\w, .-]+?)\. Run",
        meaning=t("The model's own code imports {names}, which this interpreter does not have.", names="?"),
        advice=t("`python -m pip install` them with the python that runs ({names}). A name such as configuration_baichuan is a file of the model's folder: download all its *.py files, and load it by the folder's path.", names="NAMES"),
        confirms=("needed-package-missing",),
    ),
    # ValueError: You are attempting to perform batched generation with padding_side='right' this may lead to unexpected behaviour for Flash Attention version of Qwen2.
    Pattern(
        id="flash-right-padding",
        regex=r"attempting to perform batched generation with padding_side='right'",
        meaning=t("With flash attention the model takes every forward that keeps a cache for generation, and generation wants the padding on the left."),
        advice=t("In training and evaluation model.config.use_cache = False; to generate, tokenizer.padding_side = 'left' before tokenising (a trainer or collator may set it back); or attn_implementation='sdpa'."),
    ),
    # ValueError: 130004 is not in list
    Pattern(
        id="chatglm-special-tokens",
        regex=r"ValueError: (?:130004|130001|150004|150001) is not in list",
        meaning=t("ChatGLM-6B finds no begin or mask token in its input: its code, config.json and tokenizer files are of two revisions (the numbers changed in 2023), or your own preparation cut the prompt's end off."),
        advice=t("Download all files of one revision again, *.py and ice_text.model included, and clear ~/.cache/huggingface/modules; in your own preparation cut before the special tokens are added."),
        hides=("remote-code-fails",),
    ),
)  # fmt: skip
