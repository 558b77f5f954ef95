"""Checkpoints and determinism: what is saved and read, and activation checkpointing with frozen inputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.values import items_of
from doctor.model import t


@rule
def checkpoint_state(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a saved checkpoint lack state that resuming needs, or is a key read that was never written?"""
    saves = [(call, saved) for call in script.named("torch.save") if (saved := _saved_by(script, call)) is not None]  # fmt: skip
    written = {key for _, saved in saves for key in saved}
    read = _keys_read(script)
    for call, saved in saves:
        resumes = bool(_PLACES & set(saved) & read)
        if not _is_training_state(saved, resumes):
            continue
        missing = _state_not_saved(script, call, saved, resumes)
        misread = sorted(key for key in read if key not in written and _near(key, written))
        if missing or misread:
            parts = [f"{name}.state_dict()" for name in missing] + [f'["{key}"]' for key in misread]
            title = t(
                "Resuming from this checkpoint is not exact: {what} is not in it.", what=", ".join(parts)
            )
            advice = t(
                "Save model, optimizer, scheduler, scaler and the random states together, and read the same keys with [] (get hides a misspelling)."
            )
            yield problem("ckpt-missing-state", "warn", call, title, advice)


_PLACES = {"epoch", "step", "global_step", "iteration", "iter", "epochs", "steps"}
"""Keys that say how far a run had come: who reads one back resumes."""


def _saved_by(script: Script, call: Call) -> dict[str, ast.expr] | None:
    return items_of(script.value_of(call.argument(0, "obj"), call.scope))


def _is_training_state(saved: dict[str, ast.expr], resumes: bool) -> bool:
    states = sum(ast.unparse(value).count(".state_dict()") for value in saved.values())
    return states >= 2 or (states == 1 and resumes)


# scheduler, lr_sched, self.scaler, warmup_scheduler ...; an optimizer counts where the run is resumed
_SCHEDULER = re.compile(r"(?:^|_)(?:lr_)?sched(?:uler)?$", re.IGNORECASE)
_SCALER = re.compile(r"(?:^|_)(?:grad_?)?scaler$", re.IGNORECASE)
_OPTIMIZER = re.compile(r"^(?:opt|optim|optimizer)$", re.IGNORECASE)
_MAKES_SCHEDULER = re.compile(r"lr_scheduler\.[A-Z]\w+$|get_\w*schedule\w*$|get_scheduler$")


def _state_not_saved(script: Script, call: Call, saved: dict[str, ast.expr], resumes: bool) -> list[str]:
    """Return names of schedulers and scalers (and optimizers) around the save whose state is not in it."""
    text = " ".join(ast.unparse(value) for value in saved.values())
    found = []
    for name in _names_around(script, call):
        last = name.rpartition(".")[2]
        made = next((value for value, _ in script.attributes_given.get(name, [])), None)
        made = made if made is not None else script.value_of(ast.Name(id=name), call.scope)
        origin = script.resolve(made.func) if isinstance(made, ast.Call) else ""
        stateful = bool(_SCHEDULER.search(last) or _SCALER.search(last) or _MAKES_SCHEDULER.search(origin))
        stateful = stateful or bool(resumes and (_OPTIMIZER.match(last) or origin.startswith("torch.optim.")))
        is_none = isinstance(made, ast.Constant) and made.value is None
        if stateful and not is_none and f"{name}.state_dict()" not in text:
            found.append(name)
    return sorted(set(found))


def _names_around(script: Script, call: Call) -> set[str]:
    """Return the parameters and variables of the function that saves, those around it, and its object's attributes."""
    names: set[str] = set()
    for depth in range(len(call.scope) + 1):
        scope = call.scope[:depth]
        function = script.functions.get(scope)
        if function is not None:
            names |= {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
        names |= {name for where, name in script.assigned if where == scope and "." not in name}
    owner = next((name for name in call.scope if name in script.bases), None)
    if owner:
        names |= {
            name
            for name, values in script.attributes_given.items()
            if name.startswith("self.")
            and name.count(".") == 1
            and any(owner in scope for _, scope in values)
        }
    return names


def _keys_read(script: Script) -> set[str]:
    """Return the string keys read from variables that torch.load filled."""
    loaded = {
        name
        for (_, name), values in script.assigned.items()
        for _, value in values
        if isinstance(value, ast.Call) and script.resolve(value.func) == "torch.load"
    }
    keys: set[str] = set()
    for node in ast.walk(script.tree):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in loaded
            and isinstance(node.slice, ast.Constant)
        ):
            keys.add(str(node.slice.value))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            first = node.args[0]
            if (
                isinstance(node.func.value, ast.Name)
                and node.func.value.id in loaded
                and isinstance(first, ast.Constant)
            ):
                keys.add(str(first.value))
    return keys


def _near(key: str, written: set[str]) -> bool:
    from difflib import get_close_matches

    return bool(get_close_matches(key, sorted(written), n=1, cutoff=0.8))


@rule
def keys_not_loaded(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a state dict loaded with strict=False and nobody looks at what was left out?"""
    statements = {id(node.value) for node in ast.walk(script.tree) if isinstance(node, ast.Expr)}
    for call in script.methods("load_state_dict"):
        loose = script.constant(call.argument(1, "strict"), call.scope) is False
        if not loose or id(call.node) not in statements:
            continue
        wrapped = _saved_wrapped(script)
        title = (
            t(
                "The weights are saved from the wrapped model ({wrapper}), whose names all begin with {prefix}; load_state_dict(strict=False) then loads none of them, without a word.",
                wrapper=wrapped[0],
                prefix=wrapped[1],
            )
            if wrapped
            else t("load_state_dict(strict=False) leaves weights at random without a word when names differ.")
        )
        advice = t("Keep what it returns and look at missing_keys and unexpected_keys.")
        yield problem("checkpoint-keys-not-loaded", "warn" if wrapped else "note", call, title, advice)


_WRAPPERS = {"DistributedDataParallel": "module.", "DDP": "module.", "DataParallel": "module.", "compile": "_orig_mod."}  # fmt: skip


def _saved_wrapped(script: Script) -> tuple[str, str] | None:
    """Return (wrapper, prefix) when a wrapped model's own state is saved here and the prefix is never taken off."""
    if any(word in text for text in script.strings for word in ("module.", "_orig_mod.")):
        return None
    for call in script.named("torch.save"):
        saved = ast.unparse(call.node.args[0]) if call.node.args else ""
        for name in re.findall(r"([\w.]+)\.state_dict\(\)", saved):
            for value in [value for (_, given), values in script.assigned.items() if given == name for _, value in values]:  # fmt: skip
                for made in ast.walk(value):  # DataParallel(net).cuda()
                    kind = script.resolve(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
                    if kind in _WRAPPERS:
                        return kind, _WRAPPERS[kind]
    return None


@rule
def resumed_data_order(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a resumed run begin its epoch anew instead of where it stopped?"""
    for call in script.calls:
        skips = call.keywords.get("ignore_data_skip")
        if skips is None or script.constant(skips, call.scope) is not True:
            continue
        resumes = any(_is_on(script, other, "resume_from_checkpoint") for other in script.calls)
        title = t(
            "ignore_data_skip=True: a resumed run begins its epoch anew and sees samples twice, others not at all"
        )
        advice = t("Leave ignore_data_skip out, unless skipping takes longer than it is worth.")
        yield problem("resume-not-bitwise", "warn" if resumes else "note", call, title, advice)


def _is_on(script: Script, call: Call, name: str) -> bool:
    node = call.keywords.get(name)
    if node is None:
        return False
    value = script.value_of(node, call.scope)
    return not (isinstance(value, ast.Constant) and not value.value)


@rule
def evaluation_mode(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does an evaluation function leave dropout on, or build a graph?"""
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith(
            ("evaluate", "validate", "eval_", "test_epoch")
        ):
            continue
        models = {
            argument.arg for argument in node.args.args if "model" in argument.arg or argument.arg == "net"
        }
        text = ast.unparse(node)
        runs = any(
            isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id in models
            for item in ast.walk(node)
        )
        if runs and ".eval()" not in text and "no_grad" not in text and "inference_mode" not in text:
            title = t(
                "{function} runs the model with neither eval() nor no_grad(): dropout is on, and memory fills with graphs.",
                function=node.name,
            )
            yield problem(
                "evaluation-without-eval",
                "note",
                node,
                title,
                t("model.eval() and torch.inference_mode() around it, model.train() after."),
            )
