"""CUDA's libraries beside torch: shadowed by LD_LIBRARY_PATH, taken from the system, newer than the driver compiles."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Distribution, FoundLibrary, Libraries, Packages, Torch
from tests.checks.gpu_box import driver
from tests.checks.judged import packages, said, torch, variables

FOLDER = "/usr/local/cuda/lib64"


def found(soname: str, version: str | None, by: str = "LD_LIBRARY_PATH") -> FoundLibrary:
    return FoundLibrary(soname=soname, path=f"{FOLDER}/{soname}", version=version, found_by=by)


@pytest.mark.parametrize(
    ("build", "library", "wheels", "level"),
    [
        pytest.param("2.2.2+cu121", found("libcudnn.so.8", "8.9.7"), {"nvidia_cudnn_cu12": "8.9.2.26"}, "fail", id="cuDNN 8 of another patch"),
        pytest.param("2.2.2+cu121", found("libcudnn.so.8", "8.9.2"), {"nvidia_cudnn_cu12": "8.9.2.26"}, None, id="cuDNN 8 of the same"),
        pytest.param("2.6.0+cu124", found("libcudnn.so.8", "8.9.7"), {"nvidia_cudnn_cu12": "9.1.0.70"}, None, id="cuDNN 8 beside 9 is another name"),
        pytest.param("2.8.0+cu128", found("libcudnn.so.9", "9.1.0"), {"nvidia_cudnn_cu12": "9.10.2.21"}, "fail", id="an older cuDNN 9"),
        pytest.param("2.6.0+cu124", found("libcudnn.so.9", "9.5.0"), {"nvidia_cudnn_cu12": "9.1.0.70"}, "warn", id="a newer cuDNN 9"),
        pytest.param("2.5.1+cu124", found("libnvJitLink.so.12", "12.1.105"), {"nvidia_nvjitlink_cu12": "12.4.127"}, "fail", id="an older nvJitLink lacks symbols"),
        pytest.param("2.5.1+cu124", found("libnvJitLink.so.12", "12.6.20"), {"nvidia_nvjitlink_cu12": "12.4.127"}, None, id="a newer one has them"),
        pytest.param("2.5.1+cu124", found("libnvJitLink.so.12", "12.1.105"), {}, "fail", id="the wheel not listed: the build tells"),
        pytest.param("1.13.1+cu117", found("libcublasLt.so.11", "11.4.2"), {"nvidia_cublas_cu11": "11.10.3.66"}, "fail", id="an older cuBLAS before an old torch"),
        pytest.param("2.8.0+cu128", found("libcublas.so.12", "12.1.3"), {"nvidia_cublas_cu12": "12.8.4.1"}, "warn", id="an older cuBLAS before a newer one"),
        pytest.param("2.6.0+cu124", found("libcublas.so.11", "11.11.3"), {"nvidia_cublas_cu12": "12.4.5.8"}, None, id="another major is another name"),
        pytest.param("2.6.0+cu124", found("libnccl.so.2", "2.18.3"), {"nvidia_nccl_cu12": "2.21.5"}, "warn", id="an older NCCL"),
        pytest.param("2.6.0+cu124", found("libnccl.so.2", "2.27.3"), {"nvidia_nccl_cu12": "2.21.5"}, None, id="a newer NCCL"),
        pytest.param("2.2.2+cu121", found("libcudnn.so.8", "8.9.7", "system"), {"nvidia_cudnn_cu12": "8.9.2.26"}, None, id="in the system, behind torch's own"),
        pytest.param("2.2.2+cu121", found("libcudnn.so.8", None), {"nvidia_cudnn_cu12": "8.9.2.26"}, None, id="version not known"),
        pytest.param("2.5.0a0+e000dbd.nv24.10", found("libcudnn.so.9", "9.5.0"), {}, None, id="an image whose torch uses the system's"),
    ],
)  # fmt: skip
def test_a_library_that_the_loader_finds_first(
    build: str, library: FoundLibrary, wheels: dict[str, str], level: str | None
) -> None:
    own = Torch(version=build, cuda="12.6") if "nv24" in build else torch(build)
    given = said(
        libraries=Libraries(items=(library,)), torch=own, packages=packages(torch=build.split("+")[0], **wheels),
        environment=variables(LD_LIBRARY_PATH=FOLDER),
    )  # fmt: skip
    assert given.get("ld-library-path-shadows-bundled-cuda") == level


def test_the_bundled_file_itself_is_believed_before_its_wheel() -> None:
    both = Libraries(items=(found("libcudnn.so.9", "9.10.2"), found("libcudnn.so.9", "9.10.2", "bundled")))
    assert "ld-library-path-shadows-bundled-cuda" not in said(libraries=both, torch=torch("2.6.0+cu124"))


@pytest.mark.parametrize(
    ("cudnn", "system", "warned"),
    [("9.20.0.48", "9.8.0", True), ("9.20.0.48", "9.20.0", False), ("9.24.0.43", "9.8.0", False)],
)
def test_a_system_cudnn_beside_the_wheel_that_lacks_a_part(cudnn: str, system: str, warned: bool) -> None:
    given = said(
        libraries=Libraries(items=(found("libcudnn.so.9", system, "system"),)), torch=torch("2.13.0+cu130"),
        packages=packages(torch="2.13.0", nvidia_cudnn_cu13=cudnn),
    )  # fmt: skip
    assert ("system-cudnn-in-bundled-gap" in given) is warned


@pytest.mark.parametrize(
    ("nvcc", "serves", "installed", "level"),
    [
        pytest.param("12.6", "12.4", {"numba": "0.60.0"}, "warn", id="numba, newer toolkit"),
        pytest.param("12.4", "12.4", {"numba": "0.60.0"}, None, id="the driver's own"),
        pytest.param("12.2", "12.4", {"numba": "0.60.0"}, None, id="an older toolkit"),
        pytest.param("12.6", "12.4", {"numba": "0.61.0", "numba_cuda": "0.9.0"}, None, id="numba-cuda links by itself"),
        pytest.param("12.6", "12.4", {"numba": "0.60.0", "pynvjitlink_cu12": "0.3.0"}, None, id="with a linker"),
        pytest.param("12.6", "12.4", {"triton": "3.4.0"}, None, id="Triton brings its own ptxas"),
        pytest.param("12.6", "12.4", {}, None, id="nobody compiles"),
        pytest.param(None, "12.4", {"numba": "0.60.0"}, None, id="no toolkit"),
    ],
)  # fmt: skip
def test_intermediate_code_newer_than_the_driver(
    nvcc: str | None, serves: str, installed: dict[str, str], level: str | None
) -> None:
    given = said(driver=driver("550.54.15", serves), libraries=Libraries(nvcc_version=nvcc), packages=packages(True, **installed))  # fmt: skip
    assert given.get("ptx-jit-newer-than-driver") == level


def test_a_linker_that_may_be_there_makes_it_a_note() -> None:
    given = said(driver=driver("550.54.15", "12.4"), libraries=Libraries(nvcc_version="12.6"), packages=packages(numba="0.60.0"))  # fmt: skip
    assert given["ptx-jit-newer-than-driver"] == "note"


def wheels(requires: tuple[str, ...] | None = None, **versions: str) -> Packages:
    items = [Distribution(name=name.replace("_", "-"), version=version) for name, version in versions.items()]
    return Packages(
        items=(Distribution(name="torch", version="2.8.0", requires_dist=requires), *items), complete=False
    )


@pytest.mark.parametrize(
    ("build", "installed", "expected"),
    [
        pytest.param("2.11.0+cu130", wheels(nvidia_cudnn_cu12="9.10.2.21", nvidia_cudnn_cu13="9.19.0.56"), {"mixed-cuda-wheel-majors": "warn"}, id="cuDNN for 12 and 13"),
        pytest.param("2.0.1+cu117", wheels(nvidia_nccl_cu11="2.14.3", nvidia_nccl_cu12="2.18.1"), {"mixed-cuda-wheel-majors": "warn"}, id="NCCL for 11 and 12"),
        pytest.param("2.4.1+cu121", wheels(nvidia_cudnn_cu11="8.9.5.29", nvidia_cudnn_cu12="9.1.0.70", paddlepaddle_gpu="3.0.0"), {}, id="cuDNN 8 of another program beside cuDNN 9"),
        pytest.param("2.8.0+cu128", wheels(nvidia_cublas_cu12="12.8.4.1", nvidia_cudnn_cu12="9.10.2.21"), {}, id="one major"),
        pytest.param("2.13.0+cu130", wheels(nvidia_cublas="13.0.2.14", nvidia_cudnn_cu13="9.20.0.48"), {}, id="CUDA 13 names without a suffix"),
        pytest.param("2.8.0+cu128", wheels(nvidia_cublas_cu11="11.10.3.66"), {"leftover-nvidia-wheels": "note"}, id="cuBLAS of another major alone"),
        pytest.param("2.8.0+cu128", wheels(nvidia_cublas_cu11="11.10.3.66", cupy_cuda11x="12.0"), {}, id="another user of CUDA 11"),
        pytest.param("2.3.1+cu118", wheels(("filelock",), nvidia_cudnn_cu11="8.5.0.96"), {"leftover-nvidia-wheels": "note"}, id="torch needs none of them"),
        pytest.param("2.3.1+cu118", wheels(None, nvidia_cudnn_cu11="8.7.0.84"), {}, id="what torch needs is not known"),
    ],
)  # fmt: skip
def test_nvidia_wheels_of_two_majors(build: str, installed: Packages, expected: dict[str, str]) -> None:
    given = said(torch=torch(build), packages=installed)
    ours = {"mixed-cuda-wheel-majors", "leftover-nvidia-wheels"}
    assert {name: level for name, level in given.items() if name in ours} == expected


PINS = (
    "nvidia-nccl-cu12==2.27.3; platform_system == 'Linux'",
    "nvidia-cudnn-cu12 (==9.10.2.21)",
    "nvidia-cublas-cu12==12.8.4.1",
)


@pytest.mark.parametrize(
    ("installed", "level"),
    [
        pytest.param({"nvidia_nccl_cu12": "2.21.5"}, "fail", id="an older NCCL"),
        pytest.param({"nvidia_cudnn_cu12": "9.1.0.70"}, "fail", id="an older cuDNN"),
        pytest.param({"nvidia_cudnn_cu12": "8.9.2.26"}, "fail", id="cuDNN of another major"),
        pytest.param({"nvidia_cublas_cu12": "12.4.5.8"}, "warn", id="an older cuBLAS"),
        pytest.param({"nvidia_cudnn_cu12": "9.13.0.50"}, "note", id="a newer cuDNN, on purpose perhaps"),
        pytest.param({"nvidia_nccl_cu12": "2.27.3", "nvidia_cudnn_cu12": "9.10.2.21"}, None, id="as pinned"),
    ],
)
def test_wheels_that_drifted_from_their_pins(installed: dict[str, Any], level: str | None) -> None:
    given = said(torch=torch("2.8.0+cu128"), packages=wheels(PINS, **installed))
    assert given.get("nvidia-wheel-version-drift") == level


@pytest.mark.parametrize(
    ("build", "installed", "level"),
    [
        pytest.param(
            "2.5.1+cu124",
            {"nvidia_nvjitlink_cu12": "12.1.105"},
            "fail",
            id="nvJitLink older than the build's CUDA",
        ),
        pytest.param(
            "2.5.1+cu124", {"nvidia_nvjitlink_cu12": "12.4.127"}, None, id="nvJitLink of the build's CUDA"
        ),
        pytest.param("2.2.1+cu121", {"nvidia_nvjitlink_cu12": "12.6.20"}, None, id="not pinned at that time"),
        pytest.param(
            "2.10.0+cu128", {"nvidia_nccl_cu12": "2.21.5"}, "fail", id="NCCL by the table of builds"
        ),
        pytest.param(
            "4.0.0+cu150", {"nvidia_cudnn_cu15": "9.1"}, None, id="a build that is not in the table"
        ),
    ],
)
def test_pins_are_known_without_metadata_for_known_builds(
    build: str, installed: dict[str, str], level: str | None
) -> None:
    given = said(torch=torch(build), packages=wheels(None, **installed))
    assert given.get("nvidia-wheel-version-drift") == level
