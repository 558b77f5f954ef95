"""Data: worker randomness, tokens and vocabularies, padding, seeds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def numpy_in_workers(script: Script, installed: Installed) -> Iterator[Problem]:
    """Do loader workers all draw the same numpy numbers?"""
    own = any(_draws_from_its_own(script, node) for node in script.classes.values())
    shared = installed.at_least("torch", "1.9") is False and any(
        _draws_numpy(script, node) for node in script.classes.values()
    )
    for call in script.calls:
        if script.kind_of(call) != "DataLoader" or "worker_init_fn" in call.keywords or call.has_double_star:
            continue
        workers = script.constant(call.argument(5, "num_workers"), call.scope)
        if not isinstance(workers, int) or workers < 1 or not (own or shared):
            continue
        title = (
            t(
                "Before torch 1.9 every worker starts with the same numpy seed: {workers} workers give the same random numbers.",
                workers=workers,
            )
            if shared
            else t(
                "The data set draws from a generator of its own, and each of the {workers} workers gets a copy of it in the same state: they give the same random numbers.",
                workers=workers,
            )
        )
        advice = (
            t(
                "Give worker_init_fn that seeds numpy from torch.initial_seed(), or use torch's random numbers."
            )
            if shared
            else t(
                "Make the generator in worker_init_fn (numpy.random.default_rng(torch.initial_seed() % 2**32)), or draw from torch or the global numpy, which the loader seeds."
            )
        )
        yield problem("numpy-worker-seed", "warn", call, title, advice)


def _getters(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return what loader workers call: the methods that give items, and a transform's ``__call__``."""
    return [
        item
        for item in node.body
        if isinstance(item, ast.FunctionDef)
        and item.name in ("__getitem__", "__getitems__", "__iter__", "__call__")
    ]


def _reached(script: Script, node: ast.ClassDef) -> Iterator[ast.AST]:
    """Yield what runs when an item is asked for: the getter, and the functions of this script that it calls."""
    functions = {function.name: function for function in script.functions.values()}
    todo: list[ast.FunctionDef | ast.AsyncFunctionDef] = list(_getters(node))
    seen: set[str] = set()
    while todo:
        for item in ast.walk(todo.pop()):
            yield item
            if isinstance(item, ast.Call):
                name = script.resolve(item.func).rpartition(".")[2]
                if name in functions and name not in seen:
                    seen.add(name)
                    todo.append(functions[name])


def _draws_numpy(script: Script, node: ast.ClassDef) -> bool:
    return any(
        isinstance(item, ast.Call)
        and script.resolve(item.func).startswith("numpy.random.")
        and script.resolve(item.func).rpartition(".")[2] not in ("default_rng", "RandomState", "Generator")
        for item in _reached(script, node)
    )


_GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")


def _draws_from_its_own(script: Script, node: ast.ClassDef) -> bool:
    """The class makes a generator when it is made, and its items are drawn from that one."""
    made = {
        script.resolve(target)
        for item in ast.walk(node)
        if isinstance(item, ast.Assign)
        and isinstance(item.value, ast.Call)
        and script.resolve(item.value.func) in _GENERATORS
        for target in item.targets
        if isinstance(target, ast.Attribute)
    }
    again = any(
        isinstance(item, ast.Assign)
        and any(
            isinstance(target, ast.Attribute) and script.resolve(target) in made for target in item.targets
        )
        for item in _reached(script, node)
    )
    drawn = any(
        isinstance(item, ast.Call)
        and isinstance(item.func, ast.Attribute)
        and script.resolve(item.func.value) in made
        for item in _reached(script, node)
    )
    return drawn and not again and bool(_getters(node))


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
                    "Every text is padded to {length} {length:token|tokens}: on ordinary text most of the work is then padding.",
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
