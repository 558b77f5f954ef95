"""Compiled packages and what they were built for: torch, CUDA, C++ ABI, C library. From names, notes and ELF
headers.

Sources, best first: the library's own undefined symbols (ABI), a build note that the package ships, the local
version tag of the wheel (``+cu12torch2.6cxx11abiFALSE``), the libraries that it links.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from doctor.model import Distribution, Extension
from doctor.probes.bounded import names_in, text_or_empty
from doctor.probes.elf import Elf, ElfError, newest
from runner.strings import unescape

NOTE_LIMIT_BYTES = 1 << 16

# distribution -> the folder below site-packages and the pattern of its libraries. Only packages whose
# binaries are known to break with another torch, CUDA or C library; everything else costs a person time for
# nothing.
LIBRARIES: dict[str, tuple[str, str]] = {
    "flash-attn": ("", "flash_attn_2_cuda*.so"),
    "xformers": ("xformers", "_C*.so"),
    "bitsandbytes": ("bitsandbytes", "libbitsandbytes_c*.so"),
    "deepspeed": ("deepspeed/ops", "*.so"),
    "onnxruntime": ("onnxruntime/capi", "onnxruntime_pybind11_state*.so"),
    "onnxruntime-gpu": ("onnxruntime/capi", "libonnxruntime_providers_cuda.so"),
    "torch": ("torch/lib", "libtorch_python.so"),
    "torchvision": ("torchvision", "_C*.so"),
    "torchaudio": ("torchaudio/lib", "*torchaudio*.so"),
    "vllm": ("vllm", "_C*.so"),
    "apex": ("", "amp_C*.so"),
    "mamba-ssm": ("", "selective_scan_cuda*.so"),
    "causal-conv1d": ("", "causal_conv1d_cuda*.so"),
    "torch-scatter": ("torch_scatter", "*.so"),
    "torch-sparse": ("torch_sparse", "*.so"),
    "torch-cluster": ("torch_cluster", "*.so"),
    "mmcv": ("mmcv", "_ext*.so"),
    "paddlepaddle": ("paddle/base", "libpaddle.so"),
    "paddlepaddle-gpu": ("paddle/base", "libpaddle.so"),
    "tokenizers": ("tokenizers", "tokenizers*.so"),
}
LIBRARIES_READ_LIMIT = 8


def read_extensions(items: Iterable[Distribution]) -> tuple[Extension, ...]:
    """Return what is known of the compiled packages among ``items``; the first copy of each counts."""
    first: dict[str, Distribution] = {}
    for item in items:
        if item.name in LIBRARIES:
            first.setdefault(item.name, item)
    return tuple(read_extension(item) for item in first.values())


def read_extension(item: Distribution) -> Extension:
    """Return what one compiled package was built for, as far as its files tell."""
    site = Path(unescape(item.location))
    found = from_tag(item.name, item.version, item.direct_url or "")
    noted = _NOTES[item.name](site) if item.name in _NOTES else {}
    linked = _from_libraries(site, *LIBRARIES[item.name], is_torch=item.name == "torch")
    for source in (linked, noted):
        values = {key: value for key, value in source.items() if value is not None}
        better = {
            key: value
            for key, value in values.items()
            if key != "cuda" or found.cuda is None or "." in str(value)
        }
        found = msgspec.structs.replace(found, **better)
    return found


# 2.8.0.post2+cu12torch2.6cxx11abiTRUE
_FLASH_TAG = re.compile(r"cu(\d{2,3})torch(\d+\.\d+)cxx11abi(TRUE|FALSE)")
# 2.1.2+pt21cu121
_PYG_TAG = re.compile(r"\+pt(\d)(\d+)(?:cu(\d{3}))?")


def from_tag(name: str, version: str, url: str = "") -> Extension:
    """Return what the local version tag says, in the version or in the wheel's file name."""
    for text in (version, url.replace("%2B", "+")):
        if match := _FLASH_TAG.search(text):
            return Extension(
                distribution=name, cuda=dotted(match[1]), torch=match[2], cxx11_abi=match[3] == "TRUE"
            )
        if match := _PYG_TAG.search(text):
            return Extension(
                distribution=name, torch=f"{match[1]}.{match[2]}", cuda=dotted(match[3]) if match[3] else None
            )
    local = re.search(r"\+cu(\d{3})\b", version)
    return Extension(distribution=name, cuda=dotted(local[1]) if local else None)


def dotted(digits: str) -> str:
    """Return ``12.4`` for ``124`` and ``12`` for ``12``."""
    return f"{digits[:2]}.{digits[2:]}" if len(digits) > 2 else digits


def _xformers(site: Path) -> dict[str, object]:
    # {"version": {"cuda": 1204, "hip": null, "torch": "2.5.1+cu124", "python": "3.11.10"}, ...
    try:
        noted = json.loads(text_or_empty(site / "xformers/cpp_lib.json", NOTE_LIMIT_BYTES))["version"]
        cuda, torch = noted.get("cuda"), noted.get("torch")
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {
        "cuda": f"{cuda // 100}.{cuda % 100}" if isinstance(cuda, int) else None,
        "torch": ".".join(torch.split("+")[0].split(".")[:2]) if isinstance(torch, str) else None,
    }


def _onnxruntime(site: Path) -> dict[str, object]:
    text = text_or_empty(site / "onnxruntime/capi/build_and_package_info.py", NOTE_LIMIT_BYTES)
    package = re.search(r"^package_name\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    cuda = re.search(r"^cuda_version\s*=\s*['\"](\d+(?:\.\d+)?)", text, re.MULTILINE)
    return {"loads_package": package[1] if package else None, "cuda": cuda[1] if cuda else None}


def _bitsandbytes(site: Path) -> dict[str, object]:
    names = names_in(site / "bitsandbytes")
    builds = [
        match[1]
        for name in names
        if (match := re.match(r"libbitsandbytes_cuda(\d{2,3})(?:_nocublaslt)?\.so$", name))
    ]
    return {"cuda_builds": tuple(dict.fromkeys(builds)) if names else None}


def _deepspeed(site: Path) -> dict[str, object]:
    # torch_info={'version': '2.1', 'bf16_support': True, 'cuda_version': '12.1', 'nccl_version': '2.18', ...
    # ('0.0' where nothing was compiled beforehand: the kernels are built at their first use)
    text = text_or_empty(site / "deepspeed/git_version_info_installed.py", NOTE_LIMIT_BYTES)
    torch = re.search(r"torch_info=\{[^}]*'version': ['\"](\d+\.\d+)", text)
    cuda = re.search(r"'cuda_version': ['\"](\d+\.\d+)", text)
    return {
        "torch": torch[1] if torch and torch[1] != "0.0" else None,
        "cuda": cuda[1] if cuda and cuda[1] != "0.0" else None,
    }


_NOTES: dict[str, Callable[[Path], dict[str, object]]] = {
    "xformers": _xformers,
    "onnxruntime": _onnxruntime,
    "onnxruntime-gpu": _onnxruntime,
    "bitsandbytes": _bitsandbytes,
    "deepspeed": _deepspeed,
}


def _from_libraries(site: Path, folder: str, pattern: str, is_torch: bool) -> dict[str, object]:
    """Return what the ELF headers of a package's libraries say together: the newest needs, the ABI that all
    agree on."""
    needs: list[str] = []
    links: list[str] = []
    abis: set[bool] = set()
    libraries = [name for name in names_in(site / folder) if fnmatchcase(name, pattern)]
    for name in libraries[:LIBRARIES_READ_LIMIT]:
        try:
            with Elf(site / folder / name) as library:
                needs += library.versions_needed()
                links += library.needed()
                if not is_torch and (abi := cxx11_abi(library.strings)) is not None:
                    abis.add(abi)
        except (OSError, ElfError):
            continue  # a stub, a text file in its place: its absence or breakage is another probe's fact
    if is_torch:  # its own ABI and CUDA are facts of the section Torch
        links = []
    # libcudart.so.12
    cuda = [match[1] for link in links if (match := re.match(r"libcudart\.so\.(\d+)", link))]
    return {
        "needs_glibc": newest(needs, "GLIBC"),
        "needs_glibcxx": newest(needs, "GLIBCXX"),
        "cxx11_abi": abis.pop() if len(abis) == 1 else None,
        "cuda": cuda[0] if len(set(cuda)) == 1 else None,
    }


# _ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_NEW_ABI = re.compile(rb"\0_ZNK?(?:3c10|2at|5torch)[^\0]*__cxx1112basic_string")
# _ZN3c106detail14torchCheckFailEPKcS2_jRKSs
_OLD_ABI = re.compile(rb"\0_ZNK?(?:3c10|2at|5torch)[^\0]*(?:RKSs|ESs)")


def cxx11_abi(strings: bytes) -> bool | None:
    """Return which C++ string ABI a library's symbols of torch use; None where they show neither, or both."""
    new, old = _NEW_ABI.search(strings), _OLD_ABI.search(strings)
    return None if bool(new) == bool(old) else bool(new)
