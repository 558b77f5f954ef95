"""Everything installed where the judged interpreter imports from: every copy, in import order, read and not
run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from doctor.model import Distribution, Packages, Reading, Text, ok, t
from doctor.probes.bounded import names_in
from doctor.probes.dist_info import missing_files, name_and_version, read_distribution
from doctor.probes.extensions import read_extensions
from doctor.probes.sharing import once
from doctor.probes.target import without_python
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context
    from doctor.probes.target import Target

DISTRIBUTION_LIMIT = 20_000
# ~orch-2.1.0.dist-info, ~orch, -umpy (pip before 19.1)
_LEFTOVER = re.compile(r"^[~-][A-Za-z0-9_.]")
_CHECKED_FAMILY = re.compile(r"(torch|torchvision|torchaudio|triton|transformers|nvidia-.*)$")


def probe(context: Context) -> Reading[Packages]:
    target = context.target
    if target.executable is None:
        return without_python(target)
    listings, unread = list_folders(target.site_packages)
    if not target.site_packages:
        closed = target.closed_folder
        unread["items"] = (
            t("{python} has no site-packages folder", python=str(target.executable))
            if closed is None
            else t("{folder} may not be read", folder=printable(str(closed)))
        )
    items = _from_conda(target, without_sources(_distributions(context, listings)))
    leftovers = [f"{site}/{name}" for site, names in listings for name in names if _LEFTOVER.match(name)]
    leftovers += _hollow_torch(listings)
    packages = Packages(
        items=tuple(items),
        complete=not unread and len(items) < DISTRIBUTION_LIMIT,
        leftovers=tuple(printable(path) for path in leftovers),
        extensions=read_extensions(items),
        unread=unread,
    )
    return ok(packages, source=f"{target.executable} -m pip list")


def _hollow_torch(listings: list[tuple[str, list[str]]]) -> list[str]:
    """Return the folders that are left where torch was uninstalled by halves: no torch, and Python imports them as one.

    None where a torch is whole enough to be told of by itself.
    """
    if any(name.startswith("torch-") and name.endswith("-info") for _, names in listings for name in names):
        return []
    folders = [f"{site}/torch" for site, names in listings if "torch" in names]
    inside = [set(names_in(folder)) for folder in folders]
    if any(names & {"__init__.py", "version.py"} for names in inside):
        return []
    return [folder for folder, names in zip(folders, inside, strict=True) if names]


def list_folders(folders: tuple[Path, ...]) -> tuple[list[tuple[str, list[str]]], dict[str, Text]]:
    """Return the names in each folder, and why the list is not whole where one could not be listed."""
    listings, unread = [], {}
    for folder in folders:
        try:
            listings.append((str(folder), sorted(os.listdir(folder))))  # noqa: PTH208
        except OSError as error:
            unread["items"] = t(
                "{folder} cannot be listed: {error}", folder=str(folder), error=error.strerror or ""
            )
    return listings, unread


def _distributions(context: Context, listings: list[tuple[str, list[str]]]) -> list[Distribution]:
    found: list[Distribution] = []
    for site, names in listings:
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and not _LEFTOVER.match(name):
                found.append(_with_missing_files(context, read_distribution(site, name), site, name))
            elif name.endswith(".egg") and "EGG-INFO" in names_in(f"{site}/{name}"):
                found.append(_egg(site, name))
            if len(found) >= DISTRIBUTION_LIMIT:
                return found
    return found


def _with_missing_files(context: Context, item: Distribution, site: str, folder_name: str) -> Distribution:
    if not _CHECKED_FAMILY.match(item.name):
        return item
    missing = missing_files_once(context, Path(site), folder_name, item.name)
    return msgspec.structs.replace(item, missing_files=missing) if missing else item


def missing_files_once(context: Context, site: Path, folder_name: str, name: str) -> tuple[str, ...]:
    """Return what :func:`missing_files` does; torch's RECORD has 1.3 MB, and its own probe asks for it too."""
    return once(
        context, f"missing files: {site}/{folder_name}", lambda _: missing_files(site, folder_name, name)
    )


def _egg(site: str, name: str) -> Distribution:
    """An unpacked egg; its folder is on the import path by easy-install.pth."""
    item = read_distribution(f"{site}/{name}", "EGG-INFO")
    stem, version = name_and_version(f"{name[: -len('.egg')]}.egg-info")
    if item.metadata_error:
        return msgspec.structs.replace(item, name=printable(stem), version=printable(version))
    return item


def without_sources(items: list[Distribution]) -> list[Distribution]:
    """Drop the ``*.egg-info`` that an editable install leaves in its own source tree: it is no second
    copy."""
    editable = [
        (item.name, item.direct_url.removeprefix("file://"))
        for item in items
        if item.editable and item.direct_url
    ]

    def is_source(item: Distribution) -> bool:
        inside = (
            f"{item.location}/".startswith(f"{source}/") for name, source in editable if name == item.name
        )
        return item.editable is None and not item.wheel_tags and any(inside)

    return [item for item in items if not is_source(item)]


# numpy-1.26.4-py310hb13e2d6_0.json
_CONDA_RECORD = re.compile(r"(.+)-([^-]+)-[^-]+\.json$")


def conda_packages(prefix: Path | None) -> dict[str, str]:
    """Return conda's own packages of an environment: name -> version."""
    names = names_in(prefix / "conda-meta") if prefix else []
    return {match[1]: match[2] for name in names if (match := _CONDA_RECORD.match(name))}


def _from_conda(target: Target, items: list[Distribution]) -> list[Distribution]:
    """Mark what conda installed: by INSTALLER, else by conda's own record of the same version."""
    if target.kind != "conda" or target.prefix is None:
        return items
    recorded, inside = conda_packages(target.prefix), f"{target.prefix}/"

    def is_condas(item: Distribution) -> bool:
        return item.installer == "conda" if item.installer else recorded.get(item.name) == item.version

    return [
        msgspec.structs.replace(item, from_conda=is_condas(item))
        if item.location.startswith(inside)
        else item
        for item in items
    ]
