"""Checks on the nvidia wheels beside torch: of one CUDA major, needed, of the versions that the build pins. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import pip
from doctor.model import Distribution, Evidence, Finding, Level, Packages, Python, Reading, Torch, t
from doctor.tables.drivers import number
from doctor.tables.torch_builds import pin_of

# soname stem -> the component's name in nvidia-<component>-cuXY
COMPONENTS = {
    "libcudnn": "cudnn",
    "libnvJitLink": "nvjitlink",
    "libcublas": "cublas",
    "libcublasLt": "cublas",
    "libcusparse": "cusparse",
    "libcusolver": "cusolver",
    "libcufft": "cufft",
    "libcurand": "curand",
    "libcudart": "cuda-runtime",
    "libnvrtc": "cuda-nvrtc",
    "libcupti": "cuda-cupti",
    "libnccl": "nccl",
}
# nvidia-cudnn-cu12, nvidia-cublas (CUDA 13 drops the suffix of most)
_WHEEL = re.compile(r"nvidia-(?P<component>[a-z-]+?)(?:-cu(?P<major>\d\d))?")
# Both majors of these install the very same file names into one folder.
_SHARED_FILES = ("cudnn", "nccl", "cusparselt", "nvshmem")


def nvidia_wheels(packages: Packages) -> list[tuple[int, Distribution, str, str]]:
    """Return the nvidia wheels as (place in items, distribution, component, CUDA major in the name or "")."""
    found = []
    for index, item in enumerate(packages.items):
        match = _WHEEL.fullmatch(item.name)
        if match and (match["major"] or match["component"] in COMPONENTS.values()):
            found.append((index, item, match["component"], match["major"] or ""))
    return found


@check("mixed-cuda-wheel-majors", "leftover-nvidia-wheels")
def nvidia_wheels_are_of_one_major(
    packages: Packages, torch: Torch, python: Reading[Python]
) -> Iterator[Finding]:
    """Do nvidia wheels of another CUDA major, or that nothing needs, lie beside torch's?"""
    wheels = nvidia_wheels(packages)
    mine = (torch.cuda or "").partition(".")[0]
    if not mine:
        return
    own = {(component, _major_of(item)) for _, item, component, major in wheels if major == mine}
    doubled = [
        row
        for row in wheels
        if row[3] not in ("", mine) and row[2] in _SHARED_FILES and (row[2], _major_of(row[1])) in own
    ]
    if doubled:
        yield _mixed(doubled, wheels, mine, python)
        return
    left = [(index, item) for index, item, _, major in wheels if _is_left_over(item, major, mine, packages)]
    if left:
        yield _leftover(left, torch, python)


def _major_of(item: Distribution) -> str:
    """Return the wheel's own major, which its files carry in their names (libcudnn.so.8 beside libcudnn.so.9)."""
    return item.version.partition(".")[0]


# What brings CUDA wheels for itself, often only by an extra that METADATA does not tell.
_OTHER_USERS = re.compile(
    r"jax-cuda|cupy|tensorflow|onnxruntime|tensorrt|paddlepaddle|cudf|cuml|dali|vllm|mxnet"
)


def _is_left_over(item: Distribution, major: str, mine: str, packages: Packages) -> bool:
    """Whether nothing needs ``item``: not torch, whose own major is told by its name, and no other CUDA user here."""
    torch = packages.get("torch")
    requirements_known = torch is not None and torch.requires_dist is not None
    if not major or (major == mine and not requirements_known):
        return False
    if any(_OTHER_USERS.search(other.name) for other in packages.items if other.name != item.name):
        return False
    return not _is_needed(item, packages)


def _is_needed(item: Distribution, packages: Packages) -> bool:
    """Whether an installed distribution names ``item`` among what it requires, whatever the condition."""
    wanted = item.name.replace("-", "[-_.]")
    return any(
        re.match(rf"{wanted}(?![\w-])", line.strip(), re.IGNORECASE)
        for other in packages.items
        for line in other.requires_dist or ()
    )


def _mixed(
    doubled: list[tuple[int, Distribution, str, str]],
    wheels: list[tuple[int, Distribution, str, str]],
    mine: str,
    python: Reading[Python],
) -> Finding:
    old = sorted({item.name for _, item, _, major in wheels if major and major != mine})
    keep = sorted(
        {
            f"{item.name}=={item.version}"
            for _, item, component, major in wheels
            if major == mine and component in _SHARED_FILES
        }
    )
    return Finding(
        id="mixed-cuda-wheel-majors",
        level="warn",
        subject=", ".join(item.name for _, item, _, _ in doubled),
        title=t("{names} are of another CUDA major than torch's ({mine}) and install the same files: the one installed last is what torch loads", names=", ".join(f"{item.name} {item.version}" for _, item, _, _ in doubled), mine=mine),
        evidence=tuple(Evidence(fact=f"packages.items[{index}].version", value=f"{item.name} {item.version}") for index, item, component, _ in wheels if component in _SHARED_FILES),
        advice=t("{pip} uninstall -y {old}; then put torch's files back, since the uninstall takes them too: {pip} install --force-reinstall --no-deps {keep}", pip=pip(python), old=" ".join(old), keep=" ".join(keep)),
        cause_of=("nvidia-wheel-version-drift",),
    )  # fmt: skip


def _leftover(left: list[tuple[int, Distribution]], torch: Torch, python: Reading[Python]) -> Finding:
    names = [item.name for _, item in left]
    return Finding(
        id="leftover-nvidia-wheels",
        level="note",
        subject=names[0],
        title=t("{names} are required by nothing here and not what torch {torch} loads: left over from another installation", names=", ".join(f"{item.name} {item.version}" for _, item in left[:4]), torch=torch.version),
        evidence=tuple(Evidence(fact=f"packages.items[{index}].version", value=f"{item.name} {item.version}") for index, item in left),
        advice=t("They cost disk and are harmless; to remove them: {pip} uninstall -y {names}", pip=pip(python), names=" ".join(names)),
    )  # fmt: skip


# nvidia-nccl-cu12==2.20.5; platform_system == "Linux" and platform_machine == "x86_64"
_PIN = re.compile(r"(nvidia-[a-z0-9-]+)\s*\(?==\s*([\d.]+)")


@check("nvidia-wheel-version-drift")
def nvidia_wheels_are_what_torch_pins(
    packages: Packages, torch: Torch, python: Reading[Python]
) -> Iterator[Finding]:
    """Are the nvidia wheels of the versions that the installed torch was built with?"""
    pins = _pins(packages, torch)
    rows = [
        (_how_bad(component, item.version, pins[item.name]), index, item, pins[item.name])
        for index, item, component, _ in nvidia_wheels(packages)
        if item.name in pins and item.version
    ]
    order: tuple[Level, ...] = ("fail", "warn", "note")
    drifted = [(level, index, item, pinned) for level, index, item, pinned in rows if level]
    if not drifted:
        return
    level, _, item, pinned = min(drifted, key=lambda row: order.index(row[0]))
    yield Finding(
        id="nvidia-wheel-version-drift",
        level=level,
        subject=item.name,
        title=t(
            "{name} is {have}, torch {torch} was built with {pinned}: it lacks what torch asks for, and import torch or the first call fails",
            name=item.name, have=item.version, torch=torch.version, pinned=pinned,
        ) if level == "fail" else t(
            "{name} is {have}, torch {torch} was built with and pins {pinned}",
            name=item.name, have=item.version, torch=torch.version, pinned=pinned,
        ),
        evidence=(
            *(Evidence(fact=f"packages.items[{index}].version", value=f"{one.name} {one.version}") for _, index, one, _ in drifted),
            *evidence(torch__version=torch.version, torch__cuda=torch.cuda),
        ),
        advice=t("{pip} install --no-deps {wanted}", pip=pip(python), wanted=" ".join(sorted(f"{one.name}=={version}" for _, _, one, version in drifted))),
        cause_of=("torch-import-fails",),
    )  # fmt: skip


def _how_bad(component: str, have: str, pinned: str) -> Level | None:
    """Return how bad it is to have another version than the pinned one; None: it is that one, or as good.

    A newer one of the same major serves what the pinned one did. An older minor lacks symbols (nvJitLink, NCCL) or is
    refused by torch at the first call (cuDNN). Another major of cuDNN is another library name.
    """
    mine, wanted = number(have), number(pinned)
    if not mine or not wanted or mine[: len(wanted)] == wanted:
        return None
    strict = component in ("cudnn", "nccl", "nvjitlink")
    if mine[0] != wanted[0]:
        return "fail"
    if mine[:2] < wanted[:2]:
        return "fail" if strict else "warn"
    return "warn" if mine < wanted else "note"


def _pins(packages: Packages, torch: Torch) -> dict[str, str]:
    """Return name -> version: from torch's own metadata, else what the table of builds and torch's CUDA tell."""
    own = packages.get("torch")
    if own is not None and own.requires_dist is not None:
        matches = (_PIN.match(line.strip()) for line in own.requires_dist)
        return {match[1]: match[2] for match in matches if match}
    pin = pin_of(torch.version, torch.cuda)
    if pin is None or pin.confidence != "verified":
        return {}
    major = pin.cuda.partition(".")[0]
    rows = {f"nvidia-cudnn-cu{major}": pin.cudnn, f"nvidia-nccl-cu{major}": pin.nccl}
    # Since 12.4 torch pins nvJitLink, which carries the number of its toolkit.
    if number(pin.cuda) >= (12, 4) and major == "12":
        rows["nvidia-nvjitlink-cu12"] = pin.cuda
    return {name: version for name, version in rows.items() if version}
