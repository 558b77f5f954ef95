"""The pip command in an advice, as what it asks for. The cure does what the advice says. Pure."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from doctor.model import Finding, InstallPackages, Packages, Python, Snapshot, Text, t

_CUDA_BUILD_BYTES, _CPU_BUILD_BYTES = 9 << 30, 2 << 30
_TORCHS_OWN = ("torch", "torchvision", "torchaudio")


class Asked(NamedTuple):
    """What a ``pip install`` line asks for."""

    requirements: tuple[str, ...]
    index_url: str | None
    no_deps: bool
    force: bool


def parse_pip(command: str) -> Asked:
    """``python -m pip install a==1 'b<2' --no-deps --index-url URL`` -> what it asks for."""
    words = shlex.split(command)
    words = words[words.index("install") + 1 :] if "install" in words else []
    index = words[words.index("--index-url") + 1] if "--index-url" in words else None
    named = tuple(word for word in words if not word.startswith("-") and word != index)
    return Asked(named, index, "--no-deps" in words, "--force-reinstall" in words)


def name_of(requirement: str) -> str:
    """``torch==2.6.0+cu124`` -> ``torch``."""
    for index, character in enumerate(requirement):
        if character in "=<>!~[;( ":
            return requirement[:index].lower().replace("_", "-")
    return requirement.lower().replace("_", "-")


def frozen_torch(snapshot: Snapshot, moved: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the constraints that keep the installed torch and its mates where they are, but for ``moved``."""
    packages = snapshot.facts.packages.value or Packages()
    found = {name: packages.version(name) for name in _TORCHS_OWN if name not in moved}
    return tuple(f"{name}=={version}" for name, version in found.items() if version)


def why_not_writable(python: Python | None) -> Text | None:
    """Return why nothing can be installed into this interpreter; None: it can."""
    if python is None or not python.executable:
        return t("which interpreter is meant is not known")
    if python.externally_managed:
        return t(
            "{python} belongs to the system, whose package manager keeps it: make an environment ({python} -m venv ~/venv) and install there",
            python=python.executable,
        )
    if python.writable is False:
        return t("the packages of {python} may not be written by this user: make an environment of your own (python -m venv)", python=python.executable)  # fmt: skip
    return None


def risk_of(python: Python | None) -> Text | None:
    if python and python.kind == "conda":
        return t("this is a conda environment: pip installs into it beside conda, which does not know of it")
    return None


def install_step(
    snapshot: Snapshot, asked: Asked, imports: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> InstallPackages:
    """Return the step for what is asked; the torch that is installed stays unless it is what is asked for."""
    python = snapshot.facts.python.value
    wanted = asked.requirements
    replaces_torch = any(name_of(one) == "torch" and "+" in one for one in wanted)
    if not replaces_torch:
        wanted = tuple(one for one in wanted if name_of(one) != "torch" or not _is_installed(snapshot, "torch"))  # fmt: skip
    moved = tuple(name_of(one) for one in wanted)
    return InstallPackages(
        python=(python.executable if python else None) or "python",
        requirements=wanted,
        remove=remove,
        frozen=() if replaces_torch or asked.no_deps else frozen_torch(snapshot, moved),
        index_url=asked.index_url,
        no_deps=asked.no_deps,
        force=asked.force,
        imports=imports,
        needs_bytes=_room(asked) if "torch" in moved else 0,
    )


def _room(asked: Asked) -> int:
    return _CPU_BUILD_BYTES if (asked.index_url or "").endswith("/cpu") else _CUDA_BUILD_BYTES


def _is_installed(snapshot: Snapshot, name: str) -> bool:
    packages = snapshot.facts.packages.value
    return bool(packages and packages.get(name))


def word(finding: Finding, name: str) -> str:
    """Return a field of the finding's advice; empty where it has none."""
    return str(finding.advice.params.get(name, "")) if finding.advice else ""
