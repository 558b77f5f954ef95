"""The folders that an interpreter imports installed packages from, in order, by the rules of CPython's
Lib/site.py.

``.pth`` files are read for their path lines; lines that are code are never executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from doctor.probes.bounded import is_folder, names_in, text_or_empty
from doctor.probes.interpreter import Layout

PTH_LIMIT_BYTES = 1 << 16


class SearchPath(msgspec.Struct, frozen=True):
    """Installed-package folders in import order, each real folder once."""

    folders: tuple[Path, ...]
    own: Path | None
    """The environment's first site-packages: where its pip installs."""
    user_site: Path | None
    """``~/.local/lib/pythonX.Y/site-packages``, whether or not it exists; None without a home."""
    user_site_enabled: bool
    user_site_before_env: bool


def search_path(layout: Layout, environ: Mapping[str, str], cwd: Path, same_user: bool = True) -> SearchPath:
    """Return where ``layout`` imports from under ``environ``. ``same_user`` False: uid and effective uid
    differ."""
    user = user_site(layout, environ)
    shares_system = (
        layout.venv is None or layout.venv.get("include-system-site-packages", "").lower() == "true"
    )
    enabled = shares_system and same_user and not environ.get("PYTHONNOUSERSITE")
    own = _site_folders(layout.prefix, layout, in_venv=layout.venv is not None)
    system = (
        _site_folders(layout.base_prefix, layout, in_venv=False)
        if layout.venv is not None and shares_system
        else []
    )
    active_user = [user] if enabled and user is not None and is_folder(user) else []
    sites = [*own, *active_user, *system] if layout.venv is not None else [*active_user, *own]
    named = [
        Path(cwd, entry) for entry in environ.get("PYTHONPATH", "").split(":") if "PYTHONPATH" in environ
    ]
    folders = _each_once([*(path for path in named if is_folder(path)), *with_pth(sites)])
    return SearchPath(
        folders=tuple(folders),
        own=own[0] if own else None,
        user_site=user,
        user_site_enabled=enabled,
        user_site_before_env=bool(active_user) and layout.venv is None,
    )


def user_site(layout: Layout, environ: Mapping[str, str]) -> Path | None:
    """Return the user's site-packages for this version: PYTHONUSERBASE, else ``~/.local``."""
    home = environ.get("HOME")
    base = environ.get("PYTHONUSERBASE") or (f"{home}/.local" if home else "")
    return Path(base) / "lib" / layout.library_name / "site-packages" if base and layout.minor else None


def _site_folders(prefix: Path, layout: Layout, in_venv: bool) -> list[Path]:
    """Return the existing site folders of a prefix; Debian's ``dist-packages`` where the base is Debian's."""
    name = layout.library_name
    # Fedora's lib64 is a folder of its own and comes first; elsewhere it is a link to lib.
    usual = [
        prefix / lib / name / "site-packages" for lib in ("lib64", "lib") if not (prefix / lib).is_symlink()
    ]
    if in_venv and not any(is_folder(path) for path in usual):
        # The link leads to another Python than the one it was made with: what is there is still what was
        # installed.
        others = [entry for entry in names_in(prefix / "lib") if entry.startswith("python3")]
        usual = [prefix / "lib" / entry / "site-packages" for entry in others]
    debian = [prefix / "local/lib" / name / "dist-packages", prefix / "lib/python3/dist-packages"]
    if prefix.name == "usr" and not in_venv and is_folder(debian[1]):
        usual = [*debian, prefix / "lib" / name / "dist-packages"]
    return _each_once(path for path in usual if is_folder(path))


def with_pth(sites: Iterable[Path]) -> list[Path]:
    """Return the site folders, each followed by what its ``.pth`` files add."""
    found: list[Path] = []
    for site in sites:
        found.append(site)
        for name in names_in(site):
            if name.endswith(".pth") and not name.startswith("."):
                found += parse_pth(text_or_empty(site / name, PTH_LIMIT_BYTES), site)
    return found


def parse_pth(text: str, site: Path) -> list[Path]:
    """Return the existing folders that a ``.pth`` names. ``import`` lines are code, and left alone."""
    lines = (line.rstrip() for line in text.splitlines())
    named = [line for line in lines if line.strip() and not line.startswith(("#", "import ", "import\t"))]
    paths = (Path(site, line) for line in named if "\0" not in line)
    return [path for path in paths if is_folder(path)]


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """Return the paths without those that are an earlier one under another name (lib64 -> lib)."""
    seen: dict[str, Path] = {}
    for path in paths:
        seen.setdefault(os.path.realpath(path), path)
    return list(seen.values())
