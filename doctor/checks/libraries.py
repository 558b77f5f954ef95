"""Checks on CUDA's libraries and toolkit beside torch: shadowed, mixed, or newer than the driver compiles. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.nvidia_wheels import COMPONENTS, nvidia_wheels
from doctor.checks.versions import pip
from doctor.model import (
    Driver,
    Environment,
    Evidence,
    Finding,
    FoundLibrary,
    Level,
    Libraries,
    Packages,
    Python,
    Reading,
    Text,
    Torch,
    t,
)
from doctor.tables.drivers import Number, number
from doctor.tables.torch_builds import pin_of


@check("ld-library-path-shadows-bundled-cuda")
def loader_finds_torchs_own_libraries(
    libraries: Libraries, torch: Torch, packages: Reading[Packages], environment: Reading[Environment]
) -> Iterator[Finding]:
    """Does LD_LIBRARY_PATH put another CUDA library before the one that torch brought?"""
    worst: dict[Level, list[tuple[int, FoundLibrary, str]]] = {}
    for index, library in enumerate(libraries.items):
        if library.found_by != "LD_LIBRARY_PATH":
            continue
        own = _bundled_version(library.soname, torch, packages.value, libraries)
        level = _clash(library, own, torch) if own else None
        if level and own:
            worst.setdefault(level, []).append((index, library, own))
    for level in ("fail", "warn", "note"):
        if level in worst:
            yield _shadowed(level, worst[level], environment)
            return


def _bundled_version(
    soname: str, torch: Torch, packages: Packages | None, libraries: Libraries
) -> str | None:
    """Return the version of the library of this name that torch brought; None when there is none, or it is unknown."""
    beside = next(
        (
            one
            for one in libraries.items
            if one.found_by == "bundled" and one.soname == soname and one.version
        ),
        None,
    )
    if beside:
        return beside.version
    component = COMPONENTS.get(soname.partition(".so")[0])
    wheels = [
        item
        for _, item, name, major in nvidia_wheels(packages or Packages())
        if name == component and major in _suffix(torch)
    ]
    if wheels:
        return wheels[0].version
    return _by_the_build(component, torch)


def _by_the_build(component: str | None, torch: Torch) -> str | None:
    """Return what the build is known to bring; a toolkit's own libraries carry the toolkit's number."""
    pin = pin_of(torch.version, torch.cuda)
    if component == "cudnn":
        return torch.cudnn_version or (pin.cudnn if pin else None)
    if component == "nccl":
        return torch.nccl_version or (pin.nccl if pin else None)
    follows = component in ("nvjitlink", "cublas", "cuda-runtime", "cuda-nvrtc")
    return torch.cuda if pin and follows else None


def _suffix(torch: Torch) -> tuple[str, ...]:
    """The majors in wheel names that belong to this torch."""
    return ("", (torch.cuda or "").partition(".")[0])


def _clash(library: FoundLibrary, own: str, torch: Torch) -> Level | None:
    """Return how bad it is that ``library`` comes before the bundled version ``own``.

    cuDNN's parts must be of exactly one version. The others stay compatible inside a major: an older one lacks
    symbols, a newer one serves. nvJitLink is looked for by NVIDIA's own libraries, which ask LD_LIBRARY_PATH first; what
    torch itself asks for may be found by its own path since 2.1, so that is a warning there.
    """
    theirs, mine = number(library.version), number(own)
    component = COMPONENTS.get(library.soname.partition(".so")[0])
    if not theirs or not mine or component is None or _same(theirs, mine):
        return None
    if component == "cudnn":
        if theirs[0] != mine[0]:
            return None  # libcudnn.so.8 and libcudnn.so.9 are two names: the loader takes each for its own
        return "fail" if mine[0] <= 8 or theirs[:2] < mine[:2] else "warn"
    if component == "nccl":
        return "warn" if theirs < mine else None
    if theirs[0] != mine[0]:
        return None
    if theirs[:2] >= mine[:2]:
        return None
    return "fail" if component == "nvjitlink" or number(torch.version) < (2, 1) else "warn"


def _same(one: Number, other: Number) -> bool:
    length = min(len(one), len(other), 3)
    return length >= 2 and one[:length] == other[:length]


def _shadowed(
    level: Level, found: list[tuple[int, FoundLibrary, str]], environment: Reading[Environment]
) -> Finding:
    _, library, own = found[0]
    folder = library.path.rpartition("/")[0]
    value = environment.value.get("LD_LIBRARY_PATH") if environment.value else None
    return Finding(
        id="ld-library-path-shadows-bundled-cuda",
        level=level,
        subject=library.soname,
        title=t(
            "LD_LIBRARY_PATH puts {library} {version} ({folder}) before the {own} that torch brought",
            library=library.soname, version=library.version or "?", folder=folder, own=own,
        ),
        evidence=(
            *(Evidence(fact=f"libraries.items[{index}].version", value=f"{one.path} {one.version}") for index, one, _ in found[:4]),
            *evidence(environment__variables__LD_LIBRARY_PATH=value),
        ),
        advice=t("Start the training without it: env -u LD_LIBRARY_PATH python train.py; for good, take {folder} out of LD_LIBRARY_PATH where it is set (grep -n LD_LIBRARY_PATH ~/.bashrc ~/.profile /etc/profile.d/*). torch needs no system CUDA.", folder=folder),
        cause_of=("torch-import-fails",),
        fix="library-path-without-cuda",
    )  # fmt: skip


@check("system-cudnn-in-bundled-gap")
def system_cudnn_leaves_torch_alone(
    libraries: Libraries, torch: Torch, packages: Reading[Packages]
) -> Iterator[Finding]:
    """Would torch's cuDNN take a missing part from a system cuDNN of another version?"""
    own = (
        (packages.value.version("nvidia-cudnn-cu13") if packages.value else None) or torch.cudnn_version or ""
    )
    # The wheel 9.20.0 lacks libcudnn_engines_tensor_ir.so, and the loader then takes a system one.
    if not own.startswith("9.20.0"):
        return
    for index, library in enumerate(libraries.items):
        if (
            library.soname.startswith("libcudnn")
            and library.found_by in ("system", "LD_LIBRARY_PATH")
            and library.soname.endswith(".so.9")
            and not _same(number(library.version), number(own))
        ):
            yield Finding(
                id="system-cudnn-in-bundled-gap", level="warn", subject=library.path,
                title=t("torch {torch} brings cuDNN {own}, which lacks a part; the loader may take it from {path} and mix two versions", torch=torch.version, own=own, path=library.path),
                evidence=(Evidence(fact=f"libraries.items[{index}].path", value=library.path), *evidence(torch__version=torch.version)),
                advice=t("When convolutions fail with CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH: pip install 'nvidia-cudnn-cu13>=9.21' --no-deps, or remove the system package (libcudnn9-cuda-12)."),
            )  # fmt: skip
            return


@check("ptx-jit-newer-than-driver")
def driver_compiles_what_numba_hands_it(
    driver: Driver, libraries: Libraries, packages: Packages, python: Reading[Python]
) -> Iterator[Finding]:
    """Is intermediate code (PTX) handed to the driver that a newer toolkit wrote than the driver understands?"""
    toolkit, serves = number(libraries.nvcc_version)[:2], number(driver.cuda_version)[:2]
    numba = packages.get("numba")
    # numba-cuda links by nvJitLink itself; Triton and torch.compile bring their own ptxas and load binaries
    if not toolkit or not serves or toolkit <= serves or numba is None or packages.get("numba-cuda"):
        return
    linkers = [
        packages.is_missing(name) for name in ("pynvjitlink-cu12", "pynvjitlink-cu13", "cubinlinker-cu11")
    ]
    if False in linkers:
        return
    yield Finding(
        id="ptx-jit-newer-than-driver",
        level="warn" if linkers[0] else "note",
        subject="numba",
        title=t(
            "numba hands the driver intermediate code of toolkit {toolkit}, the driver understands up to {serves}: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)",
            toolkit=libraries.nvcc_version or "", serves=driver.cuda_version or "",
        ),
        evidence=(*evidence(libraries__nvcc_version=libraries.nvcc_version, driver__cuda_version=driver.cuda_version), Evidence(fact=f"packages.items[{packages.items.index(numba)}].version", value=f"numba {numba.version}")),
        advice=_linker(driver, python),
    )  # fmt: skip


def _linker(driver: Driver, python: Reading[Python]) -> Text:
    return t(
        "{pip} install numba-cuda (it links by nvJitLink), or point CUDA_HOME at a toolkit up to {serves}. torch and torch.compile need no change.",
        pip=pip(python), serves=driver.cuda_version or "",
    )  # fmt: skip
