"""Patterns of transformers and its companions: versions, arguments, the hub."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # Disabling PyTorch because PyTorch >= 2.4 is required but found 2.3.0+cu121
    Pattern(
        id="transformers-disables-torch",
        regex=r"Disabling PyTorch because PyTorch >= (?P<floor>[\d.]+) is required but found (?P<found>\S+)",
        meaning=t(
            "transformers switches torch off: it needs {floor} or newer and found {found}. Models then seem to 'require the PyTorch library'.",
            floor="?",
            found="?",
        ),
        advice=t(
            "Install an older transformers, or a newer torch that the driver serves; `doctor check` names both."
        ),
        confirms=("transformers-torch-too-old",),
    ),
    # ImportError: AutoModelForSequenceClassification requires the PyTorch library but it was not found in your environment.
    Pattern(
        id="requires-torch-library",
        regex=r"requires the PyTorch library but it was not found in your environment",
        meaning=t(
            "transformers does not see a usable torch: none is installed in this interpreter, or it is too old for this transformers."
        ),
        advice=t(
            "See which interpreter runs (`which python`), then compare the two versions with `doctor check`."
        ),
        confirms=("transformers-torch-too-old", "needed-package-missing", "torch-install-broken"),
    ),
    # ImportError: cannot import name 'AdamW' from 'transformers'
    Pattern(
        id="removed-import",
        regex=r"cannot import name '(?P<name>\w+)' from '(?P<module>(?:transformers|torch|accelerate|datasets|huggingface_hub|tokenizers|peft)[\w.]*)'",
        meaning=t(
            "{module} has no {name}: it was removed or moved in the installed version, or another package expects another version.",
            module="?",
            name="?",
        ),
        advice=t(
            "If your own code imports it, use its successor (AdamW: torch.optim.AdamW); if a library does, align its version: the traceback's file says which."
        ),
        confirms=(
            "removed-import",
            "peft-transformers-mismatch",
            "peft-accelerate-mismatch",
            "accelerate-transformers-mismatch",
            "dependent-library-too-old",
            "transformers-requirement-out-of-range",
        ),
    ),
    # ImportError: T5Tokenizer requires the SentencePiece library but it was not found in your environment.
    Pattern(
        id="requires-library",
        regex=r"requires the (?P<library>(?!PyTorch)[\w.-]+) library but it was not found in your environment",
        meaning=t(
            "The model or tokenizer needs {library}, which this interpreter does not have.", library="?"
        ),
        advice=t(
            "Install it with the `python -m pip` of the interpreter that runs (SentencePiece: `sentencepiece`, usually with `protobuf`), then restart Python."
        ),
        confirms=("needed-package-missing",),
    ),
    # ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`: Please run `pip install transformers[torch]`
    Pattern(
        id="trainer-needs-accelerate",
        regex=r"Using the `Trainer` with `PyTorch` requires `?accelerate\s*>=\s*(?P<floor>[\d.]+)",
        meaning=t(
            "Trainer needs accelerate {floor} or newer in the interpreter that runs: it is not there, or too old.",
            floor="?",
        ),
        advice=t(
            "`python -m pip install 'accelerate>={floor}'` in that interpreter; in a notebook restart the kernel.",
            floor="?",
        ),
        confirms=("accelerate-transformers-mismatch", "needed-package-missing", "user-site-shadows-env"),
    ),
    # TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'
    Pattern(
        id="unknown-training-argument",
        regex=r"(?:TrainingArguments|Seq2SeqTrainingArguments)\S*\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("This transformers' TrainingArguments has no argument {argument}.", argument="?"),
        advice=t(
            "Renamed ones: evaluation_strategy is eval_strategy, no_cuda is use_cpu; others were removed or never existed."
        ),
        confirms=("removed-argument",),
    ),
    # TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'
    Pattern(
        id="trainer-argument",
        regex=r"Trainer\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("This transformers' Trainer has no argument {argument}.", argument="?"),
        advice=t("tokenizer is processing_class since 5.0 (accepted from 4.46 on)."),
        confirms=("removed-argument",),
    ),
    # TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'
    Pattern(
        id="accelerator-argument",
        regex=r"Accelerator\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t(
            "transformers passes {argument} to an accelerate that no longer (or not yet) has it.",
            argument="?",
        ),
        advice=t(
            "Align the two: an older accelerate (<1.0 for transformers before 4.45) or a newer transformers."
        ),
        confirms=("accelerate-transformers-mismatch",),
    ),
    # TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'
    Pattern(
        id="accelerator-method",
        regex=r"Accelerator\.(?P<method>(?!__init__)\w+)\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t(
            "transformers calls accelerate's {method} with {argument}, which the installed accelerate is too old to know.",
            method="?",
            argument="?",
        ),
        advice=t(
            "`python -m pip install -U accelerate` (keep_torch_compile needs 1.3 or newer), or an older transformers."
        ),
        confirms=("accelerate-transformers-mismatch",),
    ),
    # ImportError: tokenizers>=0.10.1,<0.11 is required for a normal functioning of this module, but found tokenizers==0.8.1rc1.
    Pattern(
        id="requirement-out-of-range",
        regex=r"(?P<wanted>[\w\-]+[<>=!~][^ \n]*) is required for a normal functioning of this module, but found (?P<found>\S+?)\.?(?:$|[ \t])",
        meaning=t("The code that runs needs {wanted} and found {found}.", wanted="?", found="?"),
        advice=t(
            "Install the wanted range into the same interpreter; if it says it is there already, look for two copies."
        ),
        confirms=(
            "transformers-requirement-out-of-range",
            "duplicate-distribution-metadata",
            "user-site-shadows-env",
        ),
    ),
    # RuntimeError: Dataset scripts are no longer supported, but found imdb.py
    Pattern(
        id="dataset-scripts",
        regex=r"Dataset scripts are no longer supported, but found (?P<script>\S+)",
        meaning=t("datasets 4 and newer run no loading scripts ({script}).", script="?"),
        advice=t("Use the data set's Parquet version on the hub, or `pip install 'datasets<4'`."),
        confirms=("datasets-refuses-loading-scripts",),
    ),
    # OSError: We couldn't connect to 'https://huggingface.co' to load this file
    Pattern(
        id="hub-unreachable",
        regex=r"couldn't connect to 'https://\S+' to load|LocalEntryNotFoundError|MaxRetryError.*huggingface|HTTPSConnectionPool\(host='(?:[\w.-]*huggingface\.co|[\w.-]*\bhf\.co|hf-mirror\.com)', port=443\): Max retries exceeded|Network is unreachable|ConnectionError.*huggingface|outgoing traffic has been disabled",
        meaning=t("The model hub cannot be reached from here, and the files are not in the cache."),
        advice=t(
            "In mainland China set HF_ENDPOINT to a mirror before Python starts (AutoDL: `source /etc/network_turbo`), or copy the model folder over."
        ),
        confirms=("platform-proxy-there", "hub-endpoint-invalid", "hub-offline", "mirror-with-xet"),
        hides=("index-timeout", "tls-cut"),
        cleared_by=r"100%\|[█#]",
    ),
)
