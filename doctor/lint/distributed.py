"""Several processes: parameters that DDP waits for in vain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import t

# Encoders whose AutoModel carries a pooler that only pooler_output uses.
_WITH_POOLER = re.compile(
    r"(?:^|/)(?:chinese-)?(?:bert|roberta|xlm-roberta|macbert|ernie|albert|camembert)(?:[-_]|$)",
    re.IGNORECASE,
)
_NEVER_POOLED = re.compile(r"distil|electra|deberta|modernbert", re.IGNORECASE)


@rule
def unused_pooler_under_ddp(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does DDP wait for the gradients of a pooler that the forward never uses?"""
    wraps = [
        call
        for call in script.calls
        if call.method in ("DistributedDataParallel", "DDP")
        and not {"find_unused_parameters", "static_graph"} & set(call.keywords)
        and not call.has_double_star
    ]
    if not wraps:
        return
    yield from _layers_never_used(script)
    yield from _layers_of_one_branch(script)
    if not _reads_hidden_state_only(script):
        return
    for call in script.methods("from_pretrained"):
        kind, name = (
            call.receiver.rpartition(".")[2],
            script.constant(call.node.args[0], call.scope) if call.node.args else None,
        )
        pooled = kind in ("BertModel", "RobertaModel") or (
            kind == "AutoModel"
            and isinstance(name, str)
            and _WITH_POOLER.search(name)
            and not _NEVER_POOLED.search(name)
        )
        if pooled and "add_pooling_layer" not in call.keywords and not call.has_double_star:
            title = t(
                "The encoder's pooler is in the model, but the forward uses only the hidden states: DDP waits for its gradients and raises."
            )
            advice = t(
                "from_pretrained(..., add_pooling_layer=False), or DDP(..., find_unused_parameters=True) (slower)."
            )
            yield problem("ddp-unused-parameters", "warn", call, title, advice)


def _reads_hidden_state_only(script: Script) -> bool:
    names = {node.attr for node in ast.walk(script.tree) if isinstance(node, ast.Attribute)}
    names |= {
        node.slice.value
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }
    return ("last_hidden_state" in names or _takes_first_output(script)) and "pooler_output" not in names


def _takes_first_output(script: Script) -> bool:
    """``self.bert(...)[0]`` of an encoder that is loaded here, and never ``[1]`` of anything."""
    owners = {name for name, values in script.attributes_given.items() for value, _ in values if _loads(script, value)}  # fmt: skip
    taken = [
        node.slice.value
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and _is_output(script, node.value, owners)
    ]
    return bool(taken) and set(taken) == {0}


def _is_output(script: Script, node: ast.expr, owners: set[str]) -> bool:
    """``self.bert(...)``, or the variable that holds what it returned."""
    if isinstance(node, ast.Call):
        return script.resolve(node.func) in owners
    held = [
        value
        for (_, name), values in script.assigned.items()
        if isinstance(node, ast.Name) and name == node.id
        for _, value in values
    ]
    return bool(held) and all(isinstance(value, ast.Call) and script.resolve(value.func) in owners for value in held)  # fmt: skip


def _loads(script: Script, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and script.resolve(value.func).endswith(".from_pretrained")


_WITH_WEIGHTS = re.compile(r"torch\.nn\.(?:Linear|Bilinear|Embedding|Conv\w+|LSTM|GRU|RNN|LayerNorm|BatchNorm\w+|MultiheadAttention|Transformer\w*)$")  # fmt: skip


def _layers_never_used(script: Script) -> Iterator[Problem]:
    """Find layers that a module makes and that nothing in the script touches again."""
    for node in script.classes.values():
        if not any(base.rpartition(".")[2].endswith("Module") for base in script.bases[node.name]):
            continue
        for made, attribute in _layers_of(script, node):
            if not _is_touched(script, attribute):
                title = t(
                    "self.{name} is made and never used: DDP waits for the gradients of its parameters and raises.",
                    name=attribute,
                )
                advice = t("Remove it, or DDP(..., find_unused_parameters=True) (slower).")
                yield problem("ddp-unused-parameters", "warn", made, title, advice)


def _layers_of_one_branch(script: Script) -> Iterator[Problem]:
    """Find a forward that, by an argument's value, uses either some layers or others."""
    for node in script.classes.values():
        forward = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "forward"), None)  # fmt: skip
        layers = {attribute for _, attribute in _layers_of(script, node)}
        if forward is None or not layers:
            continue
        parameters = {argument.arg for argument in forward.args.args[1:] + forward.args.kwonlyargs}
        for branch, others in _choices(forward.body):
            if not _asks_a_value(branch.test, parameters):
                continue
            here, there = _own(branch.body, layers), _own(others, layers)
            if here - there and there - here:
                title = t(
                    "forward uses self.{name} in some calls and self.{other} in others: DDP waits for the gradients of the one left out, and raises.",
                    name=min(here - there),
                    other=min(there - here),
                )
                advice = t("DDP(..., find_unused_parameters=True), or use both in each step.")
                yield problem("ddp-unused-parameters", "warn", branch, title, advice)


def _choices(body: list[ast.stmt]) -> Iterator[tuple[ast.If, list[ast.stmt]]]:
    """Yield each ``if`` with what runs in its place: its else, or, when it returns, what stands behind it."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.If):
            returns = isinstance(statement.body[-1], ast.Return)
            yield statement, statement.orelse or (body[place + 1 :] if returns else [])


def _asks_a_value(test: ast.expr, parameters: set[str]) -> bool:
    # task == "cls" | stage in (1, 2)
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return False
    compared = test.comparators[0]
    values = compared.elts if isinstance(compared, (ast.Tuple, ast.List)) else [compared]
    constants = [one.value for one in values if isinstance(one, ast.Constant)]
    return test.left.id in parameters and bool(constants) and not any(one is None or isinstance(one, bool) for one in constants)  # fmt: skip


def _own(body: list[ast.stmt], layers: set[str]) -> set[str]:
    return {
        item.attr
        for statement in body
        for item in ast.walk(statement)
        if isinstance(item, ast.Attribute) and item.attr in layers
    }


def _layers_of(script: Script, node: ast.ClassDef) -> Iterator[tuple[ast.Assign, str]]:
    for item in ast.walk(node):
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
            target = item.targets[0]
            if isinstance(target, ast.Attribute) and _WITH_WEIGHTS.match(script.resolve(item.value.func)):
                yield item, target.attr


def _is_touched(script: Script, attribute: str) -> bool:
    """Whether it is read anywhere, by attribute or by a name in a string (getattr, a freeze by name)."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and attribute in node.value)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr")
        for node in ast.walk(script.tree)
    )
