"""Compiles the stand-in NVML once and says which variables put a program on it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("standin.c")
SCENARIOS = Path(__file__).with_name("scenarios")
LIBRARY = "libnvidia-ml.so.1"


def has_compiler() -> bool:
    """Return whether the stand-in can be built here."""
    return bool(shutil.which("cc") or shutil.which("gcc"))


class NoCompiler(RuntimeError):  # noqa: N818 - it is what it says
    """There is no C compiler to build the stand-in with."""


def scenario_names() -> list[str]:
    """Return the names that :func:`environment` knows."""
    return sorted(path.stem for path in SCENARIOS.glob("*.conf"))


def library_dir() -> Path:
    """Return the folder that holds ``libnvidia-ml.so.1`` (and ``.so``), built when the source changed.

    Raises:
        NoCompiler: neither ``cc`` nor ``gcc`` is on PATH.
        subprocess.CalledProcessError: it does not compile.
    """
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"doctor-nvml-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to someone else; set TMPDIR to a folder of yours")
    if not (folder / LIBRARY).exists():
        _compile(folder)
    return folder


def _compile(folder: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("the stand-in NVML is C: install gcc, or put cc on PATH")
    fresh = folder / f"{LIBRARY}.{os.getpid()}"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run([compiler, *flags, "-o", fresh, SOURCE], check=True, capture_output=True, text=True)
    link = folder / f"link.{os.getpid()}"
    link.symlink_to(LIBRARY)
    link.replace(folder / "libnvidia-ml.so")
    fresh.replace(folder / LIBRARY)


def scenario_path(scenario: str | Path) -> Path:
    """Return the file of a scenario: a name of :func:`scenario_names`, or a path of your own.

    Raises:
        FileNotFoundError: there is no such scenario.
    """
    path = scenario if isinstance(scenario, Path) else SCENARIOS / f"{scenario}.conf"
    if not path.is_file():
        raise FileNotFoundError(f"no scenario {scenario}; there are {', '.join(scenario_names())}")
    return path


def environment(scenario: str | Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return ``base`` (our own environment by default) with the stand-in in front and ``scenario`` chosen.

    The loader reads LD_LIBRARY_PATH when a program starts, so this must be the environment of a new process.
    """
    variables = dict(os.environ if base is None else base)
    before = variables.get("LD_LIBRARY_PATH", "")
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(library_dir()), before]))
    variables["NVML_STANDIN_SCENARIO"] = str(scenario_path(scenario).resolve())
    return variables


def read_scenario(scenario: str | Path) -> dict[str, str]:
    """Return the lines of a scenario; the first line of a key counts, as in the library."""
    lines: dict[str, str] = {}
    for line in scenario_path(scenario).read_text("utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            lines.setdefault(key.strip(), value.strip())
    return lines


def write_scenario(path: Path, base: str | Path, changes: Mapping[str, object] | str) -> Path:
    """Write a scenario that is ``base`` with ``changes`` in front (the first line of a key counts), and return it.

    Replaces ``path`` in one step, so that a program that is reading it sees the old or the new, never half.
    """
    lines = (
        changes
        if isinstance(changes, str)
        else "".join(f"{key} = {value}\n" for key, value in changes.items())
    )
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(lines.rstrip("\n") + "\n" + scenario_path(base).read_text("utf-8"), "utf-8")
    fresh.replace(path)
    return path
