"""Rules about tokenizers and vocabularies: tokens without a row in the model, files read the wrong way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.values import strings_in
from doctor.model import t

# Tokens that most vocabularies of the family hold already; adding them adds nothing.
_USUAL_TOKENS = {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"}


# Published with at least a score more rows in the embedding than the tokenizer has tokens (a round number of rows is faster).
_WITH_SPARE_ROWS = re.compile(
    r"qwen|phi-?\d|neox|pythia|\bt5|flan|bloom|olmo|deepseek|glm|yuan", re.IGNORECASE
)
_FEW = 20

# Published without these in the tokenizer's files, with rows for them in the embedding: its own examples add them.
_OF_YUAN = {"<eod>", "<predict>", "<FIM_SUFFIX>"}

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
        own, models = _loaded_names(script, call, loads_model)
        if own and None not in models and own not in models:
            continue  # the tokenizer of a model that is not loaded here
        tokens = _tokens(script, call)
        new = [token for token in tokens or () if not _known(script, token)]
        names = [name for name in models if name is not None]
        if _OF_YUAN & set(new) or (0 < len(new) <= _FEW and any(map(_WITH_SPARE_ROWS.search, names))):
            continue
        if new or tokens is None:
            roomy = bool(names) and all(map(_may_have_spare_rows, names))
            title = (
                t(
                    "{tokens} are added to the tokenizer, and the embedding is not resized: unless the checkpoint has rows to spare, their ids lie beyond it.",
                    tokens=", ".join(new[:3]),
                )
                if new and roomy
                else t(
                    "{tokens} are added to the tokenizer, but the model's embedding is not resized: their ids lie beyond it.",
                    tokens=", ".join(new[:3]),
                )
                if new
                else t(
                    "Tokens are added to the tokenizer, and the model's embedding is not resized: new ones have ids beyond it."
                )
            )
            advice = t(
                "model.resize_token_embeddings(len(tokenizer)) after adding (len, not vocab_size, which does not count added tokens)."
            )
            certain = new or (own in models and _is_of_the_hub(own))
            yield problem(
                "token-id-out-of-vocab", "fail" if certain and not roomy else "warn", call, title, advice
            )


def _loaded_names(script: Script, call: Call, models: list[Call]) -> tuple[str | None, set[str | None]]:
    """Return the name that the tokenizer of ``call`` was loaded by, and those of the models; None: not written here."""
    loads = [
        value
        for (_, name), values in script.assigned.items()
        if name == call.receiver
        for _, value in values
        if isinstance(value, ast.Call)
        and script.resolve(value.func).endswith(".from_pretrained")
        and value.args
    ]
    own = {script.constant(load.args[0], call.scope) for load in loads}
    name = own.pop() if len(own) == 1 else None
    others = {
        script.constant(model.node.args[0], model.scope) if model.node.args else None for model in models
    }
    return name if isinstance(name, str) else None, {one if isinstance(one, str) else None for one in others}


def _may_have_spare_rows(name: str) -> bool:
    """Return whether a checkpoint's embedding may be longer than its tokenizer: known to be, or a folder of unknown kind."""
    folder = name.startswith(("/", ".", "~")) and not re.search(
        r"llama|gpt-?2|bert|mistral", name, re.IGNORECASE
    )
    return folder or _WITH_SPARE_ROWS.search(name) is not None


def _is_of_the_hub(name: str | None) -> bool:
    """Return whether a model is named as the hub names it, so that its embedding is as it was published."""
    return name is not None and re.fullmatch(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?", name) is not None


def _tokens(script: Script, call: Call) -> list[str] | None:
    """Return the tokens that ``add_tokens([...])`` or ``add_special_tokens({...})`` is given; None: they are not written here.

    ``tokenizer.eos_token`` and its like are in the vocabulary already.
    """
    given = script.value_of(call.argument(0, "new_tokens"), call.scope)
    given = given if given is not None else call.keywords.get("special_tokens_dict")
    if given is None:
        return []
    values = (
        given.values
        if isinstance(given, ast.Dict)
        else given.elts
        if isinstance(given, (ast.List, ast.Tuple, ast.Set))
        else [given]
    )
    found: list[str] = []
    for value in values:
        several = strings_in(script, value, call.scope)
        one = script.constant(value, call.scope)
        if several is not None:
            found += several
        elif isinstance(one, str):
            found.append(one)
        elif not isinstance(value, ast.Attribute):
            return found or None
    return found


# Vocabularies of these hold [PAD] and its like; those of GPT-2, Llama, Qwen and others do not.
_BERT_LIKE = re.compile(r"bert|electra|ernie|macbert|deberta|mpnet|minilm|bge|gte|nezha|xlnet", re.IGNORECASE)


# What published chat and base models hold already, by family.
_PUBLISHED = {
    "<|im_start|>": "qwen|internlm", "<|im_end|>": "qwen|internlm", "<|endoftext|>": "qwen|gpt|phi|falcon",
    "<start_of_turn>": "gemma", "<end_of_turn>": "gemma", "<s>": "llama|mistral|baichuan|orion|internlm|yi",
    "</s>": "llama|mistral|baichuan|orion|internlm|yi|bloom", "<unk>": "llama|mistral|baichuan|internlm|bloom|yi",
    "<|eot_id|>": "llama-3", "<|begin_of_text|>": "llama-3",
}  # fmt: skip


def _known(script: Script, token: str) -> bool:
    names = [
        script.constant(call.node.args[0], call.scope)
        for call in script.methods("from_pretrained")
        if call.node.args
    ]
    classes = [call.receiver.rpartition(".")[2] for call in script.methods("from_pretrained")]
    told = [name for name in names if isinstance(name, str)] + [
        name for name in classes if not name.startswith("Auto")
    ]
    written = [name for name in names if isinstance(name, str)]
    family = _PUBLISHED.get(token)
    if family and (not written or any(re.search(family, name, re.IGNORECASE) for name in written)):
        return True  # also where the model is chosen on the command line: such a token belongs to one that has it
    has_pad = any(_PAD_FAMILIES.search(name) for name in told)
    bert = not told or any(_BERT_LIKE.search(name) for name in told)
    return (token in _USUAL_TOKENS and bert) or (
        has_pad and token in ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    )


@rule
def vocabulary_by_splitlines(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a vocabulary file cut at characters that are tokens themselves?"""
    for call in script.calls:
        if call.method != "splitlines" and call.name != "codecs.open":
            continue
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
