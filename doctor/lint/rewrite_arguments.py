"""Rewrites of arguments: renamed, dropped, added. A call whose ``**options`` bring the argument is left alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import libcst as cst

from doctor.lint import Call, Problem
from doctor.lint.cst_arguments import renamed, with_argument, without_argument
from doctor.lint.page import Edits, Page
from doctor.lint.rewrites import Rewrite, rewrites
from doctor.model import Text, t

# Same meaning under another name. Source: training_args.py and trainer.py in the wheels 4.18 .. 5.24.
RENAMED = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "tokenizer": "processing_class",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "push_to_hub_model_id": "hub_model_id",
    "push_to_hub_token": "hub_token",
}
_OLDER = {new: old for old, new in RENAMED.items() if old in ("evaluation_strategy", "no_cuda", "tokenizer")}

# Arguments that the last releases with them no longer acted on.
DO_NOTHING = {"overwrite_output_dir", "fp16_opt_level", "half_precision_backend", "fp16_backend"}


def calls_with(page: Page, item: Problem, name: str) -> Iterator[tuple[Call, cst.Call]]:
    """Yield the calls that spell ``name=`` out at the finding's line."""
    for call in page.script.calls:
        word = next((one for one in call.node.keywords if one.arg == name), None)
        if word is not None and item.line in (word.value.lineno, call.line):
            node = page.find(call.node, cst.Call)
            if node is not None:
                yield call, node


def _renaming(page: Page, item: Problem, old: str, new: str, risk: Text | None = None) -> Rewrite | None:
    for call, node in calls_with(page, item, old):
        if new in call.keywords or call.has_double_star:
            continue
        edits = Edits()
        edits.change(node, lambda it: renamed(it, old, new))
        return Rewrite(t("{old}= becomes {new}=", old=old, new=new), edits, risk)
    return None


def _dropping(page: Page, item: Problem, name: str, title: Text, risk: Text | None = None) -> Rewrite | None:
    for _, node in calls_with(page, item, name):
        edits = Edits()
        edits.change(node, lambda it: without_argument(it, name))
        return Rewrite(title, edits, risk)
    return None


@rewrites("removed-argument")
def argument_gone(page: Page, item: Problem) -> Rewrite | None:
    """An argument that the installed release no longer takes: its new name, or none where it did nothing."""
    if item.level == "note":
        return None  # still taken
    if item.about in RENAMED:
        return _renaming(page, item, item.about, RENAMED[item.about])
    if item.about in DO_NOTHING:
        title = t("{name}= is dropped: it did nothing any more", name=item.about)
        return _dropping(page, item, item.about, title)
    return None


@rewrites("argument-too-new")
def argument_not_there_yet(page: Page, item: Problem) -> Rewrite | None:
    """An argument that the installed release does not know yet: its old name, or left at the default."""
    if item.about in _OLDER:
        return _renaming(page, item, item.about, _OLDER[item.about])
    match = re.fullmatch(r"\w+\((fused|foreach)=\)", item.about)  # AdamW(fused=)
    if match is None:
        return None
    title = t("{name}= is dropped: this torch does not have it, and computes the same without", name=match[1])
    return _dropping(page, item, match[1], title)


@rewrites("unknown-argument")
def argument_that_never_was(page: Page, item: Problem) -> Rewrite | None:
    """An argument that no release takes: dropped where it is known to mean nothing here, else the likely name, asked for."""
    if item.about.startswith("offload_"):
        title = t("{name}= is dropped: it never existed (offloading is set in the DeepSpeed or FSDP configuration)", name=item.about)  # fmt: skip
        return _dropping(page, item, item.about, title)
    near = item.advice.params.get("near") if item.advice else None
    if not isinstance(near, str) or not near.isidentifier():
        return None
    name = item.about or _name_at(page, item)
    return _renaming(page, item, name, near, t("the name is a guess")) if name else None


def _name_at(page: Page, item: Problem) -> str:
    """Return the keyword that a finding without ``about`` speaks of."""
    name = item.title.params.get("name")
    return str(name) if name else ""


@rewrites("reentrant-checkpoint-frozen-inputs")
def not_reentrant(page: Page, item: Problem) -> Rewrite | None:
    """gradient_checkpointing_kwargs={"use_reentrant": False}."""
    for call in page.script.calls:
        known = call.method == "gradient_checkpointing_enable" or page.script.kind_of(call).endswith("TrainingArguments")  # fmt: skip
        node = page.find(call.node, cst.Call) if call.line == item.line and known else None
        if node is None or "gradient_checkpointing_kwargs" in call.keywords:
            continue
        if call.method == "gradient_checkpointing_enable" and call.node.args:
            return None
        edits = Edits()
        edits.change(
            node, lambda it: with_argument(it, "gradient_checkpointing_kwargs", _not_reentrant(page))
        )
        return Rewrite(t("checkpointing is told not to be re-entrant"), edits)
    return None


def _not_reentrant(page: Page) -> cst.Dict:
    return cst.Dict([cst.DictElement(page.string("use_reentrant"), cst.Name("False"))])


@rewrites("override-signature-changed")
def argument_passed_now(page: Page, item: Problem) -> Rewrite | None:
    """An overridden method takes the argument that the installed Trainer passes."""
    argument = str(item.title.params.get("argument", ""))
    node = next(
        (one for one in page.every(cst.FunctionDef) if one.name.value == item.about and page.line(one.name) == item.line),
        None,
    )  # fmt: skip
    if node is None or not argument.isidentifier():
        return None
    edits = Edits()
    edits.change(node, lambda it: it.with_changes(params=_with_parameter(it.params, argument)))
    return Rewrite(t("{method} takes {argument}=None", method=item.about, argument=argument), edits)


def _with_parameter(params: cst.Parameters, name: str) -> cst.Parameters:
    """Return the parameters with ``name=None`` behind the plain ones, or among the keyword-only ones where there are any."""
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Param(cst.Name(name), default=cst.Name("None"), equal=tight)
    group = "params" if isinstance(params.star_arg, cst.MaybeSentinel) else "kwonly_params"
    there = list(getattr(params, group))
    if not there:
        return params.with_changes(**{group: [new]})
    last = there[-1]
    comma = last.comma
    between = there[-2].comma if len(there) > 1 else cst.MaybeSentinel.DEFAULT
    space = last.whitespace_after_param
    if isinstance(comma, cst.MaybeSentinel) or group == "params":
        head = last.with_changes(comma=between, whitespace_after_param=cst.SimpleWhitespace(""))
        return params.with_changes(**{group: [*there[:-1], head, new.with_changes(comma=comma, whitespace_after_param=space)]})  # fmt: skip
    return params.with_changes(**{group: [*there, new]})


@rewrites("torch-load-weights-only-default")
def load_whole_objects(page: Page, item: Problem) -> Rewrite | None:
    """torch.load(..., weights_only=False): only for files of one's own, so never without being asked for."""
    for call in page.script.named("torch.load"):
        node = page.find(call.node, cst.Call) if call.line == item.line else None
        if node is not None and "weights_only" not in call.keywords and not _has_double_star(call.node):
            edits = Edits()
            edits.change(node, lambda it: with_argument(it, "weights_only", cst.Name("False")))
            risk = t(
                "a file from somebody else can run any code when it is loaded so: only for files of your own"
            )
            return Rewrite(t("torch.load gets weights_only=False"), edits, risk)
    return None


def _has_double_star(node: ast.Call) -> bool:
    return any(word.arg is None for word in node.keywords)
