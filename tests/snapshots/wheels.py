"""Tiny wheels made by hand, and site-packages folders as an installer leaves them."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _quoted(path: str) -> str:
    return f'"{path}"' if "," in path else path


def contents_of(
    name: str, version: str, files: Mapping[str, bytes], tag: str = "py3-none-any"
) -> dict[str, bytes]:
    """Return every file of a wheel: the given ones and its dist-info."""
    info = f"{name}-{version}.dist-info"
    found = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    rows = [f"{_quoted(path)},{digest(content)},{len(content)}" for path, content in found.items()]
    return {**found, f"{info}/RECORD": "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()}


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, bytes] | None = None, tag: str = "py3-none-any"
) -> Path:
    """Write ``NAME-VERSION-TAG.whl`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in contents_of(name, version, files or {f"{name}.py": b"x = 1\n"}, tag).items():
            archive.writestr(file, content)
    return path


def install(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes] | None = None,
    installer: str = "pip",
    notes: Mapping[str, bytes] | None = None,
) -> Path:
    """Lay a distribution into ``site`` as pip or uv does: notes beside METADATA, rows of their own in RECORD."""
    info = site / f"{name}-{version}.dist-info"
    for file, content in contents_of(name, version, files or {f"{name}.py": b"x = 1\n"}).items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_bytes(content)
    added = {"INSTALLER": installer.encode(), **(notes or {})}
    for file, content in added.items():
        (info / file).write_bytes(content)
    rows = [f"{info.name}/{file},{digest(content)},{len(content)}" for file, content in added.items()]
    if installer == "pip":
        rows += [
            f"{name.partition('.')[0]}.cpython-311.pyc,,",
            f"../../../bin/{name},{digest(site.as_posix().encode())},5",
        ]
    with open(info / "RECORD", "a") as record:
        record.write("\n".join(rows) + "\n")
    return info
