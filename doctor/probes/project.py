"""What lies in the working directory and would act on the environment: requirement lines, files that hide a module."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.model import Project, Reading, Requirement, Text, ok, t
from doctor.probes.bounded import read_bytes
from doctor.probes.gaps import is_file, is_folder, reason_of
from doctor.redact import without_secrets
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENTRIES_LIMIT = 5_000
_FILES_LIMIT = 20
_LINES_LIMIT = 500
_FILE_LIMIT_BYTES = 256 << 10

# Third-party modules that a training script imports, directly or through others.
_TRAINING_MODULES = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "transformers",
        "datasets",
        "tokenizers",
        "accelerate",
        "peft",
        "trl",
        "deepspeed",
        "evaluate",
        "diffusers",
        "numpy",
        "scipy",
        "pandas",
        "sklearn",
        "matplotlib",
        "PIL",
        "wandb",
        "tensorboard",
        "safetensors",
        "huggingface_hub",
        "sentencepiece",
        "yaml",
        "requests",
        "tqdm",
        "regex",
        "packaging",
        "filelock",
        "fsspec",
        "psutil",
        "onnx",
        "onnxruntime",
        "triton",
        "bitsandbytes",
        "flash_attn",
        "xformers",
        "vllm",
        "einops",
        "jieba",
        "cv2",
        "pyarrow",
        "modelscope",
        "dill",
        "multiprocess",
        "xxhash",
        "aiohttp",
        "httpx",
        "jinja2",
        "sympy",
        "networkx",
    ]
)
# Imported before a script's folder comes into play, or names that people use for their own without harm.
_NEVER_HIDDEN = frozenset(
    [
        "abc",
        "codecs",
        "encodings",
        "genericpath",
        "io",
        "os",
        "posixpath",
        "site",
        "sitecustomize",
        "usercustomize",
        "stat",
        "sys",
        "test",
        "this",
        "antigravity",
        "idlelib",
        "lib2to3",
        "turtle",
        "turtledemo",
        "tkinter",
        "ntpath",
        "nt",
        "msilib",
        "winreg",
        "winsound",
    ]
)


def probe(context: Context) -> Reading[Project]:
    """Look through the working directory, without going below it."""
    unread: dict[str, Text] = {}
    cwd = Path(context.root, *context.cwd.parts[1:])
    try:
        names = _entries(cwd, unread)
    except OSError as error:
        why = t("{path} could not be read: {error}", path=printable(str(context.cwd)), error=reason_of(error))
        return Reading(status="failed", why=why, source=printable(str(context.cwd)))
    project = Project(
        cwd=printable(str(context.cwd)),
        requirements=tuple(_requirements(cwd, names, unread)),
        shadowing_files=tuple(shadowing_files(context, cwd, names)),
        unread=unread,
    )
    return ok(project, printable(str(context.cwd)))


def _entries(cwd: Path, unread: dict[str, Text]) -> list[str]:
    names: list[str] = []
    with os.scandir(cwd) as entries:
        for entry in entries:
            if len(names) == _ENTRIES_LIMIT:
                why = t(
                    "only the first {count} entries of the working directory were looked at",
                    count=_ENTRIES_LIMIT,
                )
                unread["requirements"] = unread["shadowing_files"] = why
                break
            names.append(entry.name)
    return sorted(names)


# ---------------------------------------------------------------------------------------- requirements
def _requirements(cwd: Path, names: list[str], unread: dict[str, Text]) -> list[Requirement]:
    files = [
        name
        for name in names
        if re.fullmatch(r"requirements.*\.(txt|in)|pyproject\.toml", name, re.IGNORECASE)
    ]
    found: list[Requirement] = []
    for name in files[:_FILES_LIMIT]:
        try:
            text = read_bytes(cwd / name, _FILE_LIMIT_BYTES).decode("utf-8-sig")
            lines = parse_pyproject(text) if name.endswith(".toml") else parse_requirements(text)
        except OSError as error:
            unread[printable(name)] = t(
                "{path} could not be read: {error}", path=printable(name), error=reason_of(error)
            )
        except UnicodeDecodeError:
            unread[printable(name)] = t("{path} is not UTF-8", path=printable(name))
        except ValueError as error:
            unread[printable(name)] = t(
                "{path} is broken: {error}", path=printable(name), error=printable(str(error))
            )
        else:
            found += [
                Requirement(line=without_secrets(printable(line)), file=printable(name)) for line in lines
            ]
    return found[:_LINES_LIMIT]


def parse_requirements(text: str) -> list[str]:
    """Return the requirement lines: comments and options (``-r``, ``--index-url``, ``--hash``) left out."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*$", "", line) for line in joined.splitlines())
    bare = (re.split(r"\s--?(?:hash|config-settings|global-option)\b", line)[0].strip() for line in lines)
    return [line for line in bare if line and not line.startswith("-")]


def parse_pyproject(text: str) -> list[str]:
    """Return ``[project] dependencies``.

    Raises:
        ValueError: it is not TOML, or its dependencies are not a list of strings.
    """
    project: Any = tomllib.loads(text).get("project", {})
    lines = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("project.dependencies is not a list of strings")
    return [line.strip() for line in lines if line.strip()]


# ---------------------------------------------------------------------------------------- shadowing
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
