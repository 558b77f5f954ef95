"""The CUDA toolkit and the compiler here, and what would be compiled with them. nvcc is run only if no file
tells."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from doctor.model import Text, t
from doctor.probes.bounded import is_file, names_in, text_or_empty
from doctor.probes.dist_info import name_and_version
from doctor.probes.small_child import ask

if TYPE_CHECKING:
    from doctor.probes import Context

NVCC_DEADLINE_S = 1.0
# These build their kernels on the machine, with nvcc, when they are first used.
COMPILES_AT_USE = ("deepspeed",)
_BUILDS_CUDA = re.compile(r"\b(CUDAExtension|load_inline|nvcc)\b|cpp_extension\.load\b")
PROJECT_FILES = ("setup.py",)


class Nvcc(msgspec.Struct, frozen=True):
    path: Path
    version: str | None = None
    """``12.4``."""
    problem: Text | None = None


def find_nvcc(context: Context) -> Nvcc | None:
    """Return the nvcc that torch's extension builder would take: CUDA_HOME, CUDA_PATH, PATH,
    /usr/local/cuda."""
    homes = [context.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if context.environ.get(name)][:1]
    named = [Path(home) / "bin/nvcc" for home in homes]
    on_path = [Path(context.cwd, folder, "nvcc") for folder in context.environ.get("PATH", "").split(":")]
    for path in named or [*on_path, context.path("/usr/local/cuda/bin/nvcc")]:
        if is_file(path) and os.access(path, os.X_OK):
            version = toolkit_version(path) or _ask_nvcc(path)
            problem = (
                None if version else t("{nvcc} does not tell its version within a second", nvcc=str(path))
            )
            return Nvcc(path, version, problem)
    return None


def toolkit_version(nvcc: Path) -> str | None:
    """Return the toolkit's version from the files around an nvcc; None where none tells it."""
    home = Path(os.path.realpath(nvcc)).parent.parent
    text = text_or_empty(home / "version.json", 1 << 16)
    if text:
        return parse_version_json(text)
    # CUDA Version 10.2.89
    if match := re.match(r"CUDA Version (\d+\.\d+)", text_or_empty(home / "version.txt", 4096)):
        return match[1]
    # #define CUDA_VERSION 13000
    if match := re.search(r"#define CUDA_VERSION (\d+)", text_or_empty(home / "include/cuda.h", 1 << 16)):
        return f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}"
    # cuda-nvcc-tools-12.4.131-h68a0d2a_0.json
    pattern = re.compile(r"cuda-nvcc(?:-tools)?-(\d+\.\d+)[.\d]*-[^-]+\.json$")
    return next((match[1] for name in names_in(home / "conda-meta") if (match := pattern.match(name))), None)


def parse_version_json(text: str) -> str | None:
    """Return the version of nvcc in a toolkit's version.json, else the toolkit's own."""
    try:
        noted = json.loads(text)
        found = [noted[key]["version"] for key in ("cuda_nvcc", "cuda") if key in noted]
    except (ValueError, TypeError, KeyError):
        return None
    match = re.match(r"\d+\.\d+", str(found[0])) if found else None
    return match[0] if match else None


def _ask_nvcc(path: Path) -> str | None:
    return parse_nvcc(ask([path, "--version"], NVCC_DEADLINE_S) or "")


def parse_nvcc(text: str) -> str | None:
    # Cuda compilation tools, release 12.4, V12.4.131
    match = re.search(r"release (\d+\.\d+)", text)
    return match[1] if match else None


def compiles_extensions(context: Context) -> tuple[str, ...]:
    """Return what would be compiled here with nvcc: installed distributions, and the project's own
    setup.py."""
    installed = {
        name_and_version(name)[0]
        for folder in context.target.site_packages
        for name in names_in(folder)
        if name.endswith(".dist-info")
    }
    texts = {name: text_or_empty(context.cwd / name, 1 << 18) for name in PROJECT_FILES}
    return (
        *(name for name in COMPILES_AT_USE if name in installed),
        *(name for name, text in texts.items() if _BUILDS_CUDA.search(text)),
    )


def compiler_version(context: Context) -> str | None:
    """Return the major version of the host compiler from what its name leads to; None where that does not
    tell."""
    name = context.environ.get("CXX") or context.environ.get("CC") or "gcc"
    folders = context.environ.get("PATH", "").split(":")
    paths = (Path(context.cwd, folder, name) for folder in folders)
    found = next((path for path in paths if is_file(path)), None)
    # /usr/bin/gcc -> x86_64-linux-gnu-gcc-12
    match = re.search(r"-(\d+)$", os.path.realpath(found)) if found else None
    return match[1] if match else None
