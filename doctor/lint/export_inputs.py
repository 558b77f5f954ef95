"""ONNX export: are the example's tensors, their names and the model's parameters in one order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.values import items_of, strings_in
from doctor.model import Text, t

# How scripts call the three inputs of an encoder.
_ROLES = (
    ("token_type_ids", re.compile(r"token_?type|seg(?:ment)?|\btypes?\b|\btype_ids")),
    ("attention_mask", re.compile(r"mask")),
    ("position_ids", re.compile(r"position|\bpos_ids")),
    ("input_ids", re.compile(r"input_?ids|\bids\b|\btokens?\b|\btoken_ids")),
)
_FORWARD = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
"""The order in transformers' encoders."""
_TOKENIZER = ("input_ids", "token_type_ids", "attention_mask")
"""The order in which a BERT tokenizer returns them."""
# bert-base-chinese, hfl/chinese-roberta-wwm-ext, ernie-3.0: their tokenizers return token_type_ids, second
_BERT = re.compile(r"(?<!distil)(?<!ro)(?<!cam)bert|chinese-roberta|ernie|electra|nezha", re.IGNORECASE)


@rule
def inputs_in_one_order(script: Script, installed: Installed) -> Iterator[Problem]:
    """Do the positional inputs of an export go to the parameters, and get the names, that they are meant for?"""
    for call in script.named("torch.onnx.export"):
        if "kwargs" in call.keywords or call.has_double_star:
            continue
        given = _given(script, call)
        if given is None or len(given) < 2:
            continue
        forward = _forward(script, call)
        names = [
            _role(name) for name in strings_in(script, call.keywords.get("input_names"), call.scope) or ()
        ]
        if _crossed(given, forward):
            yield _mismatch(call, given, forward)
        elif len(names) == len(given) and _crossed(given, names):
            yield _misnamed(call, given, names)
        elif names:
            yield from _fed_in_another_order(script, names)


def _fed_in_another_order(script: Script, names: Sequence[str]) -> Iterator[Problem]:
    """``session.run(None, {inputs[0].name: mask})`` where the first input is something else."""
    for call in script.methods("run"):
        feed = script.value_of(call.argument(1, "input_feed"), call.scope)
        if not isinstance(feed, ast.Dict):
            continue
        for key, value in zip(feed.keys, feed.values, strict=True):
            place = _place(script, key, call)
            role = _role(_text(value))
            if place is not None and place < len(names) and names[place] != role and role in names:
                title = t(
                    "Input {place} of the exported model is {wanted}, and it is fed {given}.",
                    place=place,
                    wanted=names[place],
                    given=role,
                )
                yield problem("onnx-input-order-mismatch", "fail", value, title, _advice())
                break


def _place(script: Script, key: ast.expr | None, call: Call) -> int | None:
    """Return N of ``session.get_inputs()[N].name`` or of ``names[N]``, the list of those names."""
    if isinstance(key, ast.Attribute) and key.attr == "name":
        key = key.value
    if not (isinstance(key, ast.Subscript) and isinstance(key.slice, ast.Constant)):
        return None
    held = script.value_of(key.value, call.scope)
    number = key.slice.value
    inputs = held is not None and "get_inputs" in ast.unparse(held)
    return number if inputs and isinstance(number, int) else None


def _role(text: str) -> str:
    """Return which input a name means; the name itself when it is none of the known ones."""
    words = text.lower().replace("-", "_")
    return next((role for role, pattern in _ROLES if pattern.search(words)), text)


def _crossed(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Two lists hold the same inputs in different order; what is not known of either side is not compared."""
    return any(one != other and one in wanted and other in given for one, other in zip(given, wanted, strict=False))  # fmt: skip


def _mismatch(call: Call, given: Sequence[str], forward: Sequence[str]) -> Problem:
    title = t(
        "The example is passed as ({given}), the model's forward takes ({wanted}): masks and segments change places in the exported model.",
        given=", ".join(given),
        wanted=", ".join(forward[: len(given)]),
    )
    return problem("onnx-input-order-mismatch", "fail", call, title, _advice())


def _misnamed(call: Call, given: Sequence[str], names: Sequence[str]) -> Problem:
    title = t(
        "input_names says ({names}), the example is passed as ({given}): who feeds the exported model by name feeds the wrong inputs.",
        names=", ".join(names),
        given=", ".join(given),
    )
    return problem("onnx-input-order-mismatch", "fail", call, title, _advice())


def _advice() -> Text:
    return t(
        'Pass the tensors in the order of forward, named in the same order: (enc["input_ids"], enc["attention_mask"], enc["token_type_ids"]); or by name, with kwargs= of the dynamo exporter.'
    )


def _given(script: Script, call: Call) -> list[str] | None:
    """Return what each positional input is; None where that cannot be seen, or where they are passed by name."""
    node = script.value_of(call.argument(1, "args"), call.scope)
    if isinstance(node, (ast.Tuple, ast.List)):
        if len(node.elts) == 1 and isinstance(node.elts[0], ast.Starred):
            return _values_of(script, node.elts[0].value, call)
        if node.elts and isinstance(script.value_of(node.elts[-1], call.scope), ast.Dict):
            return None
        return [_role(_text(item)) for item in node.elts]
    if isinstance(node, ast.Call) and script.resolve(node.func) in ("tuple", "list") and node.args:
        return _values_of(script, node.args[0], call)
    return None


def _text(node: ast.expr) -> str:
    """The name that stands for a tensor: ``enc["input_ids"]``, ``enc.input_ids``, ``ids.to(device)``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _text(node.func.value)
    return ast.unparse(node)


def _values_of(script: Script, node: ast.expr, call: Call) -> list[str] | None:
    """``inputs.values()`` of a dictionary or of a tokenizer's answer, ``enc[name] for name in names``."""
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        names = strings_in(script, node.generators[0].iter, call.scope)
        return [_role(name) for name in names] if names else None
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values"
    ):
        return None
    held = script.value_of(node.func.value, call.scope)
    items = items_of(held)
    if items is not None:
        return [_role(name) for name in items]
    asked = isinstance(held, ast.Call) and "tok" in ast.unparse(held.func).lower()
    return list(_TOKENIZER) if asked and _is_bert(script) else None


def _is_bert(script: Script) -> bool:
    """The tokenizer or the model that is loaded here is of BERT's family."""
    told = []
    for call in script.methods("from_pretrained"):
        name = script.constant(call.node.args[0], call.scope) if call.node.args else None
        told += [call.receiver.rpartition(".")[2], name if isinstance(name, str) else ""]
    return any(_BERT.search(one) for one in told)


def _forward(script: Script, call: Call) -> list[str]:
    """Return the parameters of the exported model's forward; empty when it is not known what it takes."""
    node = script.value_of(call.argument(0, "model"), call.scope)
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "from_pretrained":
            return list(_FORWARD) if _is_encoder(script, node) else []
        node = script.value_of(node.func.value, call.scope)  # Net().eval(), Net().to(device)
    name = script.resolve(node.func) if isinstance(node, ast.Call) else ""
    owner = script.classes.get(name)
    for item in owner.body if owner else ():
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            return [_role(one.arg) for one in item.args.args[1:]]
    return []


def _is_encoder(script: Script, node: ast.Call) -> bool:
    kind = script.resolve(node.func.value).rpartition(".")[2] if isinstance(node.func, ast.Attribute) else ""
    given = script.constant(node.args[0]) if node.args else None
    return _is_bert(script) or bool(
        re.search(r"bert|roberta|electra|ernie", f"{kind} {given}", re.IGNORECASE)
    )
