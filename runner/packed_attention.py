"""Whether packed texts see each other: asked of the model itself, by changing one text and looking at the next."""

from __future__ import annotations

import torch

from runner.engine import Engine
from runner.evaluation import evaluation_mode
from runner.text import t
from runner.workbench import Workbench

HALF = 8
"""Tokens of each of the two texts that are tried."""


def say_packing(bench: Workbench) -> None:
    """Say, where texts are packed, whether this model keeps them apart."""
    if not bench.train.packing:
        return
    if texts_are_apart(bench.engine, len(bench.data.tokenizer)):
        bench.journal.note("info", t("packing: texts of one row do not see each other (tried on this model)"))
    else:
        bench.journal.note("warn", t("packing: this model's attention does not part the texts of a row: each sees those "
                                     "before it. No text's first token is predicted from them"))  # fmt: skip


def texts_are_apart(engine: Engine, vocabulary: int) -> bool:
    """Two rows end in the same text and begin with different ones: are the answers to the same text the same?"""
    half = torch.arange(HALF)
    first = torch.stack([half % vocabulary, (half + HALF) % vocabulary])
    second = ((half + 2 * HALF) % vocabulary).expand(2, HALF)
    batch = {
        "input_ids": torch.cat([first, second], dim=1),
        "attention_mask": torch.ones(2, 2 * HALF, dtype=torch.int64),
        "position_ids": half.repeat(2).expand(2, 2 * HALF),
    }
    with evaluation_mode(engine.model), engine.without_gradients():
        answers = engine.logits(engine.to_device(batch)).float()[:, HALF:]
    return bool(torch.allclose(answers[0], answers[1], rtol=1e-2, atol=1e-3 * float(answers.abs().max())))
