"""CUDA_VISIBLE_DEVICES set by a script: whether CUDA may have read it before. Pure.

The driver reads it once, at the first call that asks for a card. Importing torch asks for none, except in release 1.12.0
(pytorch/pytorch#80876); importing transformers asked for none when 4.38, 4.46, 4.57 and 5.24 were traced on 2026-11-30.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from packaging.version import Version

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.script import Scope
from doctor.lint.values import items_of
from doctor.model import t

VARIABLE = "CUDA_VISIBLE_DEVICES"
BRING_TORCH = {
    "torch", "transformers", "accelerate", "torchvision", "torchaudio", "pytorch_lightning", "lightning", "peft", "trl",
    "diffusers", "sentence_transformers", "deepspeed", "timm", "bitsandbytes",
}  # fmt: skip
ASKS_AT_IMPORT = Version("1.12.0")
"""The torch that asks for a card while it is imported."""
TRACED_TRANSFORMERS = "4.38"
"""The oldest transformers whose import was seen to ask for none."""


@rule
def visible_devices_set_late(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is CUDA_VISIBLE_DEVICES set after torch was imported, where it may have no effect any more?"""
    imports = [
        (line, origin.partition(".")[0])
        for origin, line in script.import_lines.items()
        if origin.partition(".")[0] in BRING_TORCH
    ]
    for line, scope in sorted(_places_that_set(script, VARIABLE)):
        before = {name for imported, name in imports if imported < line}
        if not before or (_ask_for_no_card(before, installed) and _nothing_started(script, line, scope)):
            continue
        title = t(
            "CUDA_VISIBLE_DEVICES is set after the import of torch; once anything has asked for the GPU it has no effect."
        )
        advice = t(
            "Set it in the shell (`CUDA_VISIBLE_DEVICES=1 python ...`), or in the first lines, before any import."
        )
        yield problem("cuda-visible-devices-set-late", "warn", line, title, advice)


def _places_that_set(script: Script, variable: str) -> set[tuple[int, Scope]]:
    """Return line and scope of each ``os.environ[variable] = ...``, ``os.environ.update(...)``, ``setdefault`` or ``os.putenv``."""
    places: set[tuple[int, Scope]] = set()
    for node in ast.walk(script.tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Subscript) and script.resolve(target.value) == "os.environ":
                if script.constant(target.slice) == variable:
                    places.add((target.lineno, _scope_of(script, node)))
    for call in script.named("os.environ.update", "os.environ.setdefault", "os.putenv"):
        first = script.value_of(call.node.args[0], call.scope) if call.node.args else None
        named = items_of(first) or {}
        if variable in named or variable in call.keywords or script.constant(first, call.scope) == variable:
            places.add((call.line, call.scope))
    return places


def _scope_of(script: Script, node: ast.AST) -> Scope:
    names: list[str] = []
    above = script.parents.get(id(node))
    while above is not None:
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.insert(0, above.name)
        above = script.parents.get(id(above))
    return tuple(names)


def _ask_for_no_card(imported: set[str], installed: Installed) -> bool:
    """Whether it is known of all that was imported, in the releases that are installed, that importing it starts nothing."""
    torch = installed.version("torch")
    if torch is None or torch == ASKS_AT_IMPORT or imported - {"torch", "transformers"}:
        return False
    return "transformers" not in imported or installed.at_least("transformers", TRACED_TRANSFORMERS) is True


def _nothing_started(script: Script, line: int, scope: Scope) -> bool:
    """Whether no call that asks for a card runs before ``line``; of a function: called from the script's own body."""
    if not scope:
        return not any(
            _starts_cuda(script, call) for call in script.calls if not call.scope and call.line < line
        )
    called = [call.line for call in script.calls if not call.scope and call.name == scope[0]]
    if len(scope) > 1 or not called:
        return False
    return not any(
        _starts_cuda(script, call)
        for call in script.calls
        if (not call.scope and call.line < min(called)) or (call.scope == scope and call.line < line)
    )


_START_NOTHING = {"manual_seed", "manual_seed_all", "GradScaler", "autocast"}
"""Of torch.cuda: what is kept until CUDA starts by itself."""
_MAKE_A_START = {
    "Accelerator",
    "Trainer",
    "Seq2SeqTrainer",
    "TrainingArguments",
    "pipeline",
    "init_process_group",
}


def _starts_cuda(script: Script, call: Call) -> bool:
    """Whether a call asks for a card, or is one of the script's own functions that holds such a call."""
    if (call.name,) in script.functions:
        return any(_asks(script, inner) for inner in script.calls if inner.scope[:1] == (call.name,))
    return _asks(script, call)


def _asks(script: Script, call: Call) -> bool:
    if call.name.startswith("torch.cuda."):
        return call.method not in _START_NOTHING
    if call.method == "cuda" or script.kind_of(call) in _MAKE_A_START:
        return True
    if call.method == "to":
        return not call.node.args or script.constant(call.node.args[0], call.scope) != "cpu"
    wanted = [call.keywords[name] for name in ("device", "device_map") if name in call.keywords]
    return any(script.constant(value, call.scope) != "cpu" for value in wanted)
