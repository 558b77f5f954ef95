"""A folder with a LoRA adapter alone, as peft writes it: opened on its base model and merged into one graph."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import safetensors
import transformers

from runner.build import in_fp32
from runner.deploy.kinds import auto_class_of
from runner.inputs import InputError
from runner.text import t

ADAPTER, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_AUTO = {
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "CAUSAL_LM": "AutoModelForCausalLM",
    "FEATURE_EXTRACTION": "AutoModel",
}
_HEADS = (("score", "weight"), ("classifier", "weight"), ("out_proj", "weight"), ("logits_proj", "weight"))
"""The last two parts of the name of a head's last layer: as many rows as there are classes."""


def open_base(folder: Path, attention: str) -> tuple[Any, Any]:
    """Return the model with the adapter in its weights, and the tokenizer: the folder's own, else the base's.

    Raises:
        InputError: peft is not installed, the adapter is of a kind not known here, or its base is not on this machine.
    """
    peft = _peft()
    given = json.loads((folder / ADAPTER).read_bytes())
    base, auto = _base_of(folder, given), _auto_class(folder, given)
    changes: dict[str, Any] = {"attn_implementation": attention} if attention else {}
    if auto.endswith("Classification"):
        # The base may have a head of its own, or one for other classes: the adapter brings its own.
        changes |= {"num_labels": _classes(folder), "ignore_mismatched_sizes": True}
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model, loading = getattr(transformers, auto).from_pretrained(
            base, **in_fp32(), **local, **changes, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())[:300]
        raise InputError(t("{path} is an adapter for {base}, which is not on this machine: {why}", path=str(folder), base=base or "?", why=why)) from error  # fmt: skip
    _refuse_made_up(folder, base, loading["missing_keys"], auto)
    own = (folder / "tokenizer_config.json").is_file()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder) if own else base, **local)
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(len(tokenizer))
    return peft.PeftModel.from_pretrained(model, str(folder)).merge_and_unload(), tokenizer


def _base_of(folder: Path, given: dict[str, Any]) -> str:
    """Return the base model's name or folder; one that was named from where training ran may lie beside the adapter."""
    base = str(given.get("base_model_name_or_path") or "")
    beside = folder / base
    return str(beside) if base and not Path(base).is_dir() and beside.is_dir() else base


def _auto_class(folder: Path, given: dict[str, Any]) -> str:
    """Return the class that opens the base: by the adapter's task, or where it has none by the model it was put on."""
    task = given.get("task_type")
    if task is not None:
        auto = _AUTO.get(task)
    else:
        auto = auto_class_of(str((given.get("auto_mapping") or {}).get("base_model_class") or ""))
    if auto is None:
        raise InputError(t("{path}: an adapter of kind {kind} is not known here", path=str(folder), kind=str(task)))  # fmt: skip
    return auto


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise InputError(
            t("this is a LoRA adapter, and peft cannot be imported ({why}); install it with: {command}",
              why=str(error), command="pip install --no-deps peft")
        ) from error  # fmt: skip
    return peft


def _refuse_made_up(folder: Path, base: str, missing: Iterable[str], auto: str) -> None:
    """Refuse a base without weights that the adapter does not bring either: others than those it learnt with would be drawn."""
    brought = {name.removeprefix("base_model.model.") for name in _shapes(folder)}
    made_up = sorted(
        name for name in missing if name not in brought and ("pooler" not in name or auto != "AutoModel")
    )
    if made_up:
        raise InputError(t("neither {path} nor its base {base} has weights for {names}: they would be made up. Merge it where it was trained "
                           "(merge_and_unload) and save the whole model", path=str(folder), base=base, names=", ".join(made_up[:5])))  # fmt: skip


def _shapes(folder: Path) -> dict[str, list[int]]:
    """Return the shape of every tensor of the adapter, by its name."""
    if not (folder / WEIGHTS).is_file():
        raise InputError(t("{path} has no {name}", path=str(folder), name=WEIGHTS))
    with safetensors.safe_open(str(folder / WEIGHTS), framework="pt", device="cpu") as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 (not a mapping)


def _classes(folder: Path) -> int:
    """Return how many classes the head has that lies with the adapter; peft keeps no number of them."""
    for name, shape in _shapes(folder).items():
        if tuple(name.split(".")[-2:]) in _HEADS:
            return int(shape[0])
    raise InputError(t("{path} has no head: how many classes there are is not known", path=str(folder)))
