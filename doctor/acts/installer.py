"""The examined interpreter's own installer: its pip, else uv, else our pip told to work there. Argument lists only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from doctor.acts import Refused
from doctor.model import InstallPackages, t
from runner.strings import unescape

_ASK = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
try:
    import pip
    has_pip = pip.__version__
except Exception:
    has_pip = ""
print(json.dumps([sys.prefix, paths["purelib"], paths["platlib"], paths["scripts"], has_pip]))
"""
_ASK_LIMIT_S = 30.0
_PIP_WORKS_ELSEWHERE = (22, 3)
"""``pip --python`` came with this one."""


class Place(msgspec.Struct, frozen=True):
    """Where an interpreter keeps its packages, as it says itself."""

    python: str
    prefix: Path
    sites: tuple[Path, ...]
    scripts: Path
    pip: str
    """Its pip's version; empty: it has none."""


def ask_place(python: str) -> Place:
    """Raises Refused: the interpreter does not run."""
    python = unescape(python)
    try:
        done = subprocess.run(
            [python, "-c", _ASK], capture_output=True, stdin=subprocess.DEVNULL, timeout=_ASK_LIMIT_S, check=True, cwd="/"
        )  # fmt: skip
        prefix, pure, plat, scripts, pip = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise Refused(t("{python} does not run ({error}): nothing was changed", python=python, error=str(error))) from None  # fmt: skip
    sites = tuple(dict.fromkeys((Path(pure), Path(plat))))
    return Place(python, Path(prefix), sites, Path(scripts), pip)


def installer(place: Place) -> tuple[str, list[str]]:
    """Return ``pip`` or ``uv`` and how its command begins. Raises Refused: there is none."""
    if place.pip:
        return "pip", [place.python, "-m", "pip"]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        return "uv", [uv, "pip"]
    if _our_pip() >= _PIP_WORKS_ELSEWHERE:
        return "pip", [sys.executable, "-m", "pip", "--python", place.python]
    raise Refused(
        t("{python} has no pip, and there is no uv: {python} -m ensurepip brings the first, then try again", python=place.python)
    )  # fmt: skip


def _our_pip() -> tuple[int, ...]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(int(part) for part in version("pip").split(".")[:2] if part.isdigit())
    except PackageNotFoundError:
        return ()


def uninstall_argv(place: Place, names: Sequence[str]) -> list[str]:
    kind, start = installer(place)
    quiet = ["-y", "--disable-pip-version-check"] if kind == "pip" else ["--python", place.python]
    return [*start, "uninstall", *quiet, *names]


def install_argv(step: InstallPackages, place: Place, constraints: str | None) -> list[str]:
    """Return the command; ``constraints`` is a file that names what may not move."""
    kind, start = installer(place)
    words = [*start, "install"]
    words += ["--disable-pip-version-check", "--no-input"] if kind == "pip" else ["--python", place.python]
    words += ["--no-deps"] if step.no_deps else []
    words += (["--force-reinstall"] if kind == "pip" else ["--reinstall"]) if step.force else []
    words += ["--index-url", step.index_url] if step.index_url else []
    words += ["--constraint", constraints] if constraints else []
    return [*words, *step.requirements]


def installer_environ(step: InstallPackages, environ: dict[str, str]) -> dict[str, str]:
    """Return the variables for the installer: a guard on torch may not stand in the way of the fix that replaces it."""
    moves_torch = any(one.startswith("torch==") for one in step.requirements)
    dropped = ("PIP_CONSTRAINT", "UV_CONSTRAINT") if moves_torch else ()
    dropped = (*dropped, "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "__PYVENV_LAUNCHER__")
    return {
        **{name: value for name, value in environ.items() if name not in dropped},
        "PYTHONNOUSERSITE": "1",
    }


def import_trouble(place: Place, module: str, environ: dict[str, str]) -> str:
    """Return what importing ``module`` there says; empty: it imports."""
    try:
        done = subprocess.run(
            [place.python, "-c", f"import {module}"], capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False,
            env=environ, cwd="/", encoding="utf-8", errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[-1] if said else os.strerror(5) if done.returncode > 0 else f"signal {-done.returncode}"
