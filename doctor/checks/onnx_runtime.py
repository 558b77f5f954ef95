"""Checks on ONNX Runtime: one copy of it, and the CUDA and cuDNN majors that it links to. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, installed, major, minor, pip, within
from doctor.model import (
    Driver,
    Evidence,
    Finding,
    Gpus,
    Incident,
    Level,
    Libraries,
    Packages,
    Python,
    Reading,
    Text,
    Torch,
    t,
)
from doctor.tables import load


@check("onnxruntime-cpu-shadows-gpu")
def onnxruntime_is_one(
    packages: Packages, python: Reading[Python], gpus: Reading[Gpus], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Do onnxruntime and onnxruntime-gpu overwrite each other in one import folder?"""
    cpu, gpu = packages.version("onnxruntime"), packages.version("onnxruntime-gpu")
    extension = packages.extension("onnxruntime-gpu") or packages.extension("onnxruntime")
    loads = extension.loads_package if extension else None
    if loads is None and _lists_no_cuda(incident.value):
        loads = "onnxruntime"
    if not (cpu and gpu):
        return
    level: Level = (
        "fail" if loads == "onnxruntime" else "note" if loads or gpus.status == "absent" else "warn"
    )
    yield Finding(
        id="onnxruntime-cpu-shadows-gpu",
        level=level,
        subject="onnxruntime",
        title=t(
            "onnxruntime {cpu} (CPU) lies over onnxruntime-gpu {gpu} in the folder that both use: there is no CUDAExecutionProvider",
            cpu=cpu,
            gpu=gpu,
        )
        if loads == "onnxruntime"
        else t(
            "onnxruntime {cpu} and onnxruntime-gpu {gpu} use one import folder: whichever was installed last is imported",
            cpu=cpu,
            gpu=gpu,
        ),
        evidence=installed(packages, "onnxruntime", "onnxruntime-gpu")
        + (
            (
                Evidence(
                    fact=f"packages.extensions[{packages.extensions.index(extension)}].loads_package",
                    value=loads,
                ),
            )
            if extension and loads
            else ()
        ),
        advice=t(
            "{pip} uninstall -y onnxruntime onnxruntime-gpu, then {pip} install onnxruntime-gpu=={gpu}",
            pip=pip(python),
            gpu=gpu,
        ),
    )


# Available providers: 'AzureExecutionProvider, CPUExecutionProvider'
_NOT_AVAILABLE = re.compile(r"CUDAExecutionProvider.? is not in available provider names")


# ['AzureExecutionProvider', 'CPUExecutionProvider']: the CPU package's list
def _lists_no_cuda(incident: Incident | None) -> bool:
    listed = [line for line in (incident.log_lines if incident else ()) if "ExecutionProvider'" in line]
    if any(_NOT_AVAILABLE.search(line) for line in listed):
        return True
    return any("CPUExecutionProvider" in line and "[" in line for line in listed) and not any(
        "CUDAExecutionProvider" in line for line in listed
    )


@check("onnxruntime-cuda-major-mismatch")
def onnxruntime_finds_its_cuda(
    packages: Packages, torch: Reading[Torch], libraries: Reading[Libraries], driver: Reading[Driver],
    python: Reading[Python], incident: Reading[Incident],
) -> Iterator[Finding]:  # fmt: skip
    """Are the CUDA and cuDNN majors that onnxruntime-gpu links to anywhere on this machine?"""
    have = packages.version("onnxruntime-gpu")
    rows = [row for row in load("extensions")["onnxruntime_gpu"] if have and not below(have, row["since"])]
    newest = load("extensions")["newest_onnxruntime_gpu"]
    if not have or not rows or not (below(have, newest) or minor(have) == minor(newest)):
        return
    cuda, cudnn = rows[-1]["cuda_major"], rows[-1]["cudnn_major"]
    own = torch.value.cuda if torch.value else None
    served = driver.value.cuda_version if driver.value else None
    proof = installed(packages, "onnxruntime-gpu") + evidence(torch__cuda=own, driver__cuda_version=served)
    if served and int(major(served) or 0) < int(cuda):
        why = t(
            "onnxruntime-gpu {have} links CUDA {cuda}, which this driver (up to CUDA {served}) does not run: it falls back to the CPU in silence",
            have=have,
            cuda=cuda,
            served=served,
        )
    elif own and major(own) != cuda and not _major_is_here(packages, libraries, cuda):
        why = t(
            "onnxruntime-gpu {have} links CUDA {cuda}, torch brings CUDA {own} and no other is here: it falls back to the CPU in silence",
            have=have,
            cuda=cuda,
            own=own,
        )
    elif not own and (found := _majors_here(packages, libraries)) and cuda not in found:
        why = t(
            "onnxruntime-gpu {have} links CUDA {cuda}, and only CUDA {found} is here: it falls back to the CPU in silence",
            have=have,
            cuda=cuda,
            found=", ".join(sorted(found)),
        )
    elif own and major(own) == cuda and _other_cudnn(torch, packages, cudnn):
        why = t(
            "onnxruntime-gpu {have} links cuDNN {cudnn}, torch brings another major of it: it falls back to the CPU in silence",
            have=have,
            cudnn=cudnn,
        )
    else:
        return
    unread = libraries.status == "failed" or bool(libraries.value and "items" in libraries.value.unread)
    unsure = unread and not (served and int(major(served) or 0) < int(cuda))
    yield Finding(
        id="onnxruntime-cuda-major-mismatch",
        level="warn" if unsure else "fail",
        subject="onnxruntime-gpu",
        title=why,
        evidence=proof,
        advice=_onnxruntime_advice(own or served, torch, python),
    )


def _majors_here(packages: Packages, libraries: Reading[Libraries]) -> set[str]:
    """Return the CUDA majors of which a runtime lies here: a wheel, a library file, or a toolkit."""
    return {one for one in ("11", "12", "13", "14") if _major_is_here(packages, libraries, one)}


def _major_is_here(packages: Packages, libraries: Reading[Libraries], wanted: str) -> bool:
    """Whether a CUDA runtime of that major lies here."""
    if any(item.name.endswith(f"-cu{wanted}") for item in packages.items):
        return True
    found = libraries.value
    if found is None:
        return False
    named = any(
        item.soname.startswith(("libcublas", "libcudart")) and item.soname.endswith(f".so.{wanted}")
        for item in found.items
    )
    return named or major(found.nvcc_version) == wanted


def _other_cudnn(torch: Reading[Torch], packages: Packages, wanted: str) -> bool:
    """Whether torch's cuDNN is known to be of another major, and no wheel of the wanted one is installed."""
    version = torch.value.cudnn_version if torch.value else None
    version = version or next(
        (item.version for item in packages.items if item.name.startswith("nvidia-cudnn-cu")), None
    )
    if version is None and torch.value and within(torch.value.version, "<2.4"):
        version = "8" if within(torch.value.version, ">=1.8") else None
    elif version is None and torch.value and within(torch.value.version, ">=2.4,<2.15.1"):
        version = "9"
    return version is not None and major(version) != wanted


def _onnxruntime_advice(cuda: str | None, torch: Reading[Torch], python: Reading[Python]) -> Text:
    bounds = {"11": "<1.19", "12": ">=1.19,<1.27", "13": ">=1.27"}.get(major(cuda) or "", "")
    if bounds.startswith(">=1.19") and torch.value and below(torch.value.version, "2.4"):
        return t(
            "This torch brings cuDNN 8, and the releases for CUDA 12 want cuDNN 9: raise torch to 2.4 or newer first, or keep ONNX Runtime in an environment of its own."
        )
    if bounds:
        return t(
            '{pip} install "onnxruntime-gpu{bounds}", then look at session.get_providers()',
            pip=pip(python),
            bounds=bounds,
        )
    return t("Take a release for the CUDA that is here, then look at session.get_providers().")
