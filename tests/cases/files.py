"""Sorts the ``files`` table of a case by what each path tells of: driver, cgroup, libraries, data ..."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from doctor.model import FoundLibrary, InspectedFile


@dataclass
class Found:
    """What the files of a case say, by the section it belongs to."""

    kernel_log: list[str] = field(default_factory=list)
    kernel_module: str | None = None
    libcuda_path: str | None = None
    libcuda_version: str | None = None
    libcuda_on_path: bool = False
    device_nodes: dict[str, str] = field(default_factory=dict)
    cgroup: dict[str, Any] = field(default_factory=dict)
    capabilities: str | None = None
    ptrace_scope: int | None = None
    libraries: list[FoundLibrary] = field(default_factory=list)
    bundled_cudnn: str | None = None
    compiles: list[str] = field(default_factory=list)
    cuda_builds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    loads_package: dict[str, str] = field(default_factory=dict)
    inspected: list[InspectedFile] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def sort_out(files: Mapping[str, str], environment: Mapping[str, str]) -> Found:
    """Return ``files`` sorted; a path of no known meaning is named in ``unknown``."""
    found = Found()
    on_path = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for path, text in files.items():
        if text != "absent":
            _place(found, path, str(text), on_path)
    return found


def _place(found: Found, path: str, text: str, on_path: list[str]) -> None:
    name = path.rsplit("/", 1)[-1]
    if path == "dmesg":
        found.kernel_log += text.splitlines()
    elif path in ("/proc/driver/nvidia/version", "/sys/module/nvidia/version"):
        found.kernel_module = _version(text)
    elif path.startswith("/dev/"):
        error = re.search(r"\bE[A-Z]+\b", text)
        found.device_nodes[path] = error[0] if error else ""
    elif path.startswith("/sys/fs/cgroup/"):
        _cgroup(found, name, text)
    elif path == "/proc/self/status":
        found.capabilities = text.split()[-1]
    elif name == "ptrace_scope":
        found.ptrace_scope = int(text)
    elif ".so" in name:
        _library(found, path, name, text, on_path)
    elif "bitsandbytes" in path:
        found.cuda_builds["bitsandbytes"] = tuple(re.findall(r"cuda(\d{3})\.so", text))
    elif name == "build_and_package_info.py":
        # package_name = 'onnxruntime' (the CPU package)
        package = re.search(r"package_name = '([^']+)'", text)
        if package:
            found.loads_package["onnxruntime-gpu"] = package[1]
    elif name in ("setup.py", "pyproject.toml") and "CUDAExtension" in text:
        found.compiles.append(name)
    else:
        _inspected(found, path, name, text)


def _version(text: str) -> str | None:
    number = re.search(r"\d+(\.\d+)+", text)
    return number[0] if number else None


def _cgroup(found: Found, name: str, text: str) -> None:
    first, *rest = text.split()
    if name in ("memory.max", "memory.limit_in_bytes"):
        found.cgroup["memory_limit_unlimited"] = first == "max"
        if first != "max":
            found.cgroup["memory_limit_bytes"] = int(first)
    elif name in ("memory.current", "memory.usage_in_bytes"):
        found.cgroup["memory_current_bytes"] = int(first)
    elif name == "memory.events" and "oom_kill" in text:
        found.cgroup["oom_kill_count"] = int(text.split("oom_kill ")[1].split()[0])
    elif name == "cpu.max":
        found.cgroup["cpu_quota_unlimited"] = first == "max"
        if first != "max":
            found.cgroup["cpu_quota_cores"] = int(first) / int(rest[0])
    else:
        found.unknown.append(name)


def _library(found: Found, path: str, name: str, text: str, on_path: list[str]) -> None:
    folder = path.rsplit("/", 1)[0]
    by = "system"
    if folder in on_path:
        by = "LD_LIBRARY_PATH"
    elif path.startswith(("torch/", "nvidia/", "site-packages/")):
        by = "bundled"
    elif path.startswith("env/"):
        by = "conda"
    symbol = re.search(r"GLIBC(?:XX)?_[\d.]+\d", text)
    version = None if symbol else _version(text)
    if name.startswith("libcuda.so"):
        found.libcuda_path, found.libcuda_version = path, version
        found.libcuda_on_path = by == "LD_LIBRARY_PATH" or "compat" not in path
    if name.startswith("libcudnn.so") and by == "bundled":
        found.bundled_cudnn = version
    found.libraries.append(
        FoundLibrary(
            soname=name, path=path, version=version, found_by=by, newest_symbol=symbol[0] if symbol else None
        )
    )


_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".tar", ".bin", ".safetensors", ".pkl")
_TEXTS = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".md", ".py", ".toml", ".yaml")


def _inspected(found: Found, path: str, name: str, text: str) -> None:
    size = re.search(r"([\d.]+) (KB|MB|GB)", text)
    unit = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    size_bytes = int(float(size[1]) * unit[size[2]]) if size else None
    if name.endswith(_CHECKPOINTS):
        problem = (
            ""
            if text.startswith("valid") or ("missing" not in text and "truncated" not in text)
            else text.split(",")[0]
        )
        found.inspected.append(
            InspectedFile(path=path, kind="checkpoint", size_bytes=size_bytes, problem=problem, note=text)
        )
    elif name.endswith(_TEXTS) and not path.startswith("/var/log/"):
        kind = "vocab" if name.startswith("vocab") else "script" if name.endswith(".py") else "text"
        encoding, bad_lines, lines = _encoding(text)
        found.inspected.append(
            InspectedFile(
                path=path,
                kind=kind,
                size_bytes=size_bytes,
                encoding=encoding,
                bad_lines=bad_lines,
                lines=lines,
                note=text,
            )
        )
    else:
        found.unknown.append(path)


def _encoding(text: str) -> tuple[str | None, int | None, int | None]:
    """Return encoding, undecodable lines and lines, as a look into the file would have given them."""
    if "BOM (" in text or "with BOM" in text:
        return "utf-8-bom", 0, None
    if re.match(r"UTF-8 for [\d.]+ ?%", text):
        return "mixed", 1, _lines_of(text)
    if text.startswith(("GB18030", "GBK", "GB2312")):
        return "gb18030", None, None
    if text.startswith("UTF-16"):
        return "utf-16", None, None
    if text.startswith("UTF-8"):
        return "utf-8", 0, None
    return None, None, None


def _lines_of(text: str) -> int:
    """``UTF-8 for 99.99 % of lines`` with one broken line means a file of about ten thousand."""
    share = re.match(r"UTF-8 for ([\d.]+)", text)
    good = float(share[1]) if share else 99.0
    return max(2, round(100 / max(100 - good, 0.001)))


def with_pickles(inspected: list[InspectedFile], pickles: Mapping[str, list[str]]) -> list[InspectedFile]:
    """Return the inspected files with the globals that their pickles name."""
    rest = dict(pickles)
    done = [
        msgspec.structs.replace(item, pickle_globals=tuple(rest.pop(item.path)))
        if item.path in rest
        else item
        for item in inspected
    ]
    extra = [
        InspectedFile(path=path, kind="checkpoint", pickle_globals=tuple(names))
        for path, names in rest.items()
    ]
    return done + extra
