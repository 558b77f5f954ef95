"""The model and its tokenizer: from the hub, a folder, an installed package, or new from a configuration.

Weights are fp32 whatever the precision of the passes. The head (and a new model) is drawn right after
seeding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import transformers

from runner.adapters import with_adapters
from runner.choices import parse_release, recomputes
from runner.hub import hub_problem
from runner.inputs import InputError, PackageInput, package_folder, verify_files
from runner.plan import Plan
from runner.profile import ModelSection
from runner.rundir import RunDir
from runner.seed import seed_everything
from runner.tasks import Task
from runner.text import t
from runner.vocabulary import SPECIAL_TOKENS, make_vocabulary

PAD_TOKEN = "[PAD]"


def model_origin(model: ModelSection) -> str:
    """Return what ``from_pretrained`` opens: a hub name or a folder whose pinned files were compared.

    Raises:
        InputError: not there, or not what the profile pins.
    """
    if model.hub:
        return model.hub
    folder = Path(model.path) if model.path else package_folder(PackageInput(model.package, model.folder))
    if not folder.is_dir():
        raise InputError(t("model.path: there is no folder {path}", path=str(folder)))
    verify_files(folder, model.files)
    return str(folder)


def load_tokenizer(plan: Plan, run: RunDir, texts: Callable[[], Iterable[str]] | None = None) -> Any:
    """Return the run's tokenizer: the copy in the run directory, else made or opened now and copied there.

    ``texts`` yields the training texts, for a vocabulary made from them.
    """
    model = plan.profile.model
    if run.tokenizer.is_dir():
        return transformers.AutoTokenizer.from_pretrained(str(run.tokenizer))
    if model.config and not model.tokenizer:
        assert texts is not None, "a vocabulary is made before the data is"
        tokenizer = _tokenizer_from(make_vocabulary(texts(), model.vocabulary_size), run)
    else:
        tokenizer = _open_tokenizer(model)
    if tokenizer.pad_token is None:
        tokenizer.add_special_tokens({"pad_token": PAD_TOKEN})
    tokenizer.model_max_length = min(int(tokenizer.model_max_length), positions(model))
    making = run.path / "tokenizer.making"
    tokenizer.save_pretrained(str(making))
    making.rename(run.tokenizer)
    return transformers.AutoTokenizer.from_pretrained(str(run.tokenizer))


def _open_tokenizer(model: ModelSection) -> Any:
    origin = model.tokenizer or model_origin(model)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(origin, revision=model.revision)
        if model.task == "token-classification" and getattr(tokenizer, "add_prefix_space", None) is False:
            # A byte-level tokenizer takes words one by one only where it puts their blank before them itself.
            return transformers.AutoTokenizer.from_pretrained(
                origin, revision=model.revision, add_prefix_space=True
            )
        return tokenizer
    except (OSError, ValueError) as error:
        if origin == model.hub:
            raise _not_opened(model, error) from error
        raise InputError(
            t("the tokenizer {origin} cannot be opened: {why}", origin=origin, why=str(error))
        ) from error


def _not_opened(model: ModelSection, error: Exception) -> InputError:
    if model.hub:
        return InputError(hub_problem("model.hub", model.hub, error))
    return InputError(
        t("the model {origin} cannot be opened: {why}", origin=model.path or model.package, why=str(error))
    )


def _tokenizer_from(vocabulary: list[str], run: RunDir) -> Any:
    folder = run.path / "tokenizer.vocabulary"
    folder.mkdir(exist_ok=True)
    path = folder / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True)
    )
    return transformers.BertTokenizerFast(vocab=str(path), vocab_file=str(path), do_lower_case=True, **names)


def positions(model: ModelSection) -> int:
    """Return how many positions the model has; where its configuration does not say, no limit."""
    config = _config(model)
    count = getattr(config, "max_position_embeddings", None)
    if not isinstance(count, int) or count <= 0:
        return 1 << 30
    # RoBERTa's kin count positions from the padding id on: 514 hold 512.
    return count - 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else count


def _config(model: ModelSection, **changes: Any) -> Any:
    if model.config:
        settings = dict(model.config)
        kind = settings.pop("model_type", None)
        if kind is None:
            raise InputError(t("model.config: model_type is missing (bert, distilbert, gpt2 ...)"))
        return transformers.AutoConfig.for_model(kind, **settings, **changes)
    try:
        return transformers.AutoConfig.from_pretrained(
            model_origin(model), revision=model.revision, **changes
        )
    except (OSError, ValueError) as error:
        raise _not_opened(model, error) from error


def build_model(plan: Plan, task: Task, tokenizer: Any) -> tuple[torch.nn.Module, list[str]]:
    """Return the model in fp32 on the CPU, and the names of the weights that are new (not pretrained).

    Raises:
        InputError: it cannot be opened, or does not fit the tokenizer.
    """
    transformers.utils.logging.set_verbosity_error()  # what is new is told as a note
    transformers.utils.logging.disable_progress_bar()
    model = plan.profile.model
    seed_everything(plan.seeds["init"])
    config = _config(model, **_label_settings(task))
    if model.dropout is not None:
        set_dropout(config, model.dropout)
    config.pad_token_id = tokenizer.pad_token_id
    if model.config:
        config.vocab_size = len(tokenizer)
        built = auto_class(task).from_config(config, **_attention(model))
        new = ["*"]
    else:
        built, new = _pretrained(model, config, task)
    if len(tokenizer) > built.get_input_embeddings().weight.shape[0]:
        built.resize_token_embeddings(len(tokenizer))
    built = built.float()
    if model.lora is not None:
        built = with_adapters(built, model.lora, task)
        new = [*new, "lora_*"]
    if recomputes(plan.profile):
        checkpoint_activations(built)
    return built, new


def checkpoint_activations(model: Any) -> None:
    """Keep fewer activations and compute them again in the backward pass, with the same dropout.

    Raises:
        InputError: this kind of model cannot.
    """
    # transformers 5.24 renamed it and warns of the old name.
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
    enable = next(getattr(model, name) for name in names if hasattr(model, name))
    try:
        enable({"use_reentrant": False})
    except ValueError as error:  # "... does not support gradient checkpointing."
        raise InputError(t("gradient checkpointing: {why}", why=str(error)[:300])) from error
    model.config.use_cache = False


_LANGUAGE_MODELS = {"causal_lm": "AutoModelForCausalLM", "masked_lm": "AutoModelForMaskedLM"}
_CLASSES = {**_LANGUAGE_MODELS, "token_classification": "AutoModelForTokenClassification"}


def auto_class(task: Task) -> Any:
    """Return the class of transformers that has the task's head."""
    return getattr(transformers, _CLASSES.get(task.problem_type, "AutoModelForSequenceClassification"))


def _label_settings(task: Task) -> dict[str, Any]:
    if task.problem_type in _LANGUAGE_MODELS:
        return {}
    settings: dict[str, Any] = {"num_labels": task.outputs}
    if task.problem_type != "token_classification":  # a word transformers' configurations do not know
        settings["problem_type"] = task.problem_type
    if task.classes:
        settings["id2label"] = dict(enumerate(task.classes))
        settings["label2id"] = {name: index for index, name in enumerate(task.classes)}
    return settings


def _attention(model: ModelSection) -> dict[str, Any]:
    return {} if model.attention == "auto" else {"attn_implementation": model.attention}


def _pretrained(model: ModelSection, config: Any, task: Task) -> tuple[Any, list[str]]:
    # transformers 4.56 renamed torch_dtype to dtype.
    release = parse_release(transformers.__version__)
    dtype = {"dtype" if release >= (4, 56) else "torch_dtype": torch.float32}
    try:
        built, loading = auto_class(task).from_pretrained(
            model_origin(model), config=config, revision=model.revision, ignore_mismatched_sizes=True,
            output_loading_info=True, **dtype, **_attention(model),
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise _not_opened(model, error) from error
    mismatched = [
        entry[0] if isinstance(entry, tuple) else str(entry) for entry in loading["mismatched_keys"]
    ]
    return built, sorted({*loading["missing_keys"], *mismatched})


def set_dropout(config: Any, probability: float) -> None:
    """Replace every dropout probability of a configuration (their names differ from model to model)."""
    for name, value in list(vars(config).items()):
        if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, (int, float)):
            setattr(config, name, probability)
