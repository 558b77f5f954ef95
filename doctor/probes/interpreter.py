"""What one interpreter on disk is: its prefix, version and kind, from the files around it. It is not run.

The rules are CPython's own (Modules/getpath.py, Lib/site.py): ``pyvenv.cfg`` is looked for beside the
executable as it was named, the standard library beside the file that it really is.
"""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

import msgspec

from doctor.model import Text, t
from doctor.probes.bounded import is_file, is_folder, is_there, names_in, open_regular, text_or_empty
from doctor.probes.small_child import ask
from runner.strings import printable

CHILD_DEADLINE_S = 1.0
BINARY_LIMIT_BYTES = 256 << 20


class Layout(msgspec.Struct, frozen=True):
    """An interpreter's place on disk. ``version`` may be a minor (``3.11``) where no file says more."""

    executable: Path
    prefix: Path
    base_prefix: Path
    library: Path | None
    """``lib/python3.11`` of the base installation; None: not found."""
    version: str = ""
    kind: str = ""
    venv: dict[str, str] | None = None
    """Settings of pyvenv.cfg; None: no virtual environment."""
    problem: Text | None = None

    @property
    def minor(self) -> str:
        """``3.11``; empty where even that is unknown."""
        return ".".join(self.version.split(".")[:2])

    @property
    def library_name(self) -> str:
        """``python3.11``, ``python3.13t`` for a free-threaded build, ``pypy3.10``."""
        return (
            self.library.name
            if self.library
            else f"{_maker(Path(os.path.realpath(self.executable)))}{self.minor}"
        )


def read_layout(executable: Path) -> Layout:
    """Return what the files around ``executable`` say. A broken environment is described, not refused."""
    venv, real = _venv_settings(executable), Path(os.path.realpath(executable))
    prefix = executable.parent.parent
    problem = _not_executable(executable) if is_there(executable) else _dead(executable, real)
    if venv is not None and (not is_there(real) or prefix in real.parents):
        real = _base_of_copy(venv, executable)
    base_prefix, library = find_library(real) if is_there(real) else (prefix, None)
    problem = problem or (None if is_there(real) else _dead(executable, real))
    if venv is None:
        prefix = base_prefix
    version = _version(real, base_prefix, library, venv or {}, prefix)
    if not version and is_there(real):
        version, base_prefix = ask_child(executable) or ("", base_prefix)
        prefix = prefix if venv is not None else base_prefix
    return Layout(executable, prefix, base_prefix, library, version, _kind(prefix, venv), venv, problem)


def _not_executable(executable: Path) -> Text | None:
    if is_file(executable) and os.access(executable, os.X_OK):
        return None
    return t("{python} is no file that this user may execute", python=printable(str(executable)))


def _dead(executable: Path, real: Path) -> Text:
    try:
        real.stat()
    except PermissionError:
        return t(
            "{python} points to {base}, which this user may not read", python=str(executable), base=str(real)
        )
    except OSError:
        if not executable.is_symlink():
            return t("{python} is not there", python=str(executable))
    return t("{python} points to {base}, which is not there", python=str(executable), base=str(real))


def _venv_settings(executable: Path) -> dict[str, str] | None:
    for folder in (executable.parent, executable.parent.parent):
        if text := text_or_empty(folder / "pyvenv.cfg", 1 << 16):
            return parse_pyvenv(text)
    return None


def parse_pyvenv(text: str) -> dict[str, str]:
    """Return the settings of a pyvenv.cfg, keys in lower case."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}


def _base_of_copy(venv: dict[str, str], executable: Path) -> Path:
    """Return the base interpreter of an environment made with ``--copies``, or of one whose link is dead."""
    home = Path(venv.get("home") or executable.parent)
    named = [home / name for name in (executable.name, "python3", "python")]
    return Path(os.path.realpath(next((path for path in named if is_there(path)), named[0])))


# python3.11  python3.13t  pypy3.10
_LIBRARY = re.compile(r"(?:python|pypy)(\d\.\d+)(t?)$")
# python3.11  python3.13t  python3.7m  pypy3.10-c
_BINARY = re.compile(r"(python|pypy)(\d\.\d+)(t?)(?:[dm]*|-c)$")


def _maker(real: Path) -> str:
    return "pypy" if real.name.startswith("pypy") else "python"


def find_library(real: Path) -> tuple[Path, Path | None]:
    """Return prefix and standard library of a real (link-free) executable: the nearest
    ``lib/pythonX.Y/os.py`` above."""
    named = _BINARY.match(real.name)
    wanted = f"{named[1]}{named[2]}{named[3]}" if named else ""
    maker = _maker(real)
    for above in list(real.parents)[1:5]:
        for lib in ("lib", "lib64"):
            found = [
                name
                for name in names_in(above / lib)
                if name.startswith(maker) and _LIBRARY.match(name) and wanted in ("", name)
            ]
            found = [name for name in found if is_file(above / lib / name / "os.py")]
            if len(found) == 1:
                return above, above / lib / found[0]
    return real.parent.parent, None


def _version(real: Path, base: Path, library: Path | None, venv: dict[str, str], prefix: Path) -> str:
    """Return the fullest version: what the base installation says, then its binary, then pyvenv.cfg (which
    goes stale)."""
    named = _LIBRARY.match(library.name) if library else None
    minor = named[1] if named else ""
    noted = ".".join((venv.get("version") or venv.get("version_info") or "").split(".")[:3])
    if not minor:
        own = [match[1] for name in names_in(prefix / "lib") if (match := _LIBRARY.match(name))]
        return noted or (own[0] if len(own) == 1 else "")
    return _from_header(base, minor) or _from_conda(base, minor) or from_binary(real, base, minor) or (
        noted if noted.startswith(minor + ".") else minor
    )  # fmt: skip


def _from_header(base: Path, minor: str) -> str:
    for name in names_in(base / "include"):
        if (match := _BINARY.match(name)) and match[2] == minor:
            # #define PY_VERSION              "3.11.7"
            found = re.search(
                r'#define\s+PY_VERSION\s+"([^"]{1,20})"',
                text_or_empty(base / "include" / name / "patchlevel.h"),
            )
            if found and found[1].startswith(minor + "."):
                return found[1]
    return ""


def _from_conda(base: Path, minor: str) -> str:
    # python-3.10.13-h955ad1f_0.json
    pattern = re.compile(rf"python-({re.escape(minor)}\.[^-]+)-[^-]+\.json$")
    return next((match[1] for name in names_in(base / "conda-meta") if (match := pattern.match(name))), "")


def from_binary(real: Path, base: Path, minor: str) -> str:
    """Return the version literal that Py_GetVersion prints, found in the executable or its libpython."""
    libraries = [base / lib / f"libpython{minor}.so.1.0" for lib in ("lib", "lib64")]
    # \x003.11.2\x00
    pattern = re.compile(rb"\0(" + re.escape(minor).encode() + rb"\.\d{1,3}(?:(?:a|b|rc)\d+)?\+?)\0")
    for path in (real, *libraries):
        try:
            fd = open_regular(path)
        except OSError:
            continue
        try:
            size = min(os.fstat(fd).st_size, BINARY_LIMIT_BYTES)
            with mmap.mmap(fd, size, prot=mmap.PROT_READ) as data:
                if found := pattern.search(data):
                    return found[1].decode()
        except (OSError, ValueError):  # an empty file cannot be mapped
            continue
        finally:
            os.close(fd)
    return ""


def ask_child(executable: Path) -> tuple[str, Path] | None:
    """Return version and prefix as the interpreter itself prints them within a second: the last resort."""
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.prefix)"
    lines = (ask([executable, "-I", "-S", "-c", code], CHILD_DEADLINE_S) or "").splitlines()
    return (lines[0], Path(lines[1])) if len(lines) == 2 and _VERSION.fullmatch(lines[0]) else None


_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}")


def _kind(prefix: Path, venv: dict[str, str] | None) -> str:
    if venv is not None:
        return "uv" if "uv" in venv else "venv"
    if is_folder(prefix / "conda-meta"):
        return "conda"
    if prefix.parent.name == "versions" and is_folder(prefix.parent.parent / "shims"):
        return "pyenv"
    if "/uv/python/" in f"{prefix}/":
        return "uv"
    return "system" if str(prefix) in ("/usr", "/usr/local", "/") else "standalone"
