"""A model's output as answers that a person reads: the same from torch and from ONNX."""

from __future__ import annotations

from typing import Any

import torch

from runner.deploy.session import Batch
from runner.deploy.trained import Trained, encode, unread_tokens, with_a_token
from runner.inputs import InputError
from runner.rows import Row
from runner.spans import is_span_tagging, spans
from runner.text import t

Answer = dict[str, Any]


def answer_rows(trained: Trained, rows: list[Row], top: int) -> list[Answer]:
    """Return one answer a row, in the order of the rows: probabilities rounded to six digits.

    ``cut_tokens`` of an answer: how many of the text's tokens were too many to be read.

    Raises:
        InputError: the model is of a kind that gives no answers.
    """
    if trained.kind == "token-classification":
        return _tagged(trained, rows)
    if trained.kind not in _ANSWERS:
        raise no_answers(trained)
    texts = [[row.text for row in rows]]
    if any(row.pair for row in rows):
        texts.append([row.pair for row in rows])
    batch = encode(trained, *texts)
    return _with_cut(_ANSWERS[trained.kind](trained, batch, top), unread_tokens(trained, batch, *texts))


def no_answers(trained: Trained) -> InputError:
    """Return the sentence that a model of this kind is not asked."""
    return InputError(t("a model of kind {kind} gives no answers to a text", kind=trained.kind))


def _with_cut(answers: list[Answer], unread: list[int]) -> list[Answer]:
    return [{**answer, "cut_tokens": count} for answer, count in zip(answers, unread, strict=True)]


def _classified(trained: Trained, batch: Batch, top: int) -> list[Answer]:
    labels, logits = trained.labels, trained.answer(batch)
    if trained.problem == "regression":
        return [{"value": _rounded(row[0])} if len(row) == 1 else {"values": [_rounded(one) for one in row]} for row in logits]  # fmt: skip
    if trained.problem == "multi_label_classification":
        shares = logits.sigmoid()
        return [
            {"labels": [labels[index] for index in range(len(labels)) if row[index] > 0.5], "scores": _best(row, labels, top)}
            for row in shares
        ]  # fmt: skip
    shares = logits.softmax(-1)
    return [
        {"label": labels[int(row.argmax())], "score": _rounded(row.max()), "scores": _best(row, labels, top)}
        for row in shares
    ]


def _best(shares: torch.Tensor, names: list[str], top: int) -> dict[str, float]:
    order = shares.argsort(descending=True, stable=True)[:top]
    return {names[int(index)]: _rounded(shares[index]) for index in order}


def _rounded(value: torch.Tensor) -> float:
    return round(float(value), 6)


def _tagged(trained: Trained, rows: list[Row]) -> list[Answer]:
    if not trained.tokenizer.is_fast:
        raise InputError(t("token-classification: this tokenizer does not say which word a token is of; "
                           "take a model with a fast tokenizer"))  # fmt: skip
    words = [list(row.words) or row.text.split() for row in rows]
    encoded = trained.tokenizer(
        words, is_split_into_words=True, truncation=True, max_length=trained.max_length, padding=True,
        return_tensors="pt",
    )  # fmt: skip
    batch = with_a_token(
        {name: encoded[name].long() for name in trained.input_names}, trained.tokenizer.pad_token_id or 0
    )
    ids = trained.answer(batch).argmax(-1)
    answers = [
        _one_tagged(trained, words[row], encoded.word_ids(row), ids[row].tolist()) for row in range(len(rows))
    ]
    return _with_cut(answers, unread_tokens(trained, batch, words, is_split_into_words=True))


def _one_tagged(trained: Trained, words: list[str], places: list[int | None], ids: list[int]) -> Answer:
    """A word's tag stands on its first token; words beyond the longest length have none."""
    tags: dict[int, str] = {}
    for place, index in zip(places, ids, strict=False):  # a text without a token got one that is no word's
        if place is not None:
            tags.setdefault(place, trained.labels[index])
    found = [tags.get(place, "") for place in range(len(words))]
    answer: Answer = {"words": words, "tags": found}
    if is_span_tagging(trained.labels):
        answer["spans"] = [
            {"type": kind, "text": " ".join(words[first : last + 1]), "first_word": first, "last_word": last}
            for kind, first, last in sorted(spans([tag or "O" for tag in found]), key=lambda one: one[1])
        ]
    return answer


def _filled(trained: Trained, batch: Batch, top: int) -> list[Answer]:
    """A text without a gap gets an answer without one: among many, it is the file's business."""
    logits = trained.answer(batch)
    answers: list[Answer] = []
    for row, ids in enumerate(batch["input_ids"]):
        places = (ids == trained.tokenizer.mask_token_id).nonzero().flatten().tolist()
        answers.append({"gaps": [_tokens(trained, logits[row, place].softmax(-1), top) for place in places]})
    if len(answers) == 1 and not answers[0]["gaps"]:
        raise InputError(t("a masked language model fills gaps: write {mask} where one is", mask=trained.tokenizer.mask_token or "[MASK]"))  # fmt: skip
    return answers


def _tokens(trained: Trained, shares: torch.Tensor, top: int) -> dict[str, float]:
    best = shares.topk(min(top, len(shares)))
    names = [trained.tokenizer.decode([int(index)]).strip() for index in best.indices]
    return {name: _rounded(value) for name, value in zip(names, best.values, strict=True)}


_ANSWERS = {"classification": _classified, "masked-lm": _filled}


def continue_texts(trained: Trained, rows: list[Row], new_tokens: int) -> list[Answer]:
    """Return what a causal language model goes on with, the likeliest token each time, one text after another."""
    answers: list[Answer] = []
    for row in rows:
        batch = encode(trained, [row.text])
        room = max(1, trained.max_length - batch["input_ids"].shape[1])
        pad = trained.tokenizer.pad_token_id
        with torch.inference_mode():
            made = trained.model.generate(
                **{name: batch[name] for name in ("input_ids", "attention_mask") if name in batch},
                max_new_tokens=min(new_tokens, room), do_sample=False,
                pad_token_id=pad if pad is not None else trained.tokenizer.eos_token_id,
            )  # fmt: skip
        text = trained.tokenizer.decode(made[0, batch["input_ids"].shape[1] :], skip_special_tokens=True)
        answers.append({"continuation": text, "cut_tokens": unread_tokens(trained, batch, [row.text])[0]})
    return answers
