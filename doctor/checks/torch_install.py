"""Checks on whether the installed torch is whole: its own files, and the CUDA libraries that it loads. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.nvidia_wheels import COMPONENTS
from doctor.checks.versions import index_url, installed, local_cuda, pip
from doctor.model import Finding, Packages, Python, Reading, Text, Torch, t

# not found: libcudnn.so.9, libnccl.so.2 ... (how the probe says which libraries of libtorch_cuda.so are nowhere)
_LOST = re.compile(r"not found: (?P<names>.+)")
# built for another Python: _C.cpython-311-x86_64-linux-gnu.so, not for 3.12
_OTHER_PYTHON = re.compile(r"built for another Python: (?P<module>\S+), not for (?P<minor>\S+)")
_MISSING = re.compile(r"missing: (?P<names>.+)")
# nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"
_PIN = re.compile(r"(nvidia-[a-z0-9-]+)\s*\(?==\s*([\d.]+)")
_MORE_COMPONENTS = {"libcusparseLt": "cusparselt", "libcufile": "cufile", "libnvshmem_host": "nvshmem"}


@check("torch-install-broken")
def torch_install_is_whole(
    torch: Reading[Torch], packages: Reading[Packages], python: Reading[Python]
) -> Iterator[Finding]:
    """Is the installed torch whole, or was its installation cut off?"""
    item = packages.value.get("torch") if packages.value else None
    leftovers = [
        name for name in (packages.value.leftovers if packages.value else ()) if "orch" in name.lower()
    ]
    told = torch.value.broken if torch.value else ""
    problem = told or ", ".join((item.missing_files if item else ())[:3])
    if not problem and not (leftovers and torch.status == "absent"):
        return
    version = (torch.value.version if torch.value else "") or (item.version if item else "")
    proof = evidence(torch__broken=told or None)
    if item and item.missing_files:
        proof += (*installed(packages.value, "torch"),) if packages.value else ()
    yield Finding(
        id="torch-install-broken",
        level="fail",
        subject="torch",
        title=_what_is_wrong(version, problem) if problem else _cut_off(leftovers),
        evidence=proof + evidence(packages__leftovers=", ".join(leftovers) or None),
        advice=_what_to_do(version, problem, packages.value, python),
        cause_of=(
            "torchvision-torch-mismatch",
            "transformers-torch-too-old",
            "needed-package-missing",
            "torch-import-fails",
            *(
                ("distribution-files-missing",)
                if _only_its_libraries_are_gone(problem, packages.value)
                else ()
            ),
        ),
    )


@check("torch-not-installed")
def torch_is_installed(
    torch: Reading[Torch], packages: Packages, python: Reading[Python]
) -> Iterator[Finding]:
    """Has the judged environment a torch at all?"""
    if torch.status != "absent" or any("orch" in name.lower() for name in packages.leftovers):
        return
    yield Finding(
        id="torch-not-installed",
        level="note",
        subject="torch",
        title=t(
            "{python} has no torch",
            python=(python.value.executable if python.value else None) or "python",
        ),
        evidence=evidence(packages__complete=packages.complete),
        advice=t(
            "The one that fits this machine: doctor recommend. Whether another environment has one: doctor env list"
        ),
    )


def _only_its_libraries_are_gone(problem: str, packages: Packages | None) -> bool:
    """Every distribution that lacks files is one of the wheels that hold the lost libraries."""
    match = _LOST.match(problem)
    held = {wheel.partition("==")[0] for wheel in lost_wheels(match["names"], packages)} if match else set()
    torn = {item.name for item in (packages.items if packages else ()) if item.missing_files}
    return bool(torn) and torn <= held


def _cut_off(leftovers: list[str]) -> Text:
    return t(
        "an installation of torch was cut off: only {leftovers} is left of it", leftovers=", ".join(leftovers)
    )


def _what_is_wrong(version: str, problem: str) -> Text:
    if match := _OTHER_PYTHON.match(problem):
        return t(
            "the torch {version} that is installed is built for another Python ({module}): Python {minor} cannot import it",
            version=version, module=match["module"], minor=match["minor"],
        )  # fmt: skip
    if match := _LOST.match(problem):
        return t(
            "torch {version} cannot be imported: the CUDA libraries that it loads are not found ({names})",
            version=version, names=match["names"],
        )  # fmt: skip
    match = _MISSING.match(problem)
    return t(
        "the torch {version} that is installed is incomplete and cannot be imported: files are missing ({names})",
        version=version, names=match["names"] if match else problem,
    )  # fmt: skip


def _what_to_do(version: str, problem: str, packages: Packages | None, python: Reading[Python]) -> Text:
    if match := _LOST.match(problem):
        wheels = lost_wheels(match["names"], packages)
        index = index_url(local_cuda(version))
        if wheels:
            command = f"{pip(python)} install --force-reinstall --no-deps {' '.join(map(shlex.quote, wheels))}{index}"
            return t(
                "Bring back the wheels that hold them, torch itself can stay: {command}", command=command
            )
        return t(
            "Have pip bring back what torch requires, torch itself can stay: {pip} install torch=={version}{index}",
            pip=pip(python), version=version, index=index,
        )  # fmt: skip
    if _OTHER_PYTHON.match(problem):
        return t(
            "Use the Python that it was built for, or install it for this one: {pip} install --force-reinstall torch=={version}{index}",
            pip=pip(python), version=version, index=index_url(local_cuda(version)),
        )  # fmt: skip
    return t(
        "Remove what is left ({pip} uninstall -y torch, then the folders named above and those that begin with ~), see that the disk has 10 GB free, and install the same build again.",
        pip=pip(python),
    )


def lost_wheels(names: str, packages: Packages | None) -> tuple[str, ...]:
    """Return ``nvidia-cudnn-cu12==9.1.0.70`` for ``libcudnn.so.9``: what torch pins, else the copy that is listed.

    Empty when one of the libraries belongs to no wheel that is known here.
    """
    pins = _pinned(packages)
    found = []
    for name in names.removesuffix(" ...").split(", "):
        stem = name.partition(".so")[0]
        component = COMPONENTS.get(stem) or _MORE_COMPONENTS.get(stem)
        wheel = next((one for one in pins if _component(one) == component), None)
        if component is None or wheel is None:
            return ()
        found.append(f"{wheel}=={pins[wheel]}")
    return tuple(dict.fromkeys(found))


def _component(wheel: str) -> str:
    """``nvidia-cuda-runtime-cu12`` -> cuda-runtime."""
    return re.sub(r"-cu\d+$", "", wheel.removeprefix("nvidia-"))


def _pinned(packages: Packages | None) -> dict[str, str]:
    """Return nvidia wheel -> version: torch's own pins, then what is installed beside it."""
    torch = packages.get("torch") if packages else None
    matches = (_PIN.match(line.strip()) for line in (torch.requires_dist if torch else None) or ())
    pins = {match[1]: match[2] for match in matches if match}
    for item in packages.items if packages else ():
        if item.name.startswith("nvidia-") and item.version:
            pins.setdefault(item.name, item.version)
    return pins
