"""ONNX Runtime: one copy of it, and the CUDA and cuDNN majors it links to."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Driver, Extension, FoundLibrary, Libraries, Packages, Reading, t
from tests.checks.judged import loud, packages, said, torch

BOTH = packages(onnxruntime="1.23.2", onnxruntime_gpu="1.23.2")


@pytest.mark.parametrize(
    ("loads", "gpus", "level"),
    [
        pytest.param("onnxruntime", None, "fail", id="the CPU files lie on top"),
        pytest.param("onnxruntime-gpu", None, "note", id="the GPU files lie on top"),
        pytest.param(None, None, "warn", id="nobody looked which"),
        pytest.param(None, Reading(status="absent"), "note", id="no card to use"),
    ],
)
def test_two_copies_in_one_folder(loads: str | None, gpus: Any, level: str) -> None:
    extensions = (Extension(distribution="onnxruntime-gpu", loads_package=loads),) if loads else ()
    both = Packages(items=BOTH.items, extensions=extensions, complete=False)
    assert said(packages=both, **({"gpus": gpus} if gpus else {}))["onnxruntime-cpu-shadows-gpu"] == level


MISMATCH = "onnxruntime-cuda-major-mismatch"
CUBLAS_11 = Libraries(
    items=(FoundLibrary(soname="libcublasLt.so.11", path="/usr/local/cuda/lib64/libcublasLt.so.11"),)
)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.18.1"), "torch": torch("2.5.1+cu124")},
            {MISMATCH: "fail"},
            id="links CUDA 11, torch brings 12",
        ),
        pytest.param(
            {
                "packages": packages(onnxruntime_gpu="1.18.1"),
                "torch": torch("2.5.1+cu124"),
                "libraries": CUBLAS_11,
            },
            {},
            id="a toolkit of the wanted major is there",
        ),
        pytest.param(
            {
                "packages": packages(onnxruntime_gpu="1.18.1", nvidia_cublas_cu11="11.11.3.6"),
                "torch": torch("2.5.1+cu124"),
            },
            {},
            id="wheels of the wanted major are there",
        ),
        pytest.param(
            {
                "packages": packages(onnxruntime_gpu="1.18.1"),
                "torch": torch("2.5.1+cu124"),
                "libraries": Reading(status="failed"),
            },
            {MISMATCH: "warn"},
            id="the libraries could not be read",
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.23.2"), "torch": torch("2.5.1+cu124")},
            {},
            id="both 12, both cuDNN 9",
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.20.1"), "torch": torch("2.3.1+cu121")},
            {MISMATCH: "fail"},
            id="wants cuDNN 9, torch 2.3 brings 8",
        ),
        pytest.param(
            {
                "packages": packages(onnxruntime_gpu="1.27.0"),
                "driver": Driver(version="550.90.07", cuda_version="12.4"),
            },
            {MISMATCH: "fail"},
            id="CUDA 13 on a driver of 12",
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.27.0"), "torch": torch("2.14.1+cu130")},
            {},
            id="CUDA 13 with torch's 13",
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.23.2"), "libraries": CUBLAS_11},
            {MISMATCH: "fail"},
            id="no torch, a toolkit of another major",
        ),
        pytest.param(
            {
                "packages": packages(onnxruntime_gpu="1.23.2"),
                "libraries": Libraries(unread={"items": t("no ldconfig")}, nvcc_version="11.8"),
            },
            {MISMATCH: "warn"},
            id="a list of libraries that is not whole",
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.23.2")}, {}, id="no torch, nobody looked for libraries"
        ),
        pytest.param(
            {"packages": packages(onnxruntime_gpu="1.60.0"), "torch": torch("3.2.0+cu150")},
            {},
            id="a release that no table knows",
        ),
        pytest.param(
            {"packages": packages(onnxruntime="1.23.2"), "torch": torch("2.3.1+cu118")},
            {},
            id="the CPU package links none",
        ),
    ],
)
def test_the_majors_it_links_to(machine: dict[str, Any], expected: dict[str, str]) -> None:
    assert loud(**machine) == expected
