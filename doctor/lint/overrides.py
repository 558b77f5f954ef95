"""Trainer methods that a script overrides, with the arguments that the installed Trainer passes to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import t

# method -> (argument that Trainer passes, first release that does). Source: trainer.py in the wheels 4.44 .. 5.24.
PASSED_SINCE = {
    "compute_loss": ("num_items_in_batch", "4.46"),
    "training_step": ("num_items_in_batch", "4.46"),
    "log": ("start_time", "4.47"),
}


@rule
def overridden_methods(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a Trainer subclass override a method without an argument that the installed Trainer passes?"""
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.ClassDef) or not any(_is_trainer(script, base) for base in node.bases):
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name in PASSED_SINCE:
                argument, since = PASSED_SINCE[method.name]
                if installed.at_least("transformers", since) and not _takes(method, argument):
                    yield _problem(method, argument, since)


def _is_trainer(script: Script, base: ast.expr) -> bool:
    return script.resolve(base) in ("transformers.Trainer", "transformers.Seq2SeqTrainer")


def _takes(method: ast.FunctionDef, argument: str) -> bool:
    names = {item.arg for item in (*method.args.args, *method.args.kwonlyargs)}
    return argument in names or method.args.kwarg is not None


def _problem(method: ast.FunctionDef, argument: str, since: str) -> Problem:
    title = t(
        "Since transformers {since} Trainer passes {argument} to {method}, which this override does not take: TypeError.",
        since=since, argument=argument, method=method.name,
    )  # fmt: skip
    advice = t("Add {argument}=None (or **kwargs) to its arguments.", argument=argument)
    return problem("override-signature-changed", "fail", method, title, advice, method.name)
