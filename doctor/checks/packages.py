"""Checks on what lies in site-packages: copies that shadow each other, leftovers, installs cut in half. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import pip
from doctor.model import Distribution, Environment, Evidence, Finding, Packages, Python, Reading, Torch, t

# ~/.local/lib/python3.12/site-packages | /root/.local/lib/python3.10/site-packages
_USER_SITE = re.compile(r"(^~|/\.local)/lib/python[\d.]+/site-packages/?$|^~/\.local/")


def in_user_site(location: str) -> bool:
    return bool(_USER_SITE.search(location))


def copies(packages: Packages) -> Iterator[list[tuple[int, Distribution]]]:
    """Yield the distributions of which there is more than one copy, each as ``(place in items, copy)`` in import order."""
    by_name: dict[str, list[tuple[int, Distribution]]] = {}
    for index, item in enumerate(packages.items):
        by_name.setdefault(item.name, []).append((index, item))
    yield from (found for found in by_name.values() if len(found) > 1)


def _proof(found: list[tuple[int, Distribution]]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            fact=f"packages.items[{index}].version",
            value=f"{item.name} {item.version} {item.location}".strip(),
        )
        for index, item in found
    )


_OF_TORCH = (
    "torchvision-torch-mismatch", "transformers-torch-too-old", "numpy2-torch-abi", "xformers-torch-mismatch",
    "duplicate-distribution-metadata",
)  # fmt: skip


@check("user-site-shadows-env")
def user_site_leaves_the_environment_alone(
    packages: Packages, python: Reading[Python], environment: Reading[Environment]
) -> Iterator[Finding]:
    """Does a package in ~/.local hide the environment's own copy?"""
    interpreter = python.value
    if interpreter and (interpreter.user_site_enabled is False or interpreter.user_site_before_env is False):
        return
    if environment.value and environment.value.get("PYTHONNOUSERSITE"):
        return
    own_environment = bool(
        interpreter and (interpreter.conda_env or interpreter.kind in ("conda", "venv", "uv"))
    )
    for found in copies(packages):
        (_, first), (_, second) = found[0], found[1]
        if (
            not in_user_site(first.location)
            or in_user_site(second.location)
            or first.version == second.version
        ):
            continue
        of_torch = first.name == "torch"
        yield Finding(
            id="user-site-shadows-env",
            level="note" if not own_environment else "fail" if of_torch else "warn",
            subject=first.name,
            title=t(
                "{name} {version} is imported from {location}, before the environment's own {other}",
                name=first.name,
                version=first.version,
                location=first.location,
                other=second.version,
            ),
            evidence=(
                *_proof(found),
                *evidence(python__user_site_enabled=interpreter and interpreter.user_site_enabled),
            ),
            advice=t(
                "export PYTHONNOUSERSITE=1 (in a conda environment for good: conda env config vars set PYTHONNOUSERSITE=1); then clean up {location}.",
                location=first.location,
            ),
            cause_of=_OF_TORCH if of_torch else ("duplicate-distribution-metadata",),
        )


@check("duplicate-distribution-metadata")
def one_copy_of_each(packages: Packages, python: Reading[Python]) -> Iterator[Finding]:
    """Has one distribution two sets of metadata, so that installers and version checks may read the wrong one?"""
    for found in copies(packages):
        (_, first), (_, second) = found[0], found[1]
        versions = [item.version for _, item in found]
        if len(set(versions)) < 2 or in_user_site(first.location) != in_user_site(second.location):
            continue
        same_folder = first.location == second.location
        if not same_folder and first.name not in ("torch", "numpy", "transformers"):
            continue  # an overlay (system-site-packages, /usr/local over /usr) is a way of installing, not a fault
        yield Finding(
            id="duplicate-distribution-metadata",
            level="warn" if same_folder else "note",
            subject=first.name,
            title=t(
                "{name} is there {count} times ({versions}) in one folder: version checks may read the wrong one",
                name=first.name,
                count=len(found),
                versions=", ".join(versions),
            )
            if same_folder
            else t(
                "{name} is installed {count} times ({versions}); {first} is the one that is imported",
                name=first.name,
                count=len(found),
                versions=", ".join(versions),
                first=versions[0],
            ),
            evidence=_proof(found),
            advice=t(
                "Run {pip} uninstall -y {name} until it finds none, remove leftover {name} *.dist-info folders, then install it once.",
                pip=pip(python),
                name=first.name,
            )
            if same_folder
            else t("Keep one: uninstall the copy that is not meant with the tool that put it there."),
            cause_of=("transformers-requirement-out-of-range",) if same_folder else (),
        )


@check("leftover-of-an-install")
def no_install_was_cut_off(packages: Packages, torch: Reading[Torch]) -> Iterator[Finding]:
    """Do remains of interrupted installs lie in site-packages?"""
    others = [name for name in packages.leftovers if torch.status != "absent" or "orch" not in name.lower()]
    if others:
        yield Finding(
            id="leftover-of-an-install",
            level="note",
            subject=", ".join(others[:3]),
            title=t(
                "{count} {count:folder that begins with ~ is|folders that begin with ~ are} left of interrupted installs: pip warns of {count:it|them}, nothing uses {count:it|them}",
                count=len(others),
            ),
            evidence=evidence(packages__leftovers=", ".join(others[:5])),
            advice=t("They can be deleted: {names}", names=", ".join(others[:5])),
        )


@check("distribution-files-missing")
def distributions_have_their_files(packages: Packages, python: Reading[Python]) -> Iterator[Finding]:
    """Are files that importing needs missing from an installed distribution?"""
    for index, item in enumerate(packages.items):
        if item.missing_files and item.name != "torch":
            yield Finding(
                id="distribution-files-missing",
                level="warn",
                subject=item.name,
                title=t(
                    "{name} {version} lacks {count} of its files, {first} among them",
                    name=item.name,
                    version=item.version,
                    count=len(item.missing_files),
                    first=item.missing_files[0],
                ),
                evidence=(
                    Evidence(fact=f"packages.items[{index}].missing_files[0]", value=item.missing_files[0]),
                ),
                advice=t(
                    "Install it again, without its dependencies: {pip} install --force-reinstall --no-deps {name}=={version}",
                    pip=pip(python),
                    name=item.name,
                    version=item.version,
                ),
            )


@check("python-cannot-run")
def the_interpreter_runs(python: Python) -> Iterator[Finding]:
    """Does the judged interpreter run at all?"""
    why = python.unread.get("executable")
    if why is None:
        return
    yield Finding(
        id="python-cannot-run",
        level="fail",
        subject=python.executable or "python",
        title=why,
        advice=t(
            "This Python cannot be run. Make the environment anew: its base Python was removed or is for another machine (`python3 -m venv --clear DIR`)."
        ),
        evidence=evidence(python__executable=python.executable, python__chosen_by=python.chosen_by),
    )
