"""Checks on packages that bring or compile their own CUDA code: bitsandbytes, what nvcc builds here. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, installed, major, minor, pip, public
from doctor.model import (
    Environment,
    Evidence,
    Finding,
    Incident,
    Level,
    Libraries,
    Packages,
    Project,
    Python,
    Reading,
    Text,
    Torch,
    t,
)
from doctor.tables import load


def _tag(cuda: str) -> str:
    """``12.4`` -> ``124``."""
    return cuda.replace(".", "")


_FALLS_BACK = "0.46"
"""From here on bitsandbytes may take a build of the same CUDA major; before, it wants the very one, else uses none."""


def _builds_of_the_wheel(version: str) -> tuple[str, ...] | None:
    """Return the CUDA builds in that release's wheel; between two known releases, those that either of them has."""
    rows = load("extensions")["bitsandbytes"]
    older = [row for row in rows if not below(version, row["version"])]
    newer = [row for row in rows if below(version, row["version"])]
    if not older or (not newer and public(version) != older[-1]["version"]):
        return None
    either = set(older[-1]["cuda"])
    if public(version) != older[-1]["version"]:
        either |= set(newer[0]["cuda"])
    return tuple(sorted(either))


@check("bitsandbytes-missing-cuda-binary")
def bitsandbytes_has_a_build(
    packages: Packages,
    torch: Torch,
    environment: Reading[Environment],
    python: Reading[Python],
    project: Reading[Project],
) -> Iterator[Finding]:
    """Does bitsandbytes carry a binary for the CUDA of torch?"""
    have, extension = packages.version("bitsandbytes"), packages.extension("bitsandbytes")
    builds = extension.cuda_builds if extension else None
    source = f"packages.extensions[{packages.extensions.index(extension)}].cuda_builds" if extension else ""
    if builds is None and have:
        builds, source = _builds_of_the_wheel(have), ""
    if not have or builds is None or not torch.cuda:
        return
    forced = environment.value.get("BNB_CUDA_VERSION") if environment.value else None
    wanted = forced or _tag(torch.cuda)
    if wanted in builds:
        return
    same_major = any(build[:-1] == wanted[:-1] for build in builds)
    level: Level = "fail" if not builds or forced or not same_major or below(have, _FALLS_BACK) else "note"
    cwd = project.value.cwd if project.value else None
    yield Finding(
        id="bitsandbytes-missing-cuda-binary",
        level=level,
        subject="bitsandbytes",
        title=_bitsandbytes_title(have, wanted, forced, builds, level),
        evidence=(
            *installed(packages, "bitsandbytes"),
            *((Evidence(fact=source, value=", ".join(builds) or "none"),) if source else ()),
            *evidence(
                torch__cuda=torch.cuda, environment__variables__BNB_CUDA_VERSION=forced, project__cwd=cwd
            ),
        ),
        advice=_bitsandbytes_advice(forced, builds, cwd, torch.cuda, python),
    )


def _bitsandbytes_title(
    have: str, wanted: str, forced: str | None, builds: tuple[str, ...], level: Level
) -> Text:
    if not builds:
        return t(
            "the bitsandbytes {have} that is imported holds no CUDA binary at all (libbitsandbytes_cuda{wanted}.so is wanted)",
            have=have,
            wanted=wanted,
        )
    if forced:
        return t(
            "BNB_CUDA_VERSION={wanted} asks bitsandbytes {have} for a build that it does not hold ({builds})",
            wanted=wanted,
            have=have,
            builds=", ".join(builds),
        )
    if level == "note":
        return t(
            "bitsandbytes {have} has no build for CUDA {wanted} itself; it may take the nearest of the same major ({builds})",
            have=have,
            wanted=wanted,
            builds=", ".join(builds),
        )
    return t(
        "bitsandbytes {have} has no build for CUDA {wanted} ({builds})",
        have=have,
        wanted=wanted,
        builds=", ".join(builds),
    )


def _bitsandbytes_advice(
    forced: str | None, builds: tuple[str, ...], cwd: str | None, cuda: str, python: Reading[Python]
) -> Text:
    if not builds and cwd and "bitsandbytes" in cwd:
        return t(
            "unset BNB_CUDA_VERSION, leave {cwd} (its source folder is imported instead of the installed wheel), and {pip} install --no-deps --force-reinstall bitsandbytes",
            cwd=cwd,
            pip=pip(python),
        )
    if forced:
        return t("unset BNB_CUDA_VERSION")
    rows = [row["version"] for row in load("extensions")["bitsandbytes"] if _tag(cuda) in row["cuda"]]
    wanted = f"bitsandbytes>={rows[0]}" if rows else "bitsandbytes"
    return t('{pip} install --no-deps -U "{wanted}"', pip=pip(python), wanted=wanted)


# RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch (11.8).
_REFUSED = "mismatches the version that was used to compile PyTorch"


def _compiled_here(
    packages: Reading[Packages],
    libraries: Libraries,
    project: Reading[Project],
    incident: Reading[Incident],
) -> list[str]:
    found = list(libraries.compiles_extensions or ())
    if not found and incident.value and any(_REFUSED in line for line in incident.value.log_lines):
        found.append("CUDAExtension")
    if packages.value and packages.value.get("deepspeed") and "deepspeed" not in found:
        found.append("deepspeed")
    return found


@check("nvcc-torch-cuda-mismatch")
def toolkit_compiles_for_torch(
    libraries: Libraries,
    torch: Torch,
    packages: Reading[Packages],
    project: Reading[Project],
    environment: Reading[Environment],
    incident: Reading[Incident],
) -> Iterator[Finding]:
    """Is the CUDA toolkit that compiles extensions here of the major that torch was built for?"""
    nvcc, built = libraries.nvcc_version, torch.cuda
    compiled = _compiled_here(packages, libraries, project, incident)
    if not (nvcc and built and compiled):
        return
    strict = (
        "deepspeed" in compiled and major(built) == "13"
    )  # DeepSpeed lists no minors of CUDA 13 that may be mixed
    same_minor = minor(nvcc) == minor(built)
    if major(nvcc) == major(built) and (same_minor or not strict):
        return
    variables = environment.value
    skipped = bool(variables and variables.get("DS_SKIP_CUDA_CHECK") == "1") and major(nvcc) == major(built)
    if skipped:
        return
    yield Finding(
        id="nvcc-torch-cuda-mismatch",
        level="fail",
        subject=compiled[0],
        title=t(
            "{what} is compiled here with nvcc {nvcc}, torch was built for CUDA {built}: the build is refused",
            what=", ".join(compiled),
            nvcc=nvcc,
            built=built,
        ),
        evidence=evidence(
            libraries__nvcc_version=nvcc,
            libraries__nvcc_path=libraries.nvcc_path,
            torch__cuda=built,
            environment__variables__CUDA_HOME=variables.get("CUDA_HOME") if variables else None,
        ),
        advice=t(
            "Point CUDA_HOME at a toolkit of CUDA {major} (ls -d /usr/local/cuda-{major}*), or bring the compiler alone into the environment: conda install -c nvidia cuda-nvcc={built}. Or leave out what compiles. torch itself is fine.",
            major=major(built) or "",
            built=built,
        ),
    )
