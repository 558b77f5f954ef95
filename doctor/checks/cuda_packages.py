"""Checks on packages that bring or compile their own CUDA code: bitsandbytes, onnxruntime-gpu, what nvcc builds. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, installed, major, minor, pip, public, within
from doctor.model import (
    Driver,
    Environment,
    Evidence,
    Finding,
    Gpus,
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


@check("bitsandbytes-missing-cuda-binary")
def bitsandbytes_has_a_build(
    packages: Packages, torch: Torch, environment: Reading[Environment], python: Reading[Python], project: Reading[Project]
) -> Iterator[Finding]:
    """Does bitsandbytes carry a binary for the CUDA of torch?"""
    have, extension = packages.version("bitsandbytes"), packages.extension("bitsandbytes")
    builds = extension.cuda_builds if extension else None
    source = f"packages.extensions[{packages.extensions.index(extension)}].cuda_builds" if extension else ""
    if builds is None and have:
        row = next((row for row in load("extensions")["bitsandbytes"] if row["version"] == public(have)), None)
        builds, source = (tuple(row["cuda"]), "packages.items") if row else (None, "")
    if not have or builds is None or not torch.cuda:
        return
    forced = environment.value.get("BNB_CUDA_VERSION") if environment.value else None
    wanted = forced or _tag(torch.cuda)
    if wanted in builds:
        return
    same_major = any(build[:-1] == wanted[:-1] for build in builds)
    level: Level = "fail" if not builds or forced or not same_major or below(have, "0.43") else "note"
    cwd = project.value.cwd if project.value else None
    yield Finding(
        id="bitsandbytes-missing-cuda-binary",
        level=level,
        subject="bitsandbytes",
        title=_bitsandbytes_title(have, wanted, forced, builds, level),
        evidence=(
            *installed(packages, "bitsandbytes"),
            *((Evidence(fact=source, value=", ".join(builds) or "none"),) if extension else ()),
            *evidence(torch__cuda=torch.cuda, environment__variables__BNB_CUDA_VERSION=forced, project__cwd=cwd),
        ),
        advice=_bitsandbytes_advice(forced, builds, cwd, torch.cuda, python),
    )  # fmt: skip


def _bitsandbytes_title(have: str, wanted: str, forced: str | None, builds: tuple[str, ...], level: Level) -> Text:
    if not builds:
        return t("the bitsandbytes {have} that is imported holds no CUDA binary at all (libbitsandbytes_cuda{wanted}.so is wanted)", have=have, wanted=wanted)
    if forced:
        return t("BNB_CUDA_VERSION={wanted} asks bitsandbytes {have} for a build that it does not hold ({builds})", wanted=wanted, have=have, builds=", ".join(builds))
    if level == "note":
        return t("bitsandbytes {have} has no build for CUDA {wanted} itself; it may take the nearest of the same major ({builds})", have=have, wanted=wanted, builds=", ".join(builds))
    return t("bitsandbytes {have} has no build for CUDA {wanted} ({builds})", have=have, wanted=wanted, builds=", ".join(builds))


def _bitsandbytes_advice(
    forced: str | None, builds: tuple[str, ...], cwd: str | None, cuda: str, python: Reading[Python]
) -> Text:
    if not builds and cwd and "bitsandbytes" in cwd:
        return t("unset BNB_CUDA_VERSION, leave {cwd} (its source folder is imported instead of the installed wheel), and {pip} install --no-deps --force-reinstall bitsandbytes", cwd=cwd, pip=pip(python))
    if forced:
        return t("unset BNB_CUDA_VERSION")
    rows = [row["version"] for row in load("extensions")["bitsandbytes"] if _tag(cuda) in row["cuda"]]
    wanted = f"bitsandbytes>={rows[0]}" if rows else "bitsandbytes"
    return t("{pip} install --no-deps -U \"{wanted}\"", pip=pip(python), wanted=wanted)


@check("onnxruntime-cpu-shadows-gpu")
def onnxruntime_is_one(packages: Packages, python: Reading[Python], gpus: Reading[Gpus]) -> Iterator[Finding]:
    """Do onnxruntime and onnxruntime-gpu overwrite each other in one import folder?"""
    cpu, gpu = packages.version("onnxruntime"), packages.version("onnxruntime-gpu")
    extension = packages.extension("onnxruntime-gpu") or packages.extension("onnxruntime")
    loads = extension.loads_package if extension else None
    if not (cpu and gpu):
        return
    level: Level = "fail" if loads == "onnxruntime" else "note" if loads or gpus.status == "absent" else "warn"
    yield Finding(
        id="onnxruntime-cpu-shadows-gpu",
        level=level,
        subject="onnxruntime",
        title=t(
            "onnxruntime {cpu} (CPU) lies over onnxruntime-gpu {gpu} in the folder that both use: there is no CUDAExecutionProvider",
            cpu=cpu, gpu=gpu,
        ) if loads == "onnxruntime" else t(
            "onnxruntime {cpu} and onnxruntime-gpu {gpu} use one import folder: whichever was installed last is imported",
            cpu=cpu, gpu=gpu,
        ),
        evidence=installed(packages, "onnxruntime", "onnxruntime-gpu")
        + ((Evidence(fact=f"packages.extensions[{packages.extensions.index(extension)}].loads_package", value=loads),) if extension and loads else ()),
        advice=t("{pip} uninstall -y onnxruntime onnxruntime-gpu, then {pip} install onnxruntime-gpu=={gpu}", pip=pip(python), gpu=gpu),
    )  # fmt: skip


@check("onnxruntime-cuda-major-mismatch")
def onnxruntime_finds_its_cuda(
    packages: Packages, torch: Reading[Torch], libraries: Reading[Libraries], driver: Reading[Driver],
    python: Reading[Python], incident: Reading[Incident],
) -> Iterator[Finding]:  # fmt: skip
    """Are the CUDA and cuDNN majors that onnxruntime-gpu links to anywhere on this machine?"""
    have = packages.version("onnxruntime-gpu")
    rows = [row for row in load("extensions")["onnxruntime_gpu"] if have and not below(have, row["since"])]
    if not have or not rows:
        return
    cuda, cudnn = rows[-1]["cuda_major"], rows[-1]["cudnn_major"]
    own = torch.value.cuda if torch.value else None
    served = driver.value.cuda_version if driver.value else None
    proof = installed(packages, "onnxruntime-gpu") + evidence(torch__cuda=own, driver__cuda_version=served)
    if served and int(major(served) or 0) < int(cuda):
        why = t("onnxruntime-gpu {have} links CUDA {cuda}, which this driver (up to CUDA {served}) does not run: it falls back to the CPU in silence", have=have, cuda=cuda, served=served)
    elif own and major(own) != cuda and not _major_is_here(packages, libraries, cuda):
        why = t("onnxruntime-gpu {have} links CUDA {cuda}, torch brings CUDA {own} and no other is here: it falls back to the CPU in silence", have=have, cuda=cuda, own=own)
    elif own and major(own) == cuda and _other_cudnn(torch, packages, cudnn):
        why = t("onnxruntime-gpu {have} links cuDNN {cudnn}, torch brings another major of it: it falls back to the CPU in silence", have=have, cudnn=cudnn)
    else:
        return
    unsure = libraries.status == "failed" and not (served and int(major(served) or 0) < int(cuda))
    yield Finding(
        id="onnxruntime-cuda-major-mismatch",
        level="warn" if unsure else "fail",
        subject="onnxruntime-gpu",
        title=why,
        evidence=proof,
        advice=_onnxruntime_advice(own or served, torch, python),
    )


def _major_is_here(packages: Packages, libraries: Reading[Libraries], wanted: str) -> bool:
    """Whether a CUDA runtime of that major lies here: a wheel, a library file, or a toolkit."""
    if any(item.name.endswith(f"-cu{wanted}") for item in packages.items):
        return True
    found = libraries.value
    if found is None:
        return False
    named = any(item.soname.startswith(("libcublas", "libcudart")) and item.soname.endswith(f".so.{wanted}") for item in found.items)
    return named or major(found.nvcc_version) == wanted


def _other_cudnn(torch: Reading[Torch], packages: Packages, wanted: str) -> bool:
    """Whether torch's cuDNN is known to be of another major, and no wheel of the wanted one is installed."""
    version = torch.value.cudnn_version if torch.value else None
    version = version or next((item.version for item in packages.items if item.name.startswith("nvidia-cudnn-cu")), None)
    if version is None and torch.value and within(torch.value.version, "<2.4"):
        version = "8" if within(torch.value.version, ">=1.8") else None
    elif version is None and torch.value and within(torch.value.version, ">=2.4,<2.15.1"):
        version = "9"
    return version is not None and major(version) != wanted


def _onnxruntime_advice(cuda: str | None, torch: Reading[Torch], python: Reading[Python]) -> Text:
    bounds = {"11": "<1.19", "12": ">=1.19,<1.27", "13": ">=1.27"}.get(major(cuda) or "", "")
    if bounds.startswith(">=1.19") and torch.value and below(torch.value.version, "2.4"):
        return t("This torch brings cuDNN 8, and the releases for CUDA 12 want cuDNN 9: raise torch to 2.4 or newer first, or keep ONNX Runtime in an environment of its own.")
    if bounds:
        return t("{pip} install \"onnxruntime-gpu{bounds}\", then look at session.get_providers()", pip=pip(python), bounds=bounds)
    return t("Take a release for the CUDA that is here, then look at session.get_providers().")


def _compiled_here(packages: Reading[Packages], libraries: Libraries, project: Reading[Project]) -> list[str]:
    found = list(libraries.compiles_extensions or ())
    if packages.value and packages.value.get("deepspeed") and "deepspeed" not in found:
        found.append("deepspeed")
    return found


@check("nvcc-torch-cuda-mismatch")
def toolkit_compiles_for_torch(
    libraries: Libraries, torch: Torch, packages: Reading[Packages], project: Reading[Project], environment: Reading[Environment]
) -> Iterator[Finding]:
    """Is the CUDA toolkit that compiles extensions here of the major that torch was built for?"""
    nvcc, built = libraries.nvcc_version, torch.cuda
    compiled = _compiled_here(packages, libraries, project)
    if not (nvcc and built and compiled):
        return
    strict = "deepspeed" in compiled and major(built) == "13"  # DeepSpeed lists no minors of CUDA 13 that may be mixed
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
            what=", ".join(compiled), nvcc=nvcc, built=built,
        ),
        evidence=evidence(
            libraries__nvcc_version=nvcc, libraries__nvcc_path=libraries.nvcc_path, torch__cuda=built,
            environment__variables__CUDA_HOME=variables.get("CUDA_HOME") if variables else None,
        ),
        advice=t(
            "Point CUDA_HOME at a toolkit of CUDA {major} (ls -d /usr/local/cuda-{major}*), or bring the compiler alone into the environment: conda install -c nvidia cuda-nvcc={built}. Or leave out what compiles. torch itself is fine.",
            major=major(built) or "", built=built,
        ),
    )  # fmt: skip
