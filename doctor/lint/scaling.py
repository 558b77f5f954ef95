"""The gradient scaler: clipping before unscaling, unscaling twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


def is_scaler(script: Script, call: Call) -> bool:
    """Return whether a method of a GradScaler is called."""
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    value = script.value_of(receiver, call.scope)
    made = isinstance(value, ast.Call) and script.resolve(value.func).endswith("GradScaler")
    return made or "scaler" in call.receiver.lower()


def _clips(script: Script) -> Iterator[Call]:
    """Yield the calls that clip: torch's functions, and ``parameter.grad.clamp_(...)``. Engines unscale by themselves."""
    for call in script.methods("clip_grad_norm_", "clip_grad_value_"):
        if call.receiver.rpartition(".")[2] not in ("accelerator", "fabric", "self"):
            yield call
    for call in script.methods("clamp_"):
        if call.receiver.endswith((".grad", ".grad.data")):
            yield call


@rule
def clip_before_unscale(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are gradients clipped while they are still scaled?"""
    for clip in _clips(script):
        mates = [call for call in script.calls if call.scope == clip.scope and _on_the_way(call, clip)]
        scaled = any(call.method == "scale" and is_scaler(script, call) for call in mates)
        backward = any(call.method == "backward" for call in mates)
        steps = any(
            call.method == "step" and call.order > clip.order and is_scaler(script, call) for call in mates
        )
        if not (scaled and backward) and not steps:
            continue
        if not any(call.order < clip.order and _unscales(script, call) for call in mates):
            title = t(
                "Gradients are clipped while still multiplied by the loss scale, so the limit is meaningless."
            )
            advice = t("Call scaler.unscale_(optimizer) once before clip_grad_norm_.")
            yield problem("clip-before-unscale", "fail", clip, title, advice)


def _on_the_way(call: Call, clip: Call) -> bool:
    """Return whether both can run in one pass: they do not stand in two branches of one condition."""
    return call.block in clip.blocks or clip.block in call.blocks


def _unscales(script: Script, call: Call) -> bool:
    """Return whether a call unscales: itself, or as a function of this script that does."""
    return call.method == "unscale_" or any(True for _ in _unscaling_inside(script, call))


def _unscaling_inside(script: Script, call: Call) -> Iterator[Call]:
    """Yield the unscale_ calls of the function of this script that ``call`` runs: ``clip(...)``, ``self.clip(...)``."""
    if call.name in (call.method, f"self.{call.method}"):
        yield from (other for other in script.methods("unscale_") if other.scope[-1:] == (call.method,))


@rule
def unscale_twice(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is unscale_ called twice for one optimizer without an update between?"""
    for call in script.methods("unscale_"):
        if _follows_another(script, call) or _repeats(script, call):
            yield _twice(call)
    yield from _again_in_a_function(script)
    yield from _unscaled_before_accelerate_clips(script)


def _again_in_a_function(script: Script) -> Iterator[Problem]:
    """Unscaled here, and then once more by a function of this script that is called before the update."""
    for first in script.methods("unscale_"):
        for call in script.calls:
            behind = call.scope == first.scope and call.order > first.order and first.block in call.blocks
            again = [other for other in _unscaling_inside(script, call) if _target(other) == _target(first)]
            if behind and again and not _updated_between(script, first, call):
                yield _twice(again[0])
                break


def _updated_between(script: Script, first: Call, second: Call) -> bool:
    return any(
        first.order < other.order < second.order
        for other in script.methods("update")
        if is_scaler(script, other)
    )


def _twice(call: Call) -> Problem:
    title = t("unscale_ is called a second time before scaler.update(): RuntimeError.")
    advice = t("Unscale once per optimizer step, before clipping.")
    return problem("unscale-twice", "fail", call, title, advice)


def _target(call: Call) -> str:
    return ast.unparse(call.node.args[0]) if call.node.args else ""


def _follows_another(script: Script, call: Call) -> bool:
    """An earlier unscale_ of the same optimizer always runs before this one, with no update between them."""
    for earlier in script.methods("unscale_"):
        same = earlier.scope == call.scope and _target(earlier) == _target(call)
        if same and earlier.order < call.order and earlier.block in call.blocks:
            return not _updated_between(script, earlier, call)
    return False


# if (i + 1) % accumulation == 0 | if sync_gradients | if is_last_micro_batch
_NOT_EVERY_TIME = re.compile(r"%|accum|sync|last|boundary", re.IGNORECASE)


def _repeats(script: Script, call: Call) -> bool:
    """It stands in a loop that comes back to it before the update."""
    loops = [
        node
        for node in ast.walk(script.tree)
        if isinstance(node, (ast.For, ast.While)) and any(inner is call.node for inner in ast.walk(node))
    ]
    updates = [
        other for other in script.methods("update") if other.scope == call.scope and is_scaler(script, other)
    ]
    if not call.loops or not loops or not updates:
        return False
    inner = loops[-1]
    within = [other for other in updates if any(node is other.node for node in ast.walk(inner))]
    if not within:
        names = {node.id for node in ast.walk(inner.target) if isinstance(node, ast.Name)} if isinstance(inner, ast.For) else set()  # fmt: skip
        after = any(other.order > call.order and other.loops < call.loops for other in updates)
        used = {node.id for one in call.node.args for node in ast.walk(one) if isinstance(node, ast.Name)}
        return after and not names & used
    return all(_is_held_back(inner, other, call) for other in within)


def _is_held_back(loop: ast.AST, update: Call, call: Call) -> bool:
    """The update stands under a condition that does not hold every time, and the unscaling does not."""
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and _NOT_EVERY_TIME.search(ast.unparse(node.test)):
            inside = [id(inner) for statement in node.body for inner in ast.walk(statement)]
            if id(update.node) in inside and id(call.node) not in inside:
                return True
    return False


def _unscaled_before_accelerate_clips(script: Script) -> Iterator[Problem]:
    """accelerator.clip_grad_norm_ unscales itself."""
    for call in script.methods("unscale_gradients"):
        for clip in script.methods("clip_grad_norm_", "clip_grad_value_"):
            if clip.receiver == call.receiver and clip.block == call.block and clip.order > call.order:
                yield _twice(clip)
