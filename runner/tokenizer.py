"""The run's tokenizer: opened or made once, kept in the run directory, and written beside the model that learnt with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import transformers

from runner.build import model_origin, not_opened, positions
from runner.durable import publish_files
from runner.inputs import InputError
from runner.plan import Plan
from runner.profile import ModelSection
from runner.rundir import RunDir
from runner.text import t
from runner.vocabulary import SPECIAL_TOKENS, make_vocabulary

PAD_TOKEN = "[PAD]"


def load_tokenizer(plan: Plan, run: RunDir, texts: Callable[[], Iterable[str]] | None = None) -> Any:
    """Return the run's tokenizer: the copy in the run directory, else made or opened now and copied there.

    ``texts`` yields the training texts, for a vocabulary made from them.
    """
    model = plan.profile.model
    if run.tokenizer.is_dir():
        return transformers.AutoTokenizer.from_pretrained(str(run.tokenizer))
    if is_made_here(model):
        assert texts is not None, "a vocabulary is made before the data is"
        tokenizer = _tokenizer_from(make_vocabulary(texts(), model.vocabulary_size), run)
    else:
        tokenizer = _open_tokenizer(model)
    if tokenizer.pad_token is None:
        tokenizer.add_special_tokens({"pad_token": PAD_TOKEN})
    tokenizer.model_max_length = min(int(tokenizer.model_max_length), positions(model))
    making = run.path / "tokenizer.making"
    tokenizer.save_pretrained(str(making))
    publish_files(making, run.tokenizer)
    return transformers.AutoTokenizer.from_pretrained(str(run.tokenizer))


def is_made_here(model: ModelSection) -> bool:
    """Is the vocabulary one of the training texts' own?"""
    return bool(model.config) and not model.tokenizer


def save_tokenizer(tokenizer: Any, max_length: int, folder: Path) -> None:
    """Write a tokenizer beside its model; whoever opens it and lets it truncate cuts texts where the training did."""
    own = tokenizer.model_max_length
    tokenizer.model_max_length = max_length
    if tokenizer.is_fast:  # tokenizer.json is also read by programs that have no transformers
        tokenizer.backend_tokenizer.enable_truncation(max_length, direction=tokenizer.truncation_side)
    tokenizer.save_pretrained(str(folder))
    tokenizer.model_max_length = own


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
            raise not_opened(model, error) from error
        raise InputError(
            t("the tokenizer {origin} cannot be opened: {why}", origin=origin, why=str(error))
        ) from error


def _tokenizer_from(vocabulary: list[str], run: RunDir) -> Any:
    folder = run.path / "tokenizer.vocabulary"
    folder.mkdir(exist_ok=True)
    path = folder / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True)
    )
    return transformers.BertTokenizerFast(vocab=str(path), vocab_file=str(path), do_lower_case=True, **names)
