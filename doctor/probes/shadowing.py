"""Files in a folder that Python would import instead of the module that is meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.probes.gaps import is_file, is_folder

if TYPE_CHECKING:
    from doctor.probes import Context

# Third-party modules that a training script imports, directly or through others.
_TRAINING_MODULES = frozenset({
    "torch", "torchvision", "torchaudio", "transformers", "datasets", "tokenizers", "accelerate", "peft",
    "trl", "deepspeed", "evaluate", "diffusers", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "PIL",
    "wandb", "tensorboard", "safetensors", "huggingface_hub", "sentencepiece", "yaml", "requests", "tqdm",
    "regex", "packaging", "filelock", "fsspec", "psutil", "onnx", "onnxruntime", "triton", "bitsandbytes",
    "flash_attn", "xformers", "vllm", "einops", "jieba", "cv2", "pyarrow", "modelscope", "dill",
    "multiprocess", "xxhash", "aiohttp", "httpx", "jinja2", "sympy", "networkx",
})  # fmt: skip
# Imported before a script's folder comes into play, or names that people use for their own without harm.
_NEVER_HIDDEN = frozenset({
    "abc", "codecs", "encodings", "genericpath", "io", "os", "posixpath", "site", "sitecustomize",
    "usercustomize", "stat", "sys", "test", "this", "antigravity", "idlelib", "lib2to3", "turtle",
    "turtledemo", "tkinter", "ntpath", "nt", "msilib", "winreg", "winsound",
})  # fmt: skip


def shadowing_files(context: Context, cwd: Path, names: list[str]) -> list[str]:
    """Return the files and packages here that a script started from here would import instead of the module meant.

    A script's own folder comes first on ``sys.path`` (``python train.py``, ``python -m``), unless PYTHONSAFEPATH is
    set. A folder without ``__init__.py`` hides nothing: an installed package goes before it.
    """
    if context.environ.get("PYTHONSAFEPATH") or {"os.py", "site.py"} <= set(
        names
    ):  # the standard library itself
        return []
    return [
        name
        for name in names
        if (module := _module_of(cwd, name)) and _is_module_elsewhere(context, cwd, module)
    ]


def _module_of(cwd: Path, name: str) -> str:
    stem, dot, extension = name.partition(".")
    if not stem.isidentifier() or (dot and extension != "py"):
        return ""
    known = stem in _TRAINING_MODULES or (stem in sys.stdlib_module_names and stem not in _NEVER_HIDDEN)
    if not known or stem in sys.builtin_module_names:
        return ""
    return stem if is_file(cwd / name if dot else cwd / name / "__init__.py") else ""


def _is_module_elsewhere(context: Context, cwd: Path, module: str) -> bool:
    """Standard modules always are; others where the examined interpreter has them in another folder."""
    if module in sys.stdlib_module_names:
        return True
    folders = [folder for folder in context.target.site_packages if folder != cwd]
    return any(is_folder(folder / module) or is_file(folder / f"{module}.py") for folder in folders)
