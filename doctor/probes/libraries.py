"""CUDA's libraries: those that torch brings, and those that LD_LIBRARY_PATH, conda or the system would put
before them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.model import FoundLibrary, Libraries, Reading, Text, ok, t
from doctor.probes.bounded import names_in, read_bytes
from doctor.probes.elf import Elf, ElfError, newest
from doctor.probes.library_folders import (
    CACHE_LIMIT_BYTES,
    WHEELS,
    bundled_folders,
    loader_folders,
    stem_and_version,
)
from doctor.probes.toolkit import compiler_version, compiles_extensions, find_nvcc
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

WANTED = (*WHEELS, "libcuda", "libstdc++")
LIBRARY_LIMIT = 2000
_CXX = re.compile(r"libstdc\+\+\.so\.6(?:\.\d+)*$")


def probe(context: Context) -> Reading[Libraries]:
    target = context.target
    wheels = wheel_versions(target.site_packages)
    unread: dict[str, Text] = {}
    found: list[FoundLibrary] = []
    for folder in loader_folders(context.environ, context.cwd):
        found += libraries_in(folder, "LD_LIBRARY_PATH", wheels, unread)
    for folder in bundled_folders(target.site_packages):
        found += libraries_in(folder, "bundled", wheels, unread)
    if target.kind == "conda" and target.prefix:
        found += libraries_in(target.prefix / "lib", "conda", wheels, unread)
    found += one_each(describe(path, "system", wheels) for path in system_libraries(context, unread))
    nvcc = find_nvcc(context)
    libraries = Libraries(
        items=tuple(found[:LIBRARY_LIMIT]),
        nvcc_version=nvcc.version if nvcc else None,
        nvcc_path=printable(str(nvcc.path)) if nvcc else None,
        compiles_extensions=compiles_extensions(context),
        compiler_version=compiler_version(context),
        unread=unread | ({"nvcc_version": nvcc.problem} if nvcc and nvcc.problem else {}),
    )
    return ok(libraries, source="LD_LIBRARY_PATH, site-packages/nvidia/*/lib, ldconfig -p")


def libraries_in(
    folder: Path, found_by: str, wheels: dict[str, set[str]], unread: dict[str, Text]
) -> list[FoundLibrary]:
    """Return the libraries of interest in a folder, one for each SONAME."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unread["items"] = _cannot_list(folder, error)
        return []
    wanted = (name for name in names if _CXX.match(name) or stem_and_version(name)[0] in WANTED)
    return one_each(describe(folder / name, found_by, wheels) for name in wanted)


def one_each(libraries: Iterable[FoundLibrary | None]) -> list[FoundLibrary]:
    """Return one library for each SONAME: the file that is called so, which is the one that the loader
    takes."""
    found: dict[str, FoundLibrary] = {}
    for one in libraries:
        if one is not None and (one.path.endswith("/" + one.soname) or one.soname not in found):
            found[one.soname] = one
    return list(found.values())


def _cannot_list(path: Path | str, error: OSError) -> Text:
    return t("{folder} cannot be listed: {error}", folder=printable(str(path)), error=error.strerror or "")


def describe(path: Path, found_by: str, wheels: dict[str, set[str]]) -> FoundLibrary | None:
    """Return one library; None for what is no library (a linker script, a dead link)."""
    try:
        with Elf(path) as library:
            soname = library.soname() or path.name
            symbol = (
                newest(library.versions_offered(), "GLIBCXX") if path.name.startswith("libstdc++") else None
            )
    except (OSError, ElfError):
        return None
    return FoundLibrary(
        soname=printable(soname),
        path=printable(str(path)),
        version=_version(path, found_by, wheels),
        found_by=found_by,
        newest_symbol=f"GLIBCXX_{symbol}" if symbol else None,
    )


def _version(path: Path, found_by: str, wheels: dict[str, set[str]]) -> str | None:
    """Return a version of at least two numbers: from the real file's name, its wheel, or cuDNN's header
    beside it."""
    # libcublas.so.12 -> libcublas.so.12.4.5.8
    stem, named = stem_and_version(Path(os.path.realpath(path)).name)
    if "." in named:
        return named
    if found_by == "bundled" and len(versions := wheels.get(WHEELS.get(stem, ""), set())) == 1:
        return next(iter(versions))
    return (
        cudnn_header_version(path.parent.parent / "include/cudnn_version.h") if stem == "libcudnn" else None
    )


def cudnn_header_version(header: Path) -> str | None:
    """Return ``9.10.2`` of cudnn_version.h; None where it is not there."""
    try:
        text = read_bytes(header, 1 << 16).decode("utf-8", "replace")
    except OSError:
        return None
    # #define CUDNN_MAJOR 9
    parts = [re.search(rf"#define\s+CUDNN_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCHLEVEL")]
    return ".".join(part[1] for part in parts if part) if all(parts) else None


def wheel_versions(site_packages: Iterable[Path]) -> dict[str, set[str]]:
    """Return the versions of the installed nvidia wheels, by stem: ``cudnn`` -> {``9.10.2.21``}."""
    found: dict[str, set[str]] = {}
    for site in site_packages:
        for name in names_in(site):
            # nvidia_cudnn_cu12-9.10.2.21.dist-info
            if match := re.match(r"nvidia_([a-z_]+?)(?:_cu\d+)?-([^-]+)\.dist-info$", name):
                found.setdefault(match[1].replace("_", "-"), set()).add(match[2])
    return found


def system_libraries(context: Context, unread: dict[str, Text]) -> list[Path]:
    """Return CUDA's libraries and libstdc++ among those that the loader's cache offers every program:
    ``ldconfig -p``."""
    try:
        cache = read_bytes(context.path("/etc/ld.so.cache"), CACHE_LIMIT_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        unread["items"] = _cannot_list("/etc/ld.so.cache", error)
        return []
    return [context.path(path) for path in parse_loader_cache(cache)]


def parse_loader_cache(cache: bytes) -> list[str]:
    """Return the paths of interest in an ld.so.cache, the first for each name; other architectures' folders
    left out."""
    found: dict[str, str] = {}
    # \0/lib/x86_64-linux-gnu/libcudnn.so.9\0
    for match in re.finditer(rb"\0(/[^\0]+/(lib[^/\0]+\.so[^/\0]*))(?=\0)", cache):
        path, name = os.fsdecode(match[1]), os.fsdecode(match[2])
        other = any(part in path for part in ("/lib32/", "/libx32/", "/i386-linux-gnu/"))
        if not other and (_CXX.match(name) or stem_and_version(name)[0] in WANTED):
            found.setdefault(name, path)
    return list(found.values())
