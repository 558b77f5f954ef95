"""Tiny wheels made by hand, and environments that hold them: a real installer works on them without any network."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    requires: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write ``name-version-py3-none-any.whl``; without ``files`` it holds a package that knows its version."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    inside = dict(files or {f"{name.replace('-', '_')}/__init__.py": f"__version__ = {version!r}\n"})
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    inside[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}"
    inside[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in inside.items())
    inside[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_inside, text in inside.items():
            archive.writestr(zipfile.ZipInfo(name_inside, (2026, 1, 2, 3, 4, 6)), text)
    return path


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def torch_files(version: str, cuda: str | None, code: str = "") -> dict[str, str]:
    """Return a torch that its files describe as the real one's do."""
    return {
        "torch/__init__.py": f"{code}\nfrom torch.version import __version__\n",
        "torch/version.py": f"__version__ = {version!r}\ndebug = False\ncuda = {cuda!r}\ngit_version = ''\nhip = None\n",
        "torch/_C.py": "",
    }


def make_venv(folder: Path, wheels: Path, *requirements: str) -> Path:
    """Make an environment without pip, install ``requirements`` from ``wheels``, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin/python"
    if requirements:
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--find-links", str(wheels),
             "--no-deps", "--disable-pip-version-check", *requirements],
            check=True,
        )  # fmt: skip
    return python
