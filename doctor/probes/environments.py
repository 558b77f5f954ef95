"""Every Python environment that can be found on this machine, and what names it. Nothing of them is run."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from doctor.probes.bounded import is_file, is_there, names_in, text_or_empty
from doctor.probes.on_path import through_shim
from doctor.probes.target import BadPython, Target, describe, is_tool_environment

if TYPE_CHECKING:
    from doctor.probes import Context

DEADLINE_S = 8.0
ENVIRONMENT_LIMIT = 200
_BINARY = re.compile(r"python(\d(\.\d+)?)?t?$")
# Where images of the rental platforms, conda's installers and people put environments: each folder below
# these.
PARENTS = ("/opt", "/venv", "/workspace", "/root/autodl-tmp", "/root", "/home")
CONDA_ROOTS = ("/opt/conda", "/root/miniconda3", "/opt/miniconda3", "/opt/miniforge3", "/opt/anaconda3")
HOME_CONDA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
HOME_FOLDERS = (
    "",
    ".virtualenvs",
    ".cache/pypoetry/virtualenvs",
    ".local/share/virtualenvs",
    "envs",
    "venvs",
)
TOOL_FOLDERS = (".local/share/uv/tools", ".local/pipx/venvs", ".local/share/pipx/venvs")
KERNEL_FOLDERS = ("/usr/share/jupyter/kernels", "/usr/local/share/jupyter/kernels")


class FoundEnvironment(msgspec.Struct, frozen=True):
    """An environment and everything that names it."""

    target: Target
    found_by: tuple[str, ...]
    """PATH, pyenv, conda, here, home, tool, ``kernel NAME`` ..."""
    is_current: bool = False
    """It is the one that ``doctor check`` judges."""
    is_tool: bool = False


def find_environments(context: Context) -> tuple[list[FoundEnvironment], bool]:
    """Return the environments, the session's own first, and whether the search ended before its deadline."""
    found: dict[tuple[str, str], FoundEnvironment] = {}
    done = threading.Event()

    def look() -> None:
        for executable, found_by in _named(context):
            if len(found) >= ENVIRONMENT_LIMIT:
                return
            _add(context, found, executable, found_by)
        done.set()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    seen = tuple(found.values())  # a copy: the thread may be left behind, still adding
    return sorted(seen, key=lambda one: not one.is_current), done.is_set()


def _add(
    context: Context, found: dict[tuple[str, str], FoundEnvironment], executable: Path, found_by: str
) -> None:
    # PATH offers several, and only the first is what this session's python and pip are held against.
    target = describe(context, executable, "" if found_by == "PATH" else found_by)
    key = (os.path.realpath(target.prefix or executable), target.minor)
    known = found.get(key)
    if known is None:
        tool = is_tool_environment(target.prefix)
        found[key] = FoundEnvironment(target, (found_by,), found_by == "session", tool)
    elif found_by not in known.found_by:
        names = (*known.found_by, found_by)
        found[key] = FoundEnvironment(known.target, names, known.is_current, known.is_tool)


def _named(context: Context) -> Iterator[tuple[Path, str]]:
    """Yield interpreters and what named them; the same environment may come several times."""
    try:
        session = context.target
    except BadPython:
        session = Target(executable=None)
    if session.executable:
        yield session.executable, "session"
    yield from _on_path(context)
    home = Path(context.environ.get("HOME") or "/nonexistent")
    folders: list[tuple[Path, str]] = [(context.cwd, "here"), *_below(context.cwd, "here")]
    folders += _below(Path(context.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions", "pyenv")
    folders += _conda(context, home)
    folders += [one for name in HOME_FOLDERS for one in _below(home / name, "home")]
    folders += [one for name in TOOL_FOLDERS for one in _below(home / name, "tool")]
    folders += [
        one for name in PARENTS if context.path(name) != home for one in _below(context.path(name), name)
    ]
    for folder, found_by in folders:
        if executable := _interpreter_in(folder):
            yield executable, found_by
    yield from _kernels(context, [home / ".local/share/jupyter/kernels", *_shared_kernels(context, session)])


def _interpreter_in(folder: Path) -> Path | None:
    """Return the interpreter of an environment's folder, a dead link too where the folder is marked as
    one."""
    for name in ("python", "python3"):
        path = folder / "bin" / name
        marked = is_there(folder / "pyvenv.cfg")
        if is_file(path) or (marked and os.path.lexists(path)):
            return path
    return None


def _below(folder: Path, found_by: str) -> list[tuple[Path, str]]:
    return [(folder / name, found_by) for name in names_in(folder)]


def _on_path(context: Context) -> Iterator[tuple[Path, str]]:
    for folder in context.environ.get("PATH", "").split(":"):
        for name in names_in(Path(context.cwd, folder)):
            path = Path(context.cwd, folder, name)
            if _BINARY.match(name) and is_file(path) and os.access(path, os.X_OK):
                real = through_shim(path, context)
                if real is not None:
                    yield real, "PATH"


def _conda(context: Context, home: Path) -> list[tuple[Path, str]]:
    roots = [context.path(root) for root in CONDA_ROOTS] + [home / name for name in HOME_CONDA_ROOTS]
    if context.environ.get("CONDA_EXE"):
        roots.append(Path(context.environ["CONDA_EXE"]).parent.parent)
    noted = text_or_empty(home / ".conda/environments.txt").splitlines()
    env_folders = [root / "envs" for root in roots]
    env_folders += [
        Path(folder) for folder in context.environ.get("CONDA_ENVS_PATH", "").split(":") if folder
    ]
    found = [(root, "conda") for root in roots] + [
        (Path(line), "conda") for line in noted if line.startswith("/")
    ]
    return found + [one for folder in env_folders for one in _below(folder, "conda")]


def _shared_kernels(context: Context, session: Target) -> list[Path]:
    own = [session.prefix / "share/jupyter/kernels"] if session.prefix else []
    return [*(context.path(folder) for folder in KERNEL_FOLDERS), *own]


def _kernels(context: Context, folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the interpreters that Jupyter's kernels start, those that are not there any more too."""
    for folder in folders:
        for name in names_in(folder):
            executable = kernel_python(text_or_empty(folder / name / "kernel.json", 1 << 16))
            if executable is not None:
                yield executable, f"kernel {name}"


def kernel_python(text: str) -> Path | None:
    """Return the absolute interpreter that a kernel.json starts; None for another language or a bare name."""
    try:
        noted = json.loads(text)
        first = noted["argv"][0]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    is_python = isinstance(first, str) and first.startswith("/") and _BINARY.match(Path(first).name)
    return Path(first) if is_python else None
