"""Data: worker randomness, tokens and vocabularies, padding, seeds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def numpy_in_workers(script: Script, installed: Installed) -> Iterator[Problem]:
    """Do loader workers all draw the same numpy numbers?"""
    if installed.at_least("torch", "1.9") is not False:
        return
    draws = any(
        _draws_numpy(script, node) for node in ast.walk(script.tree) if isinstance(node, ast.ClassDef)
    )
    for call in script.methods("DataLoader"):
        workers = script.constant(call.keywords.get("num_workers"), call.scope)
        if draws and isinstance(workers, int) and workers > 0 and "worker_init_fn" not in call.keywords:
            title = t(
                "Before torch 1.9 every worker starts with the same numpy seed: {workers} workers give the same random numbers.",
                workers=workers,
            )
            advice = t(
                "Give worker_init_fn that seeds numpy from torch.initial_seed(), or use torch's random numbers."
            )
            yield problem("numpy-worker-seed", "warn", call, title, advice)


def _draws_numpy(script: Script, node: ast.ClassDef) -> bool:
    getters = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__getitem__"]
    return any(
        isinstance(item, ast.Call) and script.resolve(item.func).startswith("numpy.random.")
        for getter in getters
        for item in ast.walk(getter)
    )


# Tokens that most vocabularies of the family hold already; adding them adds nothing.
_USUAL_TOKENS = {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"}
_PAD_FAMILIES = re.compile(r"roberta|t5|bart|xlm|mbart|pegasus|marian|nllb|electra|camembert", re.IGNORECASE)


@rule
def tokens_without_rows(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are tokens added without rows for them in the embedding?"""
    if any(True for _ in script.methods("resize_token_embeddings")):
        return
    loads_model = [
        call
        for call in script.methods("from_pretrained")
        if "Tokenizer" not in call.receiver and "Config" not in call.receiver
    ]
    if not loads_model:
        return
    for call in script.methods("add_tokens", "add_special_tokens"):
        new = [token for token in _literal_tokens(call) if not _known(script, token)]
        if new:
            title = t(
                "{tokens} are added to the tokenizer, but the model's embedding is not resized: their ids lie beyond it.",
                tokens=", ".join(new[:3]),
            )
            advice = t(
                "model.resize_token_embeddings(len(tokenizer)) after adding (len, not vocab_size, which does not count added tokens)."
            )
            yield problem("token-id-out-of-vocab", "fail", call, title, advice)


def _literal_tokens(call: Call) -> list[str]:
    """Return the string literals that ``add_tokens([...])`` or ``add_special_tokens({...})`` is given."""
    if not call.node.args:
        return []
    given = call.node.args[0]
    values = (
        given.values
        if isinstance(given, ast.Dict)
        else given.elts
        if isinstance(given, (ast.List, ast.Tuple, ast.Set))
        else [given]
    )
    flat = [
        item
        for value in values
        for item in (value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value])
    ]
    return [item.value for item in flat if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def _known(script: Script, token: str) -> bool:
    names = [
        script.constant(call.node.args[0], call.scope)
        for call in script.methods("from_pretrained")
        if call.node.args
    ]
    has_pad = any(isinstance(name, str) and _PAD_FAMILIES.search(name) for name in names)
    return token in _USUAL_TOKENS or (has_pad and token in ("<pad>", "<unk>", "<s>", "</s>", "<mask>"))


@rule
def vocabulary_by_splitlines(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a vocabulary file cut at characters that are tokens themselves?"""
    for call in script.methods("splitlines"):
        around = " ".join((*call.scope, ast.unparse(call.node))).lower()
        if "vocab" not in around:
            continue
        title = t(
            "str.splitlines also cuts at U+2028, U+0085 and others that vocabularies hold as tokens: every id after them shifts."
        )
        advice = t("Iterate over the file and strip only the newline: [line.rstrip('\\n') for line in file].")
        yield problem(
            "vocab-file-splitlines-corruption",
            "fail" if _holds_separator(installed) else "warn",
            call,
            title,
            advice,
        )


def _holds_separator(installed: Installed) -> bool:
    data = installed.snapshot.facts.data.value if installed.snapshot else None
    files = data.files if data else ()
    return any(
        "U+2028" in f"{file.note} {file.problem}" or "U+0085" in f"{file.note} {file.problem}"
        for file in files
    )


@rule
def padding_to_the_limit(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is every text padded to the maximum length?"""
    for call in script.calls:
        if (
            script.constant(call.keywords.get("padding"), call.scope) == "max_length"
            and "max_length" in call.keywords
        ):
            length = script.constant(call.keywords["max_length"], call.scope)
            if isinstance(length, int) and length >= 256:
                title = t(
                    "Every text is padded to {length} tokens: on ordinary text most of the work is then padding.",
                    length=length,
                )
                advice = t(
                    "Leave padding to the collator (DataCollatorWithPadding) and group texts of like length."
                )
                yield problem("padding-to-max-length", "note", call, title, advice)


@rule
def seeds(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a training script set its seeds?"""
    steps = [call for call in script.methods("backward") if call.loops]
    trains = steps or [call for call in script.methods("train") if call.receiver.endswith("trainer")]
    seeded = {"manual_seed", "manual_seed_all", "set_seed", "seed_everything", "enable_full_determinism"}
    uses_trainer = any(
        call.method.endswith("TrainingArguments") for call in script.calls
    )  # Trainer seeds itself (seed=42)
    if trains and not uses_trainer and not any(call.method in seeded for call in script.calls):
        title = t("No seed is set before training: the run cannot be repeated.")
        advice = t(
            "transformers.set_seed(42), or random.seed, numpy.random.seed and torch.manual_seed, before the model is built."
        )
        yield problem("seeds-missing", "note", trains[0], title, advice)
