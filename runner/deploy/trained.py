"""A folder with a trained model, opened: what it is for, what goes in, and how long a text may be."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from runner.deploy.session import ask, open_session
from runner.durable import MANIFEST, what_is_wrong
from runner.inputs import InputError
from runner.text import t

# What an architecture's name ends with -> (what it is for, the class that opens it).
_KINDS = {
    "ForSequenceClassification": ("classification", "AutoModelForSequenceClassification"),
    "ForTokenClassification": ("token-classification", "AutoModelForTokenClassification"),
    "ForMaskedLM": ("masked-lm", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal-lm", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal-lm", "AutoModelForCausalLM"),
    "Model": ("features", "AutoModel"),
}
_ADAPTER = "adapter_config.json"
_NO_LIMIT = 1 << 20


@dataclass
class Trained:
    """A model in fp32 on the CPU, in evaluation mode, with its tokenizer."""

    folder: Path
    config: Any
    model: Any
    tokenizer: Any
    kind: str
    """``classification``, ``token-classification``, ``masked-lm``, ``causal-lm`` or ``features``."""
    max_length: int
    """Longest text in tokens; what is longer is cut."""
    input_names: tuple[str, ...]
    """What the model is given, in this order; int64 ``[texts, tokens]`` each."""

    @property
    def problem(self) -> str:
        """``single_label_classification``, ``multi_label_classification``, ``regression``; else empty."""
        if self.kind != "classification":
            return ""
        given = getattr(self.config, "problem_type", None)
        return given or ("regression" if self.config.num_labels == 1 else "single_label_classification")

    @property
    def labels(self) -> list[str]:
        """The classes in the order of their ids; empty where the model answers with tokens or features."""
        if "classification" not in self.kind:
            return []
        names = self.config.id2label
        return [names[index] for index in range(self.config.num_labels)]

    @property
    def output_name(self) -> str:
        return "last_hidden_state" if self.kind == "features" else "logits"

    def answer(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the model's output of one batch: ``[texts, classes]`` or ``[texts, tokens, ...]``, fp32."""
        with torch.inference_mode():
            return getattr(self.model(**batch, **self.extra), self.output_name).float()

    @property
    def extra(self) -> dict[str, Any]:
        """What the model is told beside its inputs: a language model is not to return its cache."""
        return {"use_cache": False} if self.kind == "causal-lm" else {}


class OnnxModel(Trained):
    """An ONNX file beside its configuration and tokenizer, as :mod:`runner.deploy.exporting` leaves it."""

    def answer(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.from_numpy(ask(self.model, batch))


def open_trained(folder: Path, max_length: int | None = None, attention: str = "sdpa") -> Trained:
    """Open the model and the tokenizer of a folder as ``save_pretrained`` wrote it.

    Raises:
        InputError: it is no such folder, it is damaged, or what it holds answers in a way not known here.
    """
    config, tokenizer, kind, auto = _open_beside(folder)
    try:
        model = getattr(transformers, auto).from_pretrained(
            str(folder), local_files_only=True, dtype=torch.float32, attn_implementation=attention
        )
        if (folder / _ADAPTER).is_file():
            model = _merged(model, folder)
    except Exception as error:  # safetensors' and torch's errors have no common base but Exception
        raise _not_a_model(folder, error) from error
    model.eval()
    length = _longest(max_length, config, tokenizer)
    return Trained(folder, model.config, model, tokenizer, kind, length, _input_names(model, tokenizer))


def open_onnx(path: Path, max_length: int | None = None) -> OnnxModel:
    """Open an ONNX file for answers on the CPU; configuration and tokenizer lie beside it.

    Raises:
        InputError: they do not, or onnxruntime cannot read the file.
    """
    config, tokenizer, kind, _ = _open_beside(path.parent)
    try:
        session = open_session(path)
    except Exception as error:  # onnxruntime's errors have no common base but Exception
        raise _not_a_model(path, error) from error
    names = tuple(one.name for one in session.get_inputs())
    length = _longest(max_length, config, tokenizer)
    return OnnxModel(path.parent, config, session, tokenizer, kind, length, names)


def _open_beside(folder: Path) -> tuple[Any, Any, str, str]:
    """Return configuration, tokenizer, kind, and the class that opens the weights. Raises InputError."""
    if not folder.is_dir():
        raise InputError(t("there is no folder {path}", path=str(folder)))
    if (folder / MANIFEST).is_file() and (wrong := what_is_wrong(folder)):
        raise InputError(t("{path} cannot be believed: {why}", path=str(folder), why=wrong))
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise _not_a_model(folder, error) from error
    architecture = (getattr(config, "architectures", None) or [""])[0]
    found = next((both for ending, both in _KINDS.items() if architecture.endswith(ending)), None)
    if found is None:
        raise InputError(
            t(
                "{path}: a model of kind {architecture} is not known here; known are: {kinds}",
                path=str(folder),
                architecture=architecture or "?",
                kinds=", ".join(_KINDS),
            )
        )
    return config, tokenizer, *found


def _not_a_model(path: Path, error: Exception) -> InputError:
    why = " ".join(str(error).split())[:500]
    return InputError(t("{path} cannot be opened as a model: {why}", path=str(path), why=why))


def _merged(model: Any, folder: Path) -> Any:
    """Return the model with the folder's adapter in its weights: one graph, as an exporter wants it."""
    if hasattr(model, "merge_and_unload"):
        return model.merge_and_unload()
    import peft  # the folder was written by it

    base = model.unload() if hasattr(model, "unload") else model
    return peft.PeftModel.from_pretrained(base, str(folder)).merge_and_unload()


def _longest(asked: int | None, config: Any, tokenizer: Any) -> int:
    limit = min(asked or _NO_LIMIT, int(tokenizer.model_max_length), _positions(config))
    return 512 if limit >= _NO_LIMIT else limit


def _positions(config: Any) -> int:
    count = getattr(config, "max_position_embeddings", None)
    if not isinstance(count, int) or count <= 0:
        return _NO_LIMIT
    # RoBERTa's kin count positions from the padding id on: 514 hold 512.
    return count - 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else count


def _input_names(model: Any, tokenizer: Any) -> tuple[str, ...]:
    taken = inspect.signature(model.forward).parameters
    wanted = ("input_ids", "attention_mask", "token_type_ids")
    given = set(tokenizer.model_input_names) | {"input_ids", "attention_mask"}
    return tuple(name for name in wanted if name in taken and name in given)


def encode(trained: Trained, texts: list[str], pairs: list[str] | None = None) -> dict[str, torch.Tensor]:
    """Return texts as one padded batch: int64 ``[texts, tokens]`` each."""
    encoded = trained.tokenizer(
        texts, pairs, truncation=True, max_length=trained.max_length, padding=True, return_tensors="pt"
    )
    return {name: encoded[name] for name in trained.input_names}
