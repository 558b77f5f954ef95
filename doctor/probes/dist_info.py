"""One installed distribution, read from its ``*.dist-info`` or ``*.egg-info``. Bounded, and never raises.

Formats: the core metadata specification (METADATA, PKG-INFO), the binary distribution format (WHEEL), PEP 376
(RECORD, INSTALLER, REQUESTED), PEP 610 (direct_url.json).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from doctor.model import Distribution
from doctor.probes.bounded import names_in, read_bytes, text_or_empty
from runner.strings import printable

METADATA_LIMIT_BYTES = 1 << 20
"""Headers end long before; what follows them is the project's README."""
FIRST_READ_BYTES = 1 << 16
RECORD_LIMIT_BYTES = 16 << 20
REQUIREMENTS_LIMIT = 2000

_SEPARATORS = re.compile(r"[-_.]+")
# Requires-Dist: numpy<2,>=1.17 ; python_version < "3.12"
_HEADER = re.compile(
    rb"^(Name|Version|Requires-Python|Requires-Dist):[ \t]*([^\r\n]*(?:\r?\n[ \t]+[^\r\n]+)*)", re.MULTILINE
)
_USED = frozenset((b"Name", b"Version", b"Requires-Python", b"Requires-Dist"))
_HEADERS_END = re.compile(rb"\r?\n\r?\n")


def normalise(name: str) -> str:
    """Return a distribution name as PEP 503 has it."""
    return _SEPARATORS.sub("-", name).lower()


def name_and_version(folder_name: str) -> tuple[str, str]:
    """Return what a folder name says: ``nvidia_nccl_cu13-2.30.7.dist-info`` -> (``nvidia-nccl-cu13``,
    ``2.30.7``)."""
    stem = folder_name.rsplit(".", 1)[0]
    name, _, rest = stem.partition("-")
    # setuptools' egg-info: pkg-1.0-py3.11.egg-info; a source tree's: pkg.egg-info
    return normalise(name), rest.partition("-py")[0] if folder_name.endswith(".egg-info") else rest


def parse_headers(raw: bytes) -> dict[str, list[str]]:
    """Return the headers that we use, each with its values in order; folded lines joined."""
    end = _HEADERS_END.search(raw) if b"\r" in raw else None
    stop = end.start() if end else raw.find(b"\n\n")
    head = raw[: stop + 1] if stop >= 0 else raw
    is_plain = b"\r" not in head and b"\n " not in head and b"\n\t" not in head
    found: dict[str, list[str]] = {}
    for key, value in _plain_headers(head) if is_plain else _HEADER.findall(head):
        text = value.decode("utf-8", "surrogateescape")
        found.setdefault(key.decode(), []).append(" ".join(text.split()) if "\n" in text else text.rstrip())
    return found


def _plain_headers(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what ``_HEADER`` finds where no line is folded, in a quarter of its time: there are hundreds of files."""
    for line in head.split(b"\n"):
        key, colon, value = line.partition(b":")
        if colon and key in _USED:
            yield key, value.lstrip(b" \t")


def read_headers(path: str) -> dict[str, list[str]]:
    """Return the headers of a METADATA file of any size. Raises OSError."""
    raw = read_bytes(path, FIRST_READ_BYTES)
    if len(raw) == FIRST_READ_BYTES and not _HEADERS_END.search(raw):
        raw = read_bytes(path, METADATA_LIMIT_BYTES)
    return parse_headers(raw)


def read_distribution(site: str, folder_name: str) -> Distribution:
    """Return the distribution that ``site/folder_name`` describes, with the reason where it describes it
    badly."""
    folder, location = f"{site}/{folder_name}", printable(site)
    name, version = name_and_version(folder_name)
    is_wheel = folder_name.endswith(".dist-info")
    headers, problem = _headers_of(folder, is_wheel)
    named = headers.get("Name", [""])[0].strip()
    if not problem and not named:
        problem = "no Name in its METADATA"
    requires = headers.get("Requires-Dist")
    if requires is None and not is_wheel and not problem:
        requires = parse_requires_txt(text_or_empty(f"{folder}/requires.txt")) or None
    common = {
        "name": printable(normalise(named) if named else name),
        "version": printable(headers.get("Version", [version])[0].strip() or version),
        "location": location,
        "requires_dist": None
        if problem
        else tuple(printable(line) for line in (requires or ())[:REQUIREMENTS_LIMIT]),
        "requires_python": printable(headers["Requires-Python"][0]) if "Requires-Python" in headers else None,
        "metadata_error": printable(problem),
    }
    return Distribution(**common, **(_install_notes(folder) if is_wheel else {}))  # type: ignore[arg-type]


def _headers_of(folder: str, is_wheel: bool) -> tuple[dict[str, list[str]], str]:
    for path in (f"{folder}/METADATA",) if is_wheel else (f"{folder}/PKG-INFO", folder):
        try:
            return read_headers(path), ""
        except OSError as error:
            problem = f"{os.path.basename(path)}: {error.strerror}"  # noqa: PTH119
    return {}, problem


def _install_notes(folder: str) -> dict[str, object]:
    """Return what the installer left beside METADATA."""
    there = set(names_in(folder))
    notes: dict[str, object] = {"requested": "REQUESTED" in there}
    if "INSTALLER" in there:
        installer = text_or_empty(f"{folder}/INSTALLER", 64).strip()
        notes["installer"] = printable(installer)
    if "WHEEL" in there:
        tags = re.findall(r"^Tag: *(\S+)", text_or_empty(f"{folder}/WHEEL", 1 << 14), re.MULTILINE)
        notes["wheel_tags"] = tuple(map(printable, tags))
    if "direct_url.json" in there:
        notes["direct_url"], notes["editable"] = parse_direct_url(
            text_or_empty(f"{folder}/direct_url.json", 1 << 14)
        )
    return notes


def parse_direct_url(text: str) -> tuple[str | None, bool]:
    """Return where it was installed from, without user, password, query and fragment; and whether it is
    editable."""
    try:
        noted = json.loads(text)
        parts = urlsplit(noted["url"])
        editable = bool(noted.get("dir_info", {}).get("editable"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, False
    return printable(
        urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    ), editable


def parse_requires_txt(text: str) -> list[str]:
    """Return the unconditional lines of setuptools' requires.txt, and those under a marker, as Requires-Dist
    lines."""
    found, marker = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, condition = line.strip("[]").partition(":")
            marker = "extra" if extra else condition
        elif marker != "extra":
            found.append(f"{line} ; {marker}" if marker else line)
    return found


# Without these files an import fails or half works; the thousands of others are not looked at.
# torch/lib/libtorch_cpu.so,sha256=...,446314593      nvidia/cudnn/lib/libcudnn.so.9,sha256=...,
_LIBRARY_FOLDERS = {
    "torch": (b"torch/lib/", b"torch/_C"),
    "torchvision": (b"torchvision/",),
    "torchaudio": (b"torchaudio/lib/",),
    "triton": (b"triton/_C/",),
    "nvidia": (b"nvidia/",),
}
_MODULES = (b"__init__.py", b"version.py")
# libtorch_cpu.so   libcudnn.so.9   .cpython-311-x86_64-linux-gnu.so
_LIBRARY = re.compile(rb"[^/]*\.so(\.[\d.]+)?$")
_LIBRARY_BELOW = re.compile(rb".*\.so(\.[\d.]+)?$")


def missing_files(site: Path, folder_name: str, name: str) -> tuple[str, ...]:
    """Return the import-critical RECORD entries that are not on disk. Empty too where there is no RECORD to
    ask."""
    try:
        raw = b"\n" + read_bytes(site / folder_name / "RECORD", RECORD_LIMIT_BYTES)
    except OSError:
        return ()
    named = [os.fsdecode(path) for path in critical_paths(raw, name)]
    return tuple(printable(path) for path in named if not os.path.exists(f"{site}/{path}"))  # noqa: PTH110


def critical_paths(record: bytes, name: str) -> list[bytes]:
    """Return the paths in a RECORD (one newline put before it) that importing ``name`` hangs on."""
    top = name.partition("-")[0]
    pattern = _LIBRARY_BELOW if top == "nvidia" else _LIBRARY
    modules = [
        path for module in _MODULES if (path := f"{top}/".encode() + module) and b"\n%s," % path in record
    ]
    return modules + [
        path
        for folder in _LIBRARY_FOLDERS.get(top, ())
        for path in _paths_below(record, folder)
        if pattern.match(path, len(folder))
    ]


def _paths_below(record: bytes, prefix: bytes) -> Iterator[bytes]:
    """Yield the paths that begin with ``prefix``. A plain search: torch's RECORD has 1.3 MB."""
    at = record.find(b"\n" + prefix)
    while at >= 0:
        end = record.find(b",", at)
        yield record[at + 1 : end if end >= 0 else len(record)]
        at = record.find(b"\n" + prefix, at + 1)
