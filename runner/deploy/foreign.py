"""Weights in a form that is not opened here: what the file or folder is, and what makes it one that is. No torch."""

from __future__ import annotations

from pathlib import Path

from runner.text import Text, t

CONFIG = "config.json"
_SAFE = ("model.safetensors", "model.safetensors.index.json", "adapter_model.safetensors")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json", "adapter_model.bin")


def has_weights(folder: Path) -> bool:
    """Does a folder hold weights by a name that transformers or peft opens?"""
    return any((folder / name).is_file() for name in (*_SAFE, *_PICKLED))


def pickle_note(folder: Path) -> Text | None:
    """Return the warning about weights that lie in a pickle alone; None: they do not."""
    found = [name for name in _PICKLED if (folder / name).is_file()]
    if not found or any((folder / name).is_file() for name in _SAFE):
        return None
    return t("{path} is a pickle, a form that can carry code: it is read as numbers alone, and no code of it is run",
             path=str(folder / found[0]))  # fmt: skip


def onnx_in(folder: Path) -> Path | None:
    """Return the one ONNX file of a folder that has no weights for torch; None: there is none, or more than one."""
    found = [] if has_weights(folder) else sorted(folder.glob("*.onnx"))
    plain = folder / "model.onnx"
    return plain if plain in found else found[0] if len(found) == 1 else None


def refusal(path: Path) -> Text | None:
    """Return why a file or folder cannot be opened, with the way to one that can; None: nothing speaks against it."""
    if path.is_file():
        return _of_file(path)
    if not path.is_dir() or (has_weights(path) and (path / CONFIG).is_file()):
        return None
    return _of_folder(path)


_LIGHTNING = "Model.load_from_checkpoint(FILE).model.save_pretrained(DIR), tokenizer.save_pretrained(DIR)"


def _of_file(path: Path) -> Text | None:
    """``epoch=3-step=500.ckpt``, ``weights.pt``, ``model.safetensors``, ``model-q4.gguf``"""
    name, suffix = str(path), path.suffix.lower()
    if suffix == ".ckpt":
        return t("{path} is a checkpoint of Lightning: a pickle that runs code when it is opened, so it is not. In a program of yours, "
                 "with your class: {command}; then name DIR", path=name, command=_LIGHTNING)  # fmt: skip
    if suffix in (".safetensors", ".bin") and (path.parent / CONFIG).is_file():
        return t(
            "{path} has the weights alone; name its folder: {folder}", path=name, folder=str(path.parent)
        )
    if suffix in (".pt", ".pth", ".bin", ".pkl", ".safetensors"):
        return t("{path} has weights and does not say of which model: write a folder with model.save_pretrained(DIR) and "
                 "tokenizer.save_pretrained(DIR), and name DIR", path=name)  # fmt: skip
    if suffix == ".gguf":
        return t("{path} is a file of llama.cpp, in fewer bits than it was trained with; name the folder that it was made of", path=name)  # fmt: skip
    return None


def _of_folder(folder: Path) -> Text | None:
    name = str(folder)
    if not (folder / CONFIG).is_file() and (steps := _trainers(folder)):
        return t("{path} is where Trainer puts its checkpoints; name one of them: {names}", path=name, names=", ".join(steps[-5:]))  # fmt: skip
    if (folder / "zero_to_fp32.py").is_file() or any(folder.glob("global_step*")):
        return t("{path} has the weights as DeepSpeed cut them into parts: put them together first, with python {script} {path} "
                 "OUT --safe_serialization, and name OUT with config.json and the tokenizer beside them",
                 path=name, script=str(folder / "zero_to_fp32.py"))  # fmt: skip
    parts = next(
        (one.parent for one in folder.glob("*/*.distcp")), folder if any(folder.glob("*.distcp")) else None
    )
    if parts is not None:
        return t("{path} has the weights as FSDP cut them into parts: put them together first, with accelerate merge-weights "
                 "{parts} OUT, and name OUT with config.json and the tokenizer beside them", path=name, parts=str(parts))  # fmt: skip
    for other, library in (("tf_model.h5", "TensorFlow"), ("flax_model.msgpack", "Flax")):
        if (folder / other).is_file():
            return t("{path} has weights for {library} alone ({name}); transformers 4 opens them with from_tf or from_flax=True: "
                     "save_pretrained from there", path=name, library=library, name=other)  # fmt: skip
    if has_weights(folder) and not (folder / "adapter_config.json").is_file():
        return t("{path} has weights and no {name}, which says of which model: copy that of the model it was trained from",
                 path=name, name=CONFIG)  # fmt: skip
    if (folder / CONFIG).is_file():
        return t(
            "{path} has a {name} and no weights ({names})", path=name, name=CONFIG, names=", ".join(_SAFE)
        )
    return None


def _trainers(folder: Path) -> list[str]:
    """Return the names of Trainer's checkpoints (``checkpoint-500``) in their order."""
    numbers = [one.name.removeprefix("checkpoint-") for one in folder.glob("checkpoint-*") if one.is_dir()]
    return [f"checkpoint-{number}" for number in sorted((one for one in numbers if one.isdigit()), key=int)]
