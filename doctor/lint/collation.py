"""Texts of different length put into one batch: who pads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t

_PADS = ("data_collator", "tokenizer", "processing_class")
# DataCollatorWithPadding, tokenizer.pad(...), pad_sequence | group_texts, block_size, chain(*...): equal lengths by other means
_OTHER_WAYS = re.compile(
    r"collat|\bpad\b|pad_|_pad|padding|group|block_size|chunk|concatenate|chain|pack", re.IGNORECASE
)


@rule
def nobody_pads(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a Trainer get texts that are cut but not padded, and nothing that pads them?"""
    tokenized = _cut_and_not_padded(script)
    if tokenized is None or any(_OTHER_WAYS.search(line.partition("#")[0]) for line in script.lines):
        return
    for trainer in script.calls:
        if (
            trainer.name.rpartition(".")[2] != "Trainer"
            or script.is_local(trainer)
            or trainer.has_double_star
        ):
            continue
        if len(trainer.node.args) > 2 or set(_PADS) & set(trainer.keywords):
            continue
        if "train_dataset" not in trainer.keywords or _one_at_a_time(script):
            continue
        title = t(
            "Nobody pads the texts: the tokenizer (line {line}) does not, and without a tokenizer or data_collator the Trainer does not either. The first batch raises ValueError: expected sequence of length ...",
            line=tokenized.line,
        )
        new = installed.at_least("transformers", "4.46")
        name = "processing_class" if new else "tokenizer"
        advice = t("Give the Trainer {argument}=tokenizer: it then pads each batch to its longest text.", argument=name)  # fmt: skip
        yield problem("texts-not-padded", "warn", trainer, title, advice)


def _cut_and_not_padded(script: Script) -> Call | None:
    """Return the call of a tokenizer of this script, in a function that a data set is mapped with, that does not pad."""
    mapped = {
        node.id
        for call in script.methods("map")
        for node in (*call.node.args, *call.keywords.values())
        if isinstance(node, ast.Name)
    }
    for call in script.calls:
        made_by = script.value_of(call.node.func if isinstance(call.node.func, ast.Name) else None)
        is_tokenizer = isinstance(made_by, ast.Call) and ast.unparse(made_by.func).endswith("Tokenizer.from_pretrained")  # fmt: skip
        if is_tokenizer and call.scope and call.scope[-1] in mapped and not call.has_double_star:
            return call
    return None


def _one_at_a_time(script: Script) -> bool:
    """A batch of one text has one length."""
    return any(
        script.constant(call.keywords.get("per_device_train_batch_size"), call.scope) == 1
        for call in script.calls
    )
