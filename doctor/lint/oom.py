"""What a script does when the card's memory runs out: where it retries, and whether it cleans up at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import Text, t

# What torch says, in small letters. A text that is looked for must be part of the first: the allocator's own.
_SAID = "cuda out of memory. tried to allocate"
_CLEANS = ("empty_cache", "zero_grad", "collect", "ipc_collect", "reset_peak_memory_stats", "free_memory", "release_memory")  # fmt: skip
_WIDE = ("RuntimeError", "Exception", "BaseException")


@rule
def retry_inside_except(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is an out-of-memory retried inside the except block, where the failed frames are still held?"""
    for node in _tries(script):
        tried = {ast.unparse(call.func) for statement in node.body for call in _calls_in(statement)}
        tried |= _names_of_functions_around(script, node)
        for handler in node.handlers:
            if not _catches_oom(script, handler) or _leaves_the_card(handler):
                continue
            for statement in handler.body:
                again = next((call for call in _calls_in(statement) if _is_the_work(call, tried)), None)
                if again is not None:
                    title = t(
                        "The retry runs inside the except block: the exception still holds the failed step's tensors."
                    )
                    advice = t("Set a flag in the handler and retry after the try statement has been left.")
                    yield problem("oom-retry-inside-except", "warn", again, title, advice)
                    break


def _leaves_the_card(handler: ast.ExceptHandler) -> bool:
    """What is tried again is moved to the host first: the card's memory no longer matters."""
    # blocks = blocks.to("cpu") | model.cpu() | load(device="cpu")
    calls = [call for statement in handler.body for call in _calls_in(statement)]
    words = [word for call in calls for word in (*call.args, *(item.value for item in call.keywords))]
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "cpu" for call in calls) or any(
        isinstance(word, ast.Constant) and word.value == "cpu" for word in words
    )


def _names_of_functions_around(script: Script, node: ast.Try) -> set[str]:
    """Return how the functions that ``node`` stands in call themselves: ``find_batch_size``, ``self.step``."""
    names = [scope[-1] for scope, function in script.functions.items() if any(one is node for one in ast.walk(function))]  # fmt: skip
    return {called for name in names for called in (name, f"self.{name}", f"cls.{name}")}


def _tries(script: Script) -> Iterator[ast.Try]:
    return (node for node in ast.walk(script.tree) if isinstance(node, ast.Try))


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def _is_the_work(call: ast.Call, tried: set[str]) -> bool:
    """A call that stands in the try block too, and is neither cleaning nor talk."""
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    talk = bool(re.search(r"print|log|warn|debug|info|error|notify", last, re.IGNORECASE)) or last in ("len", "str", "isinstance", "range", "append", "write", "time", "dumps", "encode", "format")  # fmt: skip
    return name in tried and last not in _CLEANS and not talk


def _kinds(script: Script, handler: ast.ExceptHandler) -> list[str]:
    listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []  # fmt: skip
    return [script.resolve(kind) for kind in listed]


def _catches_oom(script: Script, handler: ast.ExceptHandler) -> bool:
    names = _kinds(script, handler)
    if any(name.endswith("OutOfMemoryError") for name in names):
        return True
    return any(name in _WIDE for name in names) and bool(_texts_looked_for(handler))


def _texts_looked_for(handler: ast.ExceptHandler) -> list[str]:
    """Return the texts about memory that the handler compares its error with."""
    return [
        item.value
        for statement in handler.body
        for test in ast.walk(statement)
        if isinstance(test, ast.Compare)
        for item in ast.walk(test)
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and "memory" in item.value.lower()
    ]


@rule
def cleanup_that_is_not_reached(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is the cleaning up after an out-of-memory skipped: in the try block, behind a raise, or for another error?"""
    for node in _tries(script):
        for handler in node.handlers:
            found = _skipped(script, node, handler)
            if found:
                place, title = found
                advice = t(
                    "Clean up where it always runs: zero_grad, del and torch.cuda.empty_cache() after the try statement has been left, or in its finally."
                )
                yield problem("oom-cleanup-skipped", "warn", place, title, advice)


def _skipped(script: Script, node: ast.Try, handler: ast.ExceptHandler) -> tuple[ast.AST, Text] | None:
    cleaning = _cleaning(handler.body)
    if cleaning and _behind_the_end(handler.body, cleaning):
        return cleaning[0], t(
            "The cleaning up stands behind a raise, return or continue: it is never reached."
        )
    if cleaning and _waits_for_another_error(script, node, handler):
        return handler, t("A full card raises torch.OutOfMemoryError (a RuntimeError), not what is caught here: this cleaning up never runs.")  # fmt: skip
    if not _catches_oom(script, handler):
        return None
    texts = _texts_looked_for(handler)
    if texts and not any(text in _SAID or text in "CUDA out of memory. Tried to allocate" for text in texts):
        return handler, t("No out-of-memory of torch has this text ({text}): the message begins with CUDA out of memory. Tried to allocate.", text=texts[0])  # fmt: skip
    if cleaning or _raises_on(handler) or _cleaning(node.finalbody):
        return None
    inside = (
        _cleaning_of_one_round(node.body)
        or _cleaning(node.orelse)
        or _skipped_behind(script, node, handler)
        or _cleaning_called(script, node.body)
    )
    if _ends_an_inference(script, node):
        return None
    if inside and _works_before(node.body, inside[0]) and not _cleans_after(script, node):
        return inside[0], t("An out-of-memory skips the cleaning up at the end of the try block, and the handler goes on without it: gradients and tensors of the failed step stay.")  # fmt: skip
    return None


def _ends_an_inference(script: Script, node: ast.Try) -> bool:
    """No gradients are made, and the function ends behind the try: what it holds goes with it."""
    for function in script.functions.values():
        if node in function.body and not any(isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "step") for call in _calls_in(function)):  # fmt: skip
            behind = function.body[function.body.index(node) + 1 :]
            return not behind or isinstance(behind[0], ast.Return)
    return False


def _cleaning_called(script: Script, body: list[ast.stmt]) -> list[ast.Call]:
    """Return the call of a function of this script that works first and cleans up at its end: ``self.step(batch)``."""
    functions = {name[-1]: node for name, node in script.functions.items()}
    for statement in body:
        for call in _calls_in(statement):
            name = ast.unparse(call.func)
            function = functions.get(name.rpartition(".")[2])
            if function is None or name not in (function.name, f"self.{function.name}"):
                continue
            plain = [one for one in function.body if not isinstance(one, ast.Try)]
            cleaning = _cleaning(plain)
            if cleaning and _works_before(plain, cleaning[0]):
                return cleaning
    return []


def _cleaning_of_one_round(body: list[ast.stmt]) -> list[ast.Call]:
    """The cleaning that does not stand in a loop of its own: a try around a whole loop ends it, and nothing goes on."""
    looped = {id(call) for one in body for loop in ast.walk(one) if isinstance(loop, (ast.For, ast.While)) for call in _calls_in(loop)}  # fmt: skip
    return [call for call in _cleaning(body) if id(call) not in looped]


def _skipped_behind(script: Script, node: ast.Try, handler: ast.ExceptHandler) -> list[ast.Call]:
    """The handler goes on with the next round, past the cleaning that stands behind the try statement."""
    if not isinstance(handler.body[-1], ast.Continue):
        return []
    for around in ast.walk(script.tree):
        body = getattr(around, "body", None)
        if isinstance(body, list) and node in body:
            return _cleaning(body[body.index(node) + 1 :])
    return []


def _cleaning(body: list[ast.stmt]) -> list[ast.Call]:
    return [
        call
        for statement in body
        for call in _calls_in(statement)
        if isinstance(call.func, (ast.Attribute, ast.Name))
        and ast.unparse(call.func).rpartition(".")[2] in _CLEANS
    ]


def _behind_the_end(body: list[ast.stmt], cleaning: list[ast.Call]) -> bool:
    """All the cleaning stands behind a statement of the same block that leaves it."""
    for place, statement in enumerate(body):
        if isinstance(statement, (ast.Raise, ast.Return, ast.Continue, ast.Break)):
            behind = [call for later in body[place + 1 :] for call in _calls_in(later)]
            return bool(behind) and all(call in behind for call in cleaning)
    return False


def _waits_for_another_error(script: Script, node: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Only MemoryError or CUDA's own error is caught, by this handler and all the others, and the card is cleaned."""
    names = [name.rpartition(".")[2] for one in node.handlers for name in _kinds(script, one)]
    mine = [name.rpartition(".")[2] for name in _kinds(script, handler)]
    on_the_card = any("empty_cache" in ast.unparse(call.func) for call in _cleaning(handler.body))
    wide = any(name in _WIDE or name.endswith("OutOfMemoryError") for name in names)
    everything = any(one.type is None for one in node.handlers)
    return on_the_card and bool(mine) and not wide and not everything and all(name in ("MemoryError", "CudaError") for name in mine)  # fmt: skip


def _raises_on(handler: ast.ExceptHandler) -> bool:
    goes_on = any(isinstance(item, (ast.Continue, ast.Return, ast.Break)) for item in ast.walk(handler))
    return isinstance(handler.body[-1], ast.Raise) and not goes_on


def _works_before(body: list[ast.stmt], cleaning: ast.Call) -> bool:
    """Something that can run out of memory stands before the cleaning: a call that is not cleaning itself."""
    return any(
        call.lineno < cleaning.lineno and ast.unparse(call.func).rpartition(".")[2] not in _CLEANS
        for statement in body
        for call in _calls_in(statement)
    )


def _cleans_after(script: Script, node: ast.Try) -> bool:
    """The statements after the try (in the same block) or at the start of the loop's next round clean up."""
    for around in ast.walk(script.tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(around, name, None)
            if isinstance(body, list) and node in body:
                place = body.index(node)
                leaves = any(isinstance(item, (ast.Continue, ast.Return)) for handler in node.handlers for item in ast.walk(handler))  # fmt: skip
                before = [one for one in body[:place] if not isinstance(one, ast.Try)] if isinstance(around, (ast.For, ast.While)) else []  # fmt: skip
                after = [] if leaves else body[place + 1 :]
                return bool(_cleaning([one for one in before if _always(one)] + after))
    return False


def _always(statement: ast.stmt) -> bool:
    """A plain statement: ``opt.zero_grad() if i == 0 else None`` does not always clean."""
    return not any(isinstance(item, (ast.If, ast.IfExp)) for item in ast.walk(statement))
