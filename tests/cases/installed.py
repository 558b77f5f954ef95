"""The distributions and libraries of a case: an excerpt, so what is not in it may well be installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from doctor.model import Distribution, Extension, Libraries, Packages, Reading, ok

if TYPE_CHECKING:
    from tests.cases.adapter import Seen
    from tests.cases.files import Found


def packages(seen: Seen, found: Found) -> Reading[Packages]:
    """Return the Packages section; *skipped* when the case says nothing of what is installed."""
    listed = seen.take("packages")
    lines = seen.take("dist_info", [])
    missing = seen.take("not_installed", [])
    requires = {_normal(name): tuple(rows) for name, rows in seen.take("requires_dist", {}).items()}
    extensions = _extensions(seen, found)
    if listed is None and not lines and not missing and not extensions:
        return Reading(status="skipped")
    copies, urls = _copies(lines)
    versions = {_normal(name): version for name, version in (listed or {}).items()}
    items = []
    for name, version in versions.items():
        own = copies.pop(name, None) or [("", version)]
        own.sort(key=lambda copy: (not copy[0].startswith("~"), copy[1] != version))
        items += [_distribution(name, place, number, requires, urls) for place, number in own]
    for name, own in copies.items():
        items += [_distribution(name, place, number, requires, urls) for place, number in own]
    section = Packages(
        items=tuple(items),
        complete=False,
        not_installed=tuple(_normal(name) for name in missing),
        extensions=tuple(extensions),
    )
    return ok(section, "case")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(
    name: str, place: str, version: str, requires: dict[str, tuple[str, ...]], urls: dict[str, str]
) -> Distribution:
    return Distribution(
        name=name,
        version=version,
        location=place,
        requires_dist=requires.get(name),
        direct_url=urls.get(name),
    )


def _copies(lines: list[str]) -> tuple[dict[str, list[tuple[str, str]]], dict[str, str]]:
    """Return name -> [(folder, version)] and name -> the wheel it came from."""
    copies: dict[str, list[tuple[str, str]]] = {}
    urls: dict[str, str] = {}
    for line in lines:
        # ~/.local/lib/python3.12/site-packages/torch-2.6.0.dist-info
        # flash_attn-2.5.7.dist-info/direct_url.json -> flash_attn-2.5.7+cu122torch2.2cxx11abiFALSE-cp310
        match = re.match(r"(?:(.*)/)?([^/]+?)-(\d[^/]*?)\.(?:dist|egg)-info(?:/\S+ -> (.+))?$", line)
        if match:
            name = _normal(match[2])
            copies.setdefault(name, []).append((match[1] or "site-packages", match[3]))
            if match[4]:
                urls[name] = match[4]
    return copies, urls


def _extensions(seen: Seen, found: Found) -> list[Extension]:
    built = seen.take("built_for", {})
    glibc = seen.take("needs_glibc", {})
    glibcxx = seen.take("needs_glibcxx", {})
    names = {_normal(name): name for source in (built, glibc) for name in source}
    names |= {name: name for name in (*glibcxx, *found.cuda_builds, *found.loads_package)}
    return [
        _extension(key, built.get(raw, {}), glibc.get(raw), glibcxx.get(raw), found)
        for key, raw in names.items()
    ]


def _extension(
    name: str, built: dict[str, Any], glibc: str | None, glibcxx: str | None, found: Found
) -> Extension:
    return Extension(
        distribution=name,
        torch=built.get("torch"),
        cuda=built.get("cuda"),
        cxx11_abi=built.get("cxx11_abi"),
        needs_glibc=glibc,
        needs_glibcxx=glibcxx,
        cuda_builds=found.cuda_builds.get(name),
        loads_package=found.loads_package.get(name),
    )


# These compile their kernels on the machine with nvcc when first used.
_COMPILE_AT_USE = ("deepspeed",)


def libraries(seen: Seen, found: Found) -> Reading[Libraries]:
    """Return the Libraries section; *skipped* when the case names neither a library nor a toolkit."""
    nvcc = seen.take("nvcc")
    compiles = [name for name in _COMPILE_AT_USE if name in (seen.get("packages") or {})] + found.compiles
    if nvcc is None and not found.libraries and not found.compiles:
        return Reading(status="skipped")
    home = (seen.get("env") or {}).get("CUDA_HOME", "/usr/local/cuda")
    section = Libraries(
        items=tuple(found.libraries),
        nvcc_version=nvcc,
        nvcc_path=f"{home}/bin/nvcc" if nvcc else None,
        compiles_extensions=tuple(compiles),
    )
    return ok(section, "case")
