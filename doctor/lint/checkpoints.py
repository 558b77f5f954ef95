"""Checkpoints and determinism: what is saved and read, and activation checkpointing with frozen inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t

_STATEFUL = {
    "sched": "scheduler",
    "scheduler": "scheduler",
    "lr_scheduler": "scheduler",
    "scaler": "scaler",
    "grad_scaler": "scaler",
}


@rule
def checkpoint_state(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a saved checkpoint lack state that resuming needs, or is a key read that was never written?"""
    saves = [
        (call, call.node.args[0])
        for call in script.named("torch.save")
        if call.node.args and isinstance(call.node.args[0], ast.Dict)
    ]
    written = {str(key.value) for _, given in saves for key in given.keys if isinstance(key, ast.Constant)}
    for call, given in saves:
        if not _is_training_state(given):
            continue
        missing = _state_not_saved(script, call, given)
        misread = sorted(key for key in _keys_read(script) if key not in written and _near(key, written))
        if missing or misread:
            parts = [f"{name}.state_dict()" for name in missing] + [f'["{key}"]' for key in misread]
            title = t(
                "Resuming from this checkpoint is not exact: {what} is not in it.", what=", ".join(parts)
            )
            advice = t(
                "Save model, optimizer, scheduler, scaler and the random states together, and read the same keys with [] (get hides a misspelling)."
            )
            yield problem("ckpt-missing-state", "warn", call, title, advice)


def _is_training_state(given: ast.Dict) -> bool:
    text = ast.unparse(given)
    return text.count(".state_dict()") >= 2


def _state_not_saved(script: Script, call: Call, given: ast.Dict) -> list[str]:
    """Return names of schedulers and scalers around the save whose state is not in it."""
    saved = ast.unparse(given)
    function = next(
        (
            node
            for node in ast.walk(script.tree)
            if isinstance(node, ast.FunctionDef) and (node.name,) == call.scope[-1:]
        ),
        None,
    )
    nearby = (
        {argument.arg for argument in function.args.args}
        if function
        else {name for scope, name in script.assigned if scope == ()}
    )
    return sorted(name for name in nearby if name in _STATEFUL and f"{name}.state_dict()" not in saved)


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
def cublas_workspace(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are deterministic algorithms asked for on a GPU without cuBLAS's workspace setting?"""
    if installed.variable("CUBLAS_WORKSPACE_CONFIG") or "CUBLAS_WORKSPACE_CONFIG" in _strings(script):
        return
    uses_gpu = any(call.method == "cuda" for call in script.calls) or any(
        "cuda" in text for text in _strings(script)
    )
    for call in script.named("torch.use_deterministic_algorithms"):
        on = call.node.args and script.constant(call.node.args[0], call.scope) is True
        warn_only = script.constant(call.keywords.get("warn_only"), call.scope) is True
        if on and not warn_only and uses_gpu:
            title = t(
                "Deterministic algorithms on a GPU need CUBLAS_WORKSPACE_CONFIG in the environment: the first matrix product raises."
            )
            yield problem(
                "cublas-workspace-unset",
                "fail",
                call,
                title,
                t("`export CUBLAS_WORKSPACE_CONFIG=:4096:8` before Python starts."),
            )


def _strings(script: Script) -> set[str]:
    return {
        node.value
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@rule
def reentrant_with_frozen_inputs(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does re-entrant activation checkpointing run over inputs that need no gradient?"""
    if installed.at_least("transformers", "5.0") or any(
        True for _ in script.methods("enable_input_require_grads", "prepare_model_for_kbit_training")
    ):
        return
    level = "warn" if installed.version("transformers") is None else "fail"
    advice = t(
        "gradient_checkpointing_kwargs={'use_reentrant': False}; before transformers 4.35 call model.enable_input_require_grads()."
    )
    title = t(
        "Re-entrant checkpointing over frozen inputs lets no gradient through: nothing below is trained."
    )
    for call in _reentrant_calls(script):
        if (
            call.method == "gradient_checkpointing_enable" and _freezes_embeddings(script, call.receiver)
        ) or (call.method.endswith("TrainingArguments") and _uses_adapters(script)):
            yield problem("reentrant-checkpoint-frozen-inputs", level, call, title, advice)  # type: ignore[arg-type]


def _reentrant_calls(script: Script) -> Iterator[Call]:
    for call in script.calls:
        if (
            call.method == "gradient_checkpointing_enable"
            and not call.node.args
            and not call.keywords
            and not call.has_double_star
        ):
            yield call
        elif call.method.endswith("TrainingArguments") and not call.has_double_star:
            on = script.constant(call.keywords.get("gradient_checkpointing"), call.scope) is True
            if on and "gradient_checkpointing_kwargs" not in call.keywords:
                yield call


def _uses_adapters(script: Script) -> bool:
    return script.mentions("peft") or script.mentions("lora")


def _freezes_embeddings(script: Script, model: str) -> bool:
    """Return whether ``model``'s embeddings are frozen: a loop over their parameters, or requires_grad_(False)."""
    for node in ast.walk(script.tree):
        if (
            isinstance(node, ast.For)
            and "embeddings" in ast.unparse(node.iter)
            and ast.unparse(node.iter).startswith(model + ".")
        ):
            if "requires_grad = False" in ast.unparse(node) or "requires_grad_(False)" in ast.unparse(node):
                return True
    return any(
        "embeddings" in call.receiver and call.node.args and script.constant(call.node.args[0]) is False
        for call in script.methods("requires_grad_")
    )


@rule
def keys_not_loaded(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a state dict loaded with strict=False and nobody looks at what was left out?"""
    statements = {id(node.value) for node in ast.walk(script.tree) if isinstance(node, ast.Expr)}
    for call in script.methods("load_state_dict"):
        if script.constant(call.keywords.get("strict"), call.scope) is False and id(call.node) in statements:
            title = t(
                "load_state_dict(strict=False) leaves weights at random without a word when names differ."
            )
            advice = t("Keep what it returns and look at missing_keys and unexpected_keys.")
            yield problem("checkpoint-keys-not-loaded", "note", call, title, advice)


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
