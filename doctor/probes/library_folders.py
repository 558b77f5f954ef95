"""Where the loader and torch look for CUDA's libraries, and how those libraries are called. Names only;
nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.probes.bounded import is_folder, is_there, names_in, read_bytes
from doctor.probes.elf import Elf, ElfError

if TYPE_CHECKING:
    from doctor.probes import Context

# library stem -> the stem of the wheel that carries it (nvidia-<stem>, nvidia-<stem>-cu12)
WHEELS = {
    "libcudart": "cuda-runtime",
    "libcudnn": "cudnn",
    "libcublas": "cublas",
    "libcublasLt": "cublas",
    "libcufft": "cufft",
    "libcurand": "curand",
    "libcusolver": "cusolver",
    "libcusparse": "cusparse",
    "libcusparseLt": "cusparselt",
    "libnccl": "nccl",
    "libnvrtc": "cuda-nvrtc",
    "libnvJitLink": "nvjitlink",
    "libcupti": "cuda-cupti",
    "libcufile": "cufile",
    "libnvshmem_host": "nvshmem",
}
# libcudnn.so.9   libcublasLt.so.12.4.5.8   libcudart.so
_NAME = re.compile(r"(lib[A-Za-z_]+)\.so(?:\.(\d+(?:\.\d+)*))?$")
DEFAULT_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
CACHE_LIMIT_BYTES = 32 << 20


def stem_and_version(name: str) -> tuple[str, str]:
    """Return (``libcudnn``, ``8.9.7``) for ``libcudnn.so.8.9.7``; empty stem for another kind of name."""
    match = _NAME.match(name)
    return (match[1], match[2] or "") if match else ("", "")


def loader_folders(environ: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return LD_LIBRARY_PATH's folders in order. An empty entry means the working directory, for the loader
    too."""
    value = environ.get("LD_LIBRARY_PATH")
    entries = re.split("[:;]", value) if value else []
    return list(dict.fromkeys(Path(cwd, entry) for entry in entries))


def bundled_folders(site_packages: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the folders of libraries that wheels bring: ``nvidia/*/lib`` and ``torch/lib``."""
    for site in site_packages:
        for component in names_in(site / "nvidia"):
            if not component.startswith(("_", ".")) and is_folder(
                folder := site / "nvidia" / component / "lib"
            ):
                yield folder
        if is_folder(site / "torch/lib"):
            yield site / "torch/lib"


def unresolved_libraries(context: Context, torch_lib: Path) -> list[str]:
    """Return the CUDA libraries that libtorch_cuda.so links and that lie in no folder where they would be
    found.

    Empty where that cannot be told (no such library, a loader cache that cannot be read).
    """
    try:
        with Elf(torch_lib / "libtorch_cuda.so") as library:
            needed = [name for name in library.needed() if stem_and_version(name)[0] in WHEELS]
            run_path = [Path(folder.replace("$ORIGIN", str(torch_lib))) for folder in library.run_path()]
        cache = _loader_cache(context)
    except (OSError, ElfError):
        return []
    folders = [torch_lib, *run_path, *loader_folders(context.environ, context.cwd)]
    folders += [
        *bundled_folders(context.target.site_packages),
        *(context.path(folder) for folder in DEFAULT_FOLDERS),
    ]
    if context.target.prefix:
        folders.append(context.target.prefix / "lib")
    return [
        name
        for name in needed
        if name.encode() + b"\0" not in cache and not any(is_there(folder / name) for folder in folders)
    ]


def _loader_cache(context: Context) -> bytes:
    """Return /etc/ld.so.cache; empty where there is none (musl, a minimal image)."""
    try:
        return read_bytes(context.path("/etc/ld.so.cache"), CACHE_LIMIT_BYTES)
    except FileNotFoundError:
        return b""
