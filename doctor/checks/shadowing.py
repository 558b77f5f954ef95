"""Checks on files of one's own that take the place of a module: torch.py, random.py, tokenizers.py. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from doctor.checks import check
from doctor.model import Evidence, Finding, Level, Packages, Project, Reading, Torch, Workload, t
from runner.text import Param

# Each tried by itself: a file of that name beside a script, and `import torch` of it fails (torch 2.13, Python 3.11,
# 2026-11-30). Names that torch imports without needing anything of them at once (csv, uuid, zipfile) are not here.
_TORCH_NEEDS = frozenset({
    "ast", "asyncio", "base64", "bisect", "collections", "concurrent", "contextlib", "contextvars", "copy",
    "copyreg", "ctypes", "dataclasses", "datetime", "dis", "email", "enum", "fnmatch", "functools",
    "gettext", "glob", "heapq", "http", "importlib", "inspect", "json", "keyword", "linecache", "locale",
    "logging", "multiprocessing", "numbers", "opcode", "operator", "pathlib", "pickle", "platform",
    "pprint", "queue", "random", "re", "reprlib", "selectors", "signal", "socket", "ssl", "string",
    "struct", "subprocess", "tempfile", "textwrap", "threading", "timeit", "token", "tokenize", "traceback",
    "types", "typing", "unittest", "urllib", "warnings", "weakref", "numpy",
})  # fmt: skip
# The same for `from transformers import Trainer, AutoTokenizer` (transformers 5.24); a datasets.py breaks nothing there.
_TRANSFORMERS_NEEDS = frozenset({
    "filelock", "huggingface_hub", "packaging", "regex", "safetensors", "tokenizers", "tqdm", "yaml",
})  # fmt: skip


@check("local-file-hides-module")
def no_file_hides_a_module(
    project: Project, torch: Reading[Torch], packages: Reading[Packages], workload: Reading[Workload]
) -> Iterator[Finding]:
    """Does a file in the working directory take the place of a module that torch or transformers imports?"""
    run = workload.value
    if run is not None and not run.imports:
        return  # our own runner keeps the working directory off its path
    if run is not None and not _lies_here(run.source, project):
        return  # the script's own folder comes first, not this one
    present = {
        "torch": torch.status == "ok",
        "transformers": bool(packages.value and packages.value.get("transformers")),
    }
    harmful: list[int] = []
    others: list[int] = []
    for index, name in enumerate(project.shadowing_files):
        broken = _breaks(name.removesuffix(".py"))
        loaded = [one for one in broken if (one in run.imports if run else present[one])]
        (harmful if loaded else others).append(index)
    if harmful:
        certain = run is not None or not project.is_package
        level: Level = "fail" if run is not None else "warn" if certain else "note"
        yield _finding(project, harmful, level)
    if others:
        yield _finding(project, others, "note")


def _breaks(module: str) -> tuple[str, ...]:
    """Return which of torch and transformers cannot be used where ``module`` is hidden."""
    if module in _TORCH_NEEDS or module == "torch":
        return ("torch", "transformers")
    return ("transformers",) if module in _TRANSFORMERS_NEEDS or module == "transformers" else ()


def _folder(project: Project) -> str:
    return project.shadowing_folder or project.cwd or "."


def _lies_here(source: str, project: Project) -> bool:
    """``train.py`` and ``sub/train.py`` are seen from the working directory."""
    return str(PurePosixPath(project.cwd or ".", source).parent) == _folder(project)


def _finding(project: Project, places: list[int], level: Level) -> Finding:
    names = [project.shadowing_files[place] for place in places]
    fields: dict[str, Param] = {
        "count": len(names),
        "names": ", ".join(names[:4]),
        "folder": _folder(project),
    }
    if level == "note":
        title = t(
            "{names} in {folder} {count:stands|stand} before {count:a module|modules} of the same name for everything started from there",
            **fields,
        )
    else:
        title = t(
            "{names} in {folder} {count:takes|take} the place of {count:a module|modules} that torch or transformers import: what is started from there fails at the import",
            **fields,
        )
    return Finding(
        id="local-file-hides-module",
        level=level,
        subject=names[0],
        title=title,
        evidence=tuple(
            Evidence(fact=f"project.shadowing_files[{place}]", value=name)
            for place, name in zip(places, names, strict=True)
        )[:4],
        advice=t(
            "Give it another name (mv {name} my_{name}) and delete the __pycache__ beside it.",
            name=names[0],
        ),
        cause_of=("torch-import-fails",) if level != "note" else (),
    )
