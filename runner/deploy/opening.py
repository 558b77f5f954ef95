"""A folder with a trained model, or an ONNX file, opened as a :class:`runner.deploy.trained.Trained`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import msgspec
import transformers

from runner.build import in_fp32
from runner.deploy.adapter_folder import ADAPTER, open_base
from runner.deploy.foreign import refusal
from runner.deploy.kinds import kind_of
from runner.deploy.place import CARD
from runner.deploy.records import REPORT, Exported
from runner.deploy.session import open_session, require_onnx
from runner.deploy.trained import OnnxModel, Trained
from runner.durable import MANIFEST, what_is_wrong
from runner.inputs import InputError
from runner.text import t

_NO_LIMIT = 1 << 20
# No code out of a model's folder is run, and nobody is asked whether it should be.
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model", "tokenizer.model")  # fmt: skip
_WITHOUT_VOCABULARY = ("canine",)
"""Kinds of model that read characters as they are."""


def open_trained(folder: Path, max_length: int | None = None, attention: str = "") -> Trained:
    """Open the model and the tokenizer of a folder as ``save_pretrained`` wrote it.

    ``attention``: transformers' name of an implementation; empty: the model's own choice.

    Raises:
        InputError: it is no such folder, it is damaged, or what it holds answers in a way not known here.
    """
    check_folder(folder)
    if refused := refusal(folder):
        raise InputError(refused)
    try:
        if (folder / ADAPTER).is_file():
            model, tokenizer = open_base(folder, attention)
        else:
            model, tokenizer = _open_whole(folder, attention)
    except InputError:
        raise
    except Exception as error:  # safetensors' and torch's errors have no common base but Exception
        raise not_a_model(folder, error) from error
    return as_trained(folder, model, tokenizer, max_length)


def _open_whole(folder: Path, attention: str) -> tuple[Any, Any]:
    config, tokenizer = _open_beside(folder)
    _, auto = kind_of(folder, config)
    chosen = {"attn_implementation": attention} if attention else {}
    model, loading = getattr(transformers, auto).from_pretrained(
        str(folder), **_LOCAL, **in_fp32(), **chosen, output_loading_info=True
    )
    # Nobody asks for a pooled output here.
    missing = sorted(name for name in loading["missing_keys"] if "pooler" not in name or auto != "AutoModel")
    if missing:
        raise InputError(
            t("{path} has no weights for {names}: they would be made up",
              path=str(folder), names=", ".join(missing[:5]))
        )  # fmt: skip
    return model, tokenizer


def as_trained(folder: Path, model: Any, tokenizer: Any, max_length: int | None) -> Trained:
    """Return an opened model in evaluation mode with what its answers need. Raises InputError."""
    model.eval()
    model.config.architectures = [type(model).__name__]
    kind, _ = kind_of(folder, model.config)
    if model.main_input_name != "input_ids":
        raise InputError(t("{path}: the model takes {name}, not texts", path=str(folder), name=model.main_input_name))  # fmt: skip
    _pad_somehow(model.config, tokenizer)
    length = _longest(max_length, model.config, tokenizer)
    return Trained(folder, model.config, model, tokenizer, kind, length, _input_names(model, tokenizer))


def open_onnx(path: Path, max_length: int | None = None) -> OnnxModel:
    """Open an ONNX file for answers on the CPU; configuration and tokenizer lie beside it.

    Raises:
        InputError: they do not, or onnxruntime cannot read the file.
    """
    require_onnx("onnxruntime")
    check_folder(path.parent)
    try:
        config, tokenizer = _open_beside(path.parent)
        session = open_session(path)
    except Exception as error:  # onnxruntime's errors have no common base but Exception
        raise not_a_model(path, error) from error
    _pad_somehow(config, tokenizer)
    names = tuple(one.name for one in session.get_inputs())
    length = _longest(max_length or _exported_length(path.parent), config, tokenizer)
    kind, _ = kind_of(path.parent, config)
    return OnnxModel(path.parent, config, session, tokenizer, kind, length, names)


def _exported_length(folder: Path) -> int | None:
    """Return where the torch model cut its texts, as the export noted it; None: the file is not of our export."""
    try:
        return msgspec.json.decode((folder / REPORT).read_bytes(), type=Exported).max_length
    except (OSError, msgspec.MsgspecError):
        return None


def check_folder(folder: Path) -> None:
    """Compare a sealed folder with its manifest, and keep transformers quiet. Raises InputError."""
    if not folder.is_dir():
        raise InputError(t("there is no folder {path}", path=str(folder)))
    if (folder / MANIFEST).is_file() and (wrong := what_is_wrong(folder, may_differ=(CARD,))):
        raise InputError(t("{path} cannot be believed: {why}", path=str(folder), why=wrong))
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _open_beside(folder: Path) -> tuple[Any, Any]:
    config = transformers.AutoConfig.from_pretrained(str(folder), **_LOCAL)
    kind, _ = kind_of(folder, config)
    _require_vocabulary(folder, config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
    if kind == "token-classification" and getattr(tokenizer, "add_prefix_space", None) is False:
        # A byte-level tokenizer takes words one by one only where it puts their blank before them itself.
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), add_prefix_space=True, **_LOCAL)
    return config, tokenizer


def _require_vocabulary(folder: Path, config: Any) -> None:
    """Without one transformers makes a tokenizer up that knows no word. Raises InputError."""
    if config.model_type not in _WITHOUT_VOCABULARY and not any(
        (folder / name).is_file() for name in _VOCABULARIES
    ):
        raise InputError(
            t("{path} has no tokenizer: put the one that the model learnt with beside it, with {command}",
              path=str(folder), command=f'AutoTokenizer.from_pretrained("BASE").save_pretrained("{folder}")')
        )  # fmt: skip


def not_a_model(path: Path, error: Exception) -> InputError:
    """Return ``error`` as the sentence that ``path`` cannot be opened."""
    if isinstance(error, InputError):
        return error
    # Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load`
    if "Weights only load failed" in str(error):
        return InputError(t("{path}: the pickle with its weights holds more than numbers, which could be code, and is not opened; ask "
                            "whoever made it for model.safetensors", path=str(path)))  # fmt: skip
    why = " ".join(str(error).split())[:500]
    return InputError(t("{path} cannot be opened as a model: {why}", path=str(path), why=why))


def _pad_somehow(config: Any, tokenizer: Any) -> None:
    """Give a tokenizer without a padding token one that the model knows: what is padded is masked out."""
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id


def _longest(asked: int | None, config: Any, tokenizer: Any) -> int:
    limit = min(asked or int(tokenizer.model_max_length), _positions(config))
    return 512 if limit >= _NO_LIMIT else limit


def _positions(config: Any) -> int:
    count = getattr(config, "max_position_embeddings", None)
    if not isinstance(count, int) or count <= 0:
        return _NO_LIMIT
    # RoBERTa's kin count positions from the padding id on: 514 hold 512.
    return count - 2 if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else count


def _input_names(model: Any, tokenizer: Any) -> tuple[str, ...]:
    taken = inspect.signature(model.forward).parameters
    wanted = ("input_ids", "attention_mask", "token_type_ids")
    given = set(tokenizer.model_input_names) | {"input_ids", "attention_mask"}
    return tuple(name for name in wanted if name in taken and name in given)
