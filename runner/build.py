"""The model: from the hub, a folder, an installed package, or new from a configuration.

Weights are fp32 whatever the precision of the passes. The head (and a new model) is drawn right after
seeding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import init_empty_weights

from runner.adapters import with_adapters
from runner.choices import parse_release, recomputes
from runner.hub import hub_problem
from runner.inputs import InputError, PackageInput, package_folder, verify_files
from runner.plan import Plan
from runner.profile import ModelSection
from runner.seed import seed_everything
from runner.tasks import Task
from runner.text import t
from runner.weightless import take_weights_out


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


def not_opened(model: ModelSection, error: Exception) -> InputError:
    """Return why a model cannot be opened."""
    if model.hub:
        return InputError(hub_problem("model.hub", model.hub, error))
    return InputError(
        t("the model {origin} cannot be opened: {why}", origin=model.path or model.package, why=str(error))
    )


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
        raise not_opened(model, error) from error


def build_model(
    plan: Plan, task: Task, tokenizer: Any, weightless: bool = False
) -> tuple[torch.nn.Module, list[str]]:
    """Return the model in fp32 on the CPU, and the names of the weights that are new (not pretrained).

    ``weightless``: with its parameters on the meta device and nothing read but its configuration; buffers are real.

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
    if weightless:
        built, new = _without_weights(model, config, task, tokenizer), []
    elif model.config:
        config.vocab_size = tokens_needed(tokenizer)
        built = auto_class(task).from_config(config, **_attention(model))
        new = ["*"]
    else:
        built, new = _pretrained(model, config, task)
    new = [*new, *_grown_for(tokenizer, built)]
    built = built.float()
    if model.lora is not None:
        built = with_adapters(built, model.lora, task)
        new = [*new, "lora_*"]
    if recomputes(plan.profile):
        checkpoint_activations(built)
    if weightless:
        take_weights_out(built)  # adapters were put on whole
    return built, new


def _without_weights(model: ModelSection, config: Any, task: Task, tokenizer: Any) -> Any:
    """Return the model as it stands after its embeddings have grown: there are no rows here to make new ones from."""
    needed = tokens_needed(tokenizer)
    config.vocab_size = needed if model.config else max(needed, config.vocab_size)
    with init_empty_weights(include_buffers=False):
        built = auto_class(task).from_config(config, **in_fp32(), **_attention(model))
    built.tie_weights()  # a parameter that is moved to the meta device is another one
    return built


def tokens_needed(tokenizer: Any) -> int:
    """Return how many rows of embeddings its ids ask for: the highest id counts, for there may be gaps between them."""
    return max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=-1))


def _grown_for(tokenizer: Any, model: Any) -> list[str]:
    """Give the embeddings a row for every id; return which are new, as ``name[first:end]``."""
    rows, needed = model.get_input_embeddings().weight.shape[0], tokens_needed(tokenizer)
    if needed <= rows:
        return []
    model.resize_token_embeddings(needed)
    grown = model.get_input_embeddings().weight
    name = next(name for name, parameter in model.named_parameters() if parameter is grown)
    return [f"{name}[{rows}:{needed}]"]


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
    try:
        built, loading = auto_class(task).from_pretrained(
            model_origin(model), config=config, revision=model.revision, ignore_mismatched_sizes=True,
            output_loading_info=True, **in_fp32(), **_attention(model),
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise not_opened(model, error) from error
    mismatched = [
        entry[0] if isinstance(entry, tuple) else str(entry) for entry in loading["mismatched_keys"]
    ]
    return built, sorted({*loading["missing_keys"], *mismatched})


def in_fp32() -> dict[str, Any]:
    """Return what tells ``from_pretrained`` to give fp32 weights, whatever the file holds."""
    # transformers 4.56 renamed torch_dtype to dtype.
    release = parse_release(transformers.__version__)
    return {"dtype" if release >= (4, 56) else "torch_dtype": torch.float32}


def set_dropout(config: Any, probability: float) -> None:
    """Replace every dropout probability of a configuration (their names differ from model to model)."""
    for name, value in list(vars(config).items()):
        if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, (int, float)):
            setattr(config, name, probability)
