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
    cpu_quota_us: str = ""
    cpu_period_us: int = 100000
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
    on_path = [_plain(folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for path, text in files.items():
        if text != "absent":
            _place(found, path, str(text), on_path)
    return found


# dmesg | /var/log/syslog | journalctl -k | kern.log
_KERNEL_LOG = re.compile(r"dmesg|syslog|kern\.log|/var/log/messages|journal", re.IGNORECASE)


def _place(found: Found, path: str, text: str, on_path: list[str]) -> None:
    name = path.rstrip("/").rsplit("/", 1)[-1]
    if _KERNEL_LOG.search(path):
        found.kernel_log += text.splitlines()
    elif path in ("/proc/driver/nvidia/version", "/sys/module/nvidia/version"):
        found.kernel_module = _version(text)
    elif path.startswith("/dev/") and not path.startswith("/dev/shm"):
        error = re.search(r"\bE[A-Z]+\b", text)
        found.device_nodes[path] = error[0] if error else ""
    elif path.startswith("/sys/fs/cgroup/"):
        _cgroup(found, name, text)
    elif path in ("/proc/self/status", "/proc/1/status"):
        # CapEff:\t00000000a80425fb | CapEff 00000000a80425fb
        mask = re.search(r"CapEff:?\s*(?:0x)?([0-9a-fA-F]+)", text) or re.search(
            r"([0-9a-f]{8,16})\s*$", text
        )
        found.capabilities = mask[1] if mask else None
    elif name == "ptrace_scope":
        found.ptrace_scope = int(text.split()[0])
    elif "bitsandbytes" in path:
        builds = re.findall(r"cuda(\d{3})(?:_nocublaslt)?\.so", f"{name} {text}")
        found.cuda_builds["bitsandbytes"] = (*found.cuda_builds.get("bitsandbytes", ()), *builds)
    elif ".so" in name:
        _library(found, path, name, text, on_path)
    elif name == "build_and_package_info.py":
        # package_name = 'onnxruntime' (the CPU package)
        package = re.search(r"package_name\s*=\s*['\"]([^'\"]+)['\"]", text)
        if package:
            found.loads_package["onnxruntime-gpu"] = package[1]
    elif name.endswith((".cu", "setup.py", "pyproject.toml")) and _COMPILES.search(f"{name} {text}"):
        found.compiles.append(name)
    elif not _is_a_folder(name, text):
        _inspected(found, path, name, text)


_COMPILES = re.compile(r"CUDAExtension|cpp_extension|load_inline|\bnvcc\b|\.cu\b")


def _is_a_folder(name: str, text: str) -> bool:
    """A folder that is merely there (a platform's mark) tells nothing more."""
    return "." not in name and text.strip().lower() in ("folder", "directory", "present", "exists", "")


def _plain(folder: str) -> str:
    """``/usr/local/cuda-12.2/lib64/`` -> ``/usr/local/cuda/lib64``: the link and what it leads to are one folder."""
    return re.sub(r"/cuda-[\d.]+(?=/|$)", "/cuda", folder.rstrip("/"))


def _version(text: str) -> str | None:
    number = re.search(r"\d+(\.\d+)+", text)
    return number[0] if number else None


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(text: str) -> int | None:
    """``8589934592 (8 GiB)`` | ``8G`` | ``8 GiB``; None where it is no amount."""
    match = re.match(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\b", text, re.IGNORECASE)
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else None


def _count(name: str, text: str) -> int | None:
    match = re.search(rf"\b{name}[ :=]+(\d+)", text)
    return int(match[1]) if match else None


def _cgroup(found: Found, name: str, text: str) -> None:
    first, *rest = text.split() or [""]
    unlimited = first in ("max", "-1")
    if name in ("memory.max", "memory.limit_in_bytes"):
        found.cgroup["memory_limit_unlimited"] = unlimited
        if not unlimited:
            found.cgroup["memory_limit_bytes"] = _bytes(text)
    elif name in ("memory.current", "memory.usage_in_bytes"):
        found.cgroup["memory_current_bytes"] = _bytes(text)
    elif name in ("memory.events", "memory.oom_control"):
        kills = _count("oom_kill", text)
        if kills is not None:
            found.cgroup["oom_kill_count"] = kills
    elif name == "cpu.max":
        _quota(found, first, rest[0] if rest else "100000")
    elif name == "cpu.cfs_quota_us":
        found.cpu_quota_us = first
        _quota(found, first, str(found.cpu_period_us))
    elif name == "cpu.cfs_period_us":
        found.cpu_period_us = int(first)
        _quota(found, found.cpu_quota_us, first)
    else:
        found.unknown.append(name)


def _quota(found: Found, quota: str, period: str) -> None:
    if quota:
        found.cgroup["cpu_quota_unlimited"] = quota in ("max", "-1")
    if quota.isdigit() and period.isdigit():
        found.cgroup["cpu_quota_cores"] = int(quota) / int(period)


def _library(found: Found, path: str, name: str, text: str, on_path: list[str]) -> None:
    folder = path.rsplit("/", 1)[0]
    by = "system"
    if _plain(folder) in on_path:
        by = "LD_LIBRARY_PATH"
    elif path.startswith(("torch/", "nvidia/", "site-packages/")):
        by = "bundled"
    elif path.startswith("env/"):
        by = "conda"
    # max GLIBCXX_3.4.21 | GLIBCXX up to 3.4.28
    symbol = re.search(r"(GLIBC(?:XX)?)(?:_| (?:up )?to )([\d.]*\d)", text)
    version = None if symbol else _version(text)
    if name.startswith("libcuda.so"):
        found.libcuda_path, found.libcuda_version = path, version
        found.libcuda_on_path = by == "LD_LIBRARY_PATH" or "compat" not in path
    if name.startswith("libcudnn.so") and by == "bundled":
        found.bundled_cudnn = version
    found.libraries.append(
        FoundLibrary(
            soname=name,
            path=path,
            version=version,
            found_by=by,
            newest_symbol=f"{symbol[1]}_{symbol[2]}" if symbol else None,
        )
    )


_CHECKPOINTS = (
    ".pt",
    ".pth",
    ".ckpt",
    ".tar",
    ".bin",
    ".safetensors",
    ".pkl",
    ".pickle",
    ".h5",
    ".distcp",
    ".index.json",
)
_TEXTS = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".md", ".py", ".toml", ".yaml", ".yml", ".bio", ".conll", ".vocab", ".log")  # fmt: skip


def _inspected(found: Found, path: str, name: str, text: str) -> None:
    size = re.search(r"([\d.]+) (KB|MB|GB)", text)
    unit = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    size_bytes = int(float(size[1]) * unit[size[2]]) if size else None
    if name.endswith(_CHECKPOINTS):
        found.inspected.append(
            InspectedFile(
                path=path, kind="checkpoint", size_bytes=size_bytes, problem=_problem(text), note=text
            )
        )
    elif name.endswith(_TEXTS) and not path.startswith("/var/log/"):
        kind = "vocab" if "vocab" in name else "script" if name.endswith(".py") else "text"
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


# zip end-of-central-directory missing, 11 MB | 0 bytes | cut off | a Git LFS pointer | 3 of 4 shards are there
_BROKEN = re.compile(
    r"missing|failed|truncat|corrupt|incomplete|cut (?:off|short)|\b0 bytes|\bempty\b|broken|damaged|not a (?:valid )?zip|invalid|crc|mismatch"
    r"|pointer|unreadable|cannot be (?:read|opened)|shorter|\bends? (?:early|in the middle)|half[- ]written|no (?:central|end)|html page"
    r"|\b(?:announces|promises|declares|expects)\b.*\b(?:has|is|holds|only)\b|\bonly [\d.]+ ?[KMG]?B of\b",
    re.IGNORECASE,
)  # fmt: skip
_SOUND = re.compile(
    r"^(?:a )?(?:valid|complete|whole|intact|ok\b|good|sound|readable)|\bopens\b|not (?:truncated|corrupt|damaged)", re.IGNORECASE
)  # fmt: skip


def _problem(text: str) -> str:
    """Return what is wrong with a checkpoint that is described so; empty when nothing is."""
    text = re.sub(
        r"(?:no|without|missing) (?:\w+ )?safetensors\b[^,;]*|safetensors[^,;]*(?:missing|absent)", "", text
    )
    if _SOUND.search(text) or not _BROKEN.search(text):
        return ""
    return text.split(",")[0] if _BROKEN.search(text.split(",")[0]) else text


_OTHER_ENCODINGS = (
    ("utf-16", r"utf-?16"), ("gb18030", r"gb ?18030|gb ?k\b|gbk|gb ?2312|cp936"), ("big5", r"big-?5|cp950"),
    ("shift_jis", r"shift[_-]?jis|cp932"), ("latin-1", r"latin-?1|iso-?8859-1|windows-1252|cp1252"),
)  # fmt: skip
_NOT = r"(?:not|no|never|does not|doesn't|cannot be|nor)\b[^,;.]{0,30}"
# UTF-8 for 99.99 % of lines | UTF-8 except for 3 of 1200000 lines | invalid bytes at offset 0 | cut in mid-character
_DAMAGED = re.compile(
    r"utf-?8 (?:for|in) [\d.]+ ?%|except|undecodable|not decodable as utf|invalid (?:utf|byte|sequence)|bad (?:bytes|lines)|broken|damaged|truncat"
    r"|cut (?:off|in)|mid-character|corrupt|isolated|\bmixed\b|mostly utf",
    re.IGNORECASE,
)  # fmt: skip


def _encoding(text: str) -> tuple[str | None, int | None, int | None]:
    """Return encoding, undecodable lines and lines, as a look into the file would have given them."""
    plain = text.lower()
    if re.search(r"\butf-?16", plain):
        return "utf-16", None, None
    mentions_utf8 = re.search(r"utf-?8", plain) is not None
    marked = re.search(r"\bbom\b|byte[- ]order mark|utf-?8-sig|ef ?bb ?bf", plain)
    if marked and not re.search(r"\b(?:no|without(?: a)?|has no) (?:bom|byte[- ]order mark)", plain):
        return "utf-8-bom", 0, None
    if (
        mentions_utf8
        and _DAMAGED.search(text)
        and not re.search(r"\b(?:all|100 ?%) utf-?8|not utf-?8", plain)
        and not re.search(r"\b(?:no|not|without) (?:invalid|bad|broken|undecodable|damaged|truncated)", plain)
    ):
        return "mixed", _bad_lines(text), _lines_of(text)
    for encoding, pattern in _OTHER_ENCODINGS:
        if re.search(pattern, plain) and not re.search(f"{_NOT}(?:{pattern})", plain):
            return encoding, None, None
    return ("utf-8", 0, None) if mentions_utf8 or re.search(r"\bascii\b", plain) else (None, None, None)


def _bad_lines(text: str) -> int:
    # except for 3 of 1200000 lines | 12 undecodable lines
    match = re.search(r"(\d+) (?:of \d+|undecodable|bad|broken|invalid)", text)
    return int(match[1]) if match else 1


def _lines_of(text: str) -> int:
    """``UTF-8 for 99.99 % of lines`` with one broken line means a file of about ten thousand."""
    told = re.search(r"\d+ of (\d+) lines", text)
    if told:
        return int(told[1])
    share = re.search(r"UTF-8 (?:for|in) ([\d.]+)", text, re.IGNORECASE)
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
