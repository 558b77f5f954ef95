"""Devices and processes: visible cards set too late, parameters that DDP waits for in vain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def visible_devices_set_late(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is CUDA_VISIBLE_DEVICES set after torch was imported?"""
    imported = min(
        (
            line
            for origin, line in script.import_lines.items()
            if origin.partition(".")[0] in ("torch", "transformers", "accelerate")
        ),
        default=None,
    )
    if imported is None:
        return
    for node in ast.walk(script.tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            isinstance(target, ast.Subscript)
            and script.resolve(target.value) == "os.environ"
            and target.lineno > imported
        ):
            if isinstance(target.slice, ast.Constant) and target.slice.value == "CUDA_VISIBLE_DEVICES":
                title = t(
                    "CUDA_VISIBLE_DEVICES is set after the import of torch; once anything has asked for the GPU it has no effect."
                )
                advice = t(
                    "Set it in the shell (`CUDA_VISIBLE_DEVICES=1 python ...`), or in the first lines, before any import."
                )
                yield problem("cuda-visible-devices-set-late", "warn", node, title, advice)


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
        and "find_unused_parameters" not in call.keywords
        and not call.has_double_star
    ]
    if not wraps or not _reads_hidden_state_only(script):
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
        if pooled and "add_pooling_layer" not in call.keywords:
            title = t(
                "The encoder's pooler is in the model, but the forward uses only the hidden states: DDP waits for its gradients and raises."
            )
            advice = t(
                "from_pretrained(..., add_pooling_layer=False), or DDP(..., find_unused_parameters=True) (slower)."
            )
            yield problem("ddp-unused-parameters", "warn", call, title, advice)


def _reads_hidden_state_only(script: Script) -> bool:
    names = {node.attr for node in ast.walk(script.tree) if isinstance(node, ast.Attribute)}
    return "last_hidden_state" in names and "pooler_output" not in names
