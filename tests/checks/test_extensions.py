"""Compiled packages against torch, CUDA, C library and card; what is unknown fits."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import (
    Environment,
    Extension,
    FoundLibrary,
    Gpu,
    Gpus,
    Host,
    Incident,
    Libraries,
    Packages,
    Workload,
)
from tests.checks.judged import loud, packages, said, the, torch, variables

FLASH = "flash-attn-torch-abi-mismatch"


def built(name: str = "flash-attn", /, **fields: Any) -> Packages:
    return Packages(extensions=(Extension(distribution=name, **fields),), complete=False)


@pytest.mark.parametrize(
    ("extension", "torch_version", "abi", "expected"),
    [
        pytest.param(
            {"torch": "2.2", "cxx11_abi": False}, "2.3.0+cu121", False, {FLASH: "fail"}, id="another minor"
        ),
        pytest.param(
            {"torch": "2.6", "cxx11_abi": True}, "2.6.0+cu124", False, {FLASH: "fail"}, id="another ABI"
        ),
        pytest.param({"torch": "2.6", "cxx11_abi": True}, "2.6.0+cu124", None, {}, id="an ABI nobody read"),
        pytest.param(
            {"torch": "2.6", "cuda": "11"}, "2.6.0+cu124", None, {FLASH: "fail"}, id="another CUDA major"
        ),
        pytest.param(
            {"torch": "2.7", "cuda": "12", "cxx11_abi": True}, "2.7.1+cu128", True, {}, id="the right one"
        ),
        pytest.param({}, "2.7.1+cu128", True, {}, id="built here: it does not say for what"),
    ],
)
def test_flash_attention_belongs_to_one_torch(
    extension: dict[str, Any], torch_version: str, abi: bool | None, expected: dict[str, str]
) -> None:
    assert loud(packages=built(**extension), torch=torch(torch_version, cxx11_abi=abi)) == expected


def test_a_version_that_says_what_it_was_built_for_is_believed() -> None:
    named = packages(flash_attn="2.5.7+cu122torch2.2cxx11abiFALSE")
    assert loud(packages=named, torch=torch("2.3.0+cu121")) == {FLASH: "fail"}
    assert loud(packages=named, torch=torch("2.2.2+cu121")) == {}


def test_the_libstdcxx_that_a_log_names_is_the_one_that_was_loaded() -> None:
    system = libstdcxx("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "3.4.25", "system")
    line = f"ImportError: {system.path}: version `GLIBCXX_3.4.29' not found (required by /opt/env/x.so)"
    machine = {
        "packages": built("pandas", needs_glibcxx="3.4.29"),
        "libraries": Libraries(items=(system, NEW)),
    }
    assert loud(**machine) == {}
    assert loud(**machine, incident=Incident(log_lines=(line,))) == {"libstdcxx-too-old": "fail"}


def test_other_extensions_of_another_torch_are_a_warning() -> None:
    assert loud(packages=built("torch-scatter", torch="2.3"), torch=torch("2.4.0+cu121")) == {
        "extension-torch-abi-mismatch": "warn"
    }
    assert loud(packages=built("torch-scatter", torch="2.4"), torch=torch("2.4.0+cu121")) == {}


def card(name: str, capability: str) -> Gpus:
    return Gpus(items=(Gpu(name=name, compute_capability=capability),))


def test_flash_attention_on_an_older_card_fails_only_where_it_is_asked_for() -> None:
    asked = Workload(features=("flash-attention-2",))
    have = packages(flash_attn="2.7.4.post1")
    assert (
        said(packages=have, gpus=card("Tesla V100", "7.0"), workload=asked)["flash-attn-unsupported-gpu"]
        == "fail"
    )
    assert said(packages=have, gpus=card("Tesla V100", "7.0"))["flash-attn-unsupported-gpu"] == "note"
    assert "flash-attn-unsupported-gpu" not in said(
        packages=have, gpus=card("NVIDIA A10", "8.6"), workload=asked
    )
    assert "flash-attn-unsupported-gpu" not in said(packages=have, gpus=card("unknown", ""), workload=asked)


@pytest.mark.parametrize(
    ("needs", "has", "expected"),
    [
        pytest.param("2.32", "2.31", {"glibc-too-old-for-wheel": "fail"}, id="one too old"),
        pytest.param("2.9", "2.31", {}, id="numbers, not strings"),
        pytest.param("2.32", "2.39", {}, id="newer"),
        pytest.param("2.32", "", {}, id="musl says nothing"),
        pytest.param("2.32", None, {}, id="unknown"),
    ],
)
def test_the_c_library_a_wheel_asks_for(needs: str, has: str | None, expected: dict[str, str]) -> None:
    assert loud(packages=built(needs_glibc=needs), host=Host(glibc=has, kernel="5.15")) == expected


def libstdcxx(path: str, newest: str, by: str) -> FoundLibrary:
    return FoundLibrary(soname="libstdc++.so.6", path=path, newest_symbol=f"GLIBCXX_{newest}", found_by=by)


OLD = libstdcxx("/opt/gcc-5/lib64/libstdc++.so.6", "3.4.21", "LD_LIBRARY_PATH")
NEW = libstdcxx("/opt/env/lib/libstdc++.so.6", "3.4.30", "conda")


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        pytest.param((OLD, NEW), {"libstdcxx-too-old": "fail"}, id="an old one first on the path"),
        pytest.param((NEW,), {}, id="the environment's own"),
        pytest.param(
            (libstdcxx("/usr/lib/libstdc++.so.6", "3.4.25", "system"), NEW),
            {},
            id="which of two is loaded is not known",
        ),
    ],
)
def test_the_libstdcxx_that_is_loaded_first(
    copies: tuple[FoundLibrary, ...], expected: dict[str, str]
) -> None:
    path: Environment = variables(LD_LIBRARY_PATH="/opt/gcc-5/lib64:/opt/other/lib")
    machine = {
        "packages": built("paddle", needs_glibcxx="3.4.26"),
        "libraries": Libraries(items=copies),
        "environment": path,
    }
    assert loud(**machine) == expected
    if expected:
        assert "export LD_LIBRARY_PATH=/opt/other/lib" in str(the("libstdcxx-too-old", **machine).advice)


# ---------------------------------------------------------------------------------------------------- CUDA of their own
BNB = "bitsandbytes-missing-cuda-binary"


def bitsandbytes(version: str, builds: tuple[str, ...] | None) -> Packages:
    listed = packages(bitsandbytes=version)
    extension = Extension(distribution="bitsandbytes", cuda_builds=builds)
    return Packages(items=listed.items, extensions=(extension,), complete=False)


@pytest.mark.parametrize(
    ("installed", "torch_version", "environment", "expected"),
    [
        pytest.param(
            bitsandbytes("0.45.5", ("121", "124")),
            "2.9.0+cu130",
            {},
            {BNB: "fail"},
            id="no build of that CUDA major",
        ),
        pytest.param(
            bitsandbytes("0.49.2", ("121", "124")),
            "2.8.0+cu128",
            {},
            {},
            id="a build of the same major may do",
        ),
        pytest.param(
            bitsandbytes("0.41.3", ("118", "121", "122")),
            "2.4.0+cu124",
            {},
            {BNB: "fail"},
            id="releases before 0.43 want the very one",
        ),
        pytest.param(bitsandbytes("0.49.2", ("128",)), "2.8.0+cu128", {}, {}, id="the very one"),
        pytest.param(
            bitsandbytes("0.49.2", ("128",)),
            "2.8.0+cu128",
            {"BNB_CUDA_VERSION": "121"},
            {BNB: "fail"},
            id="a variable that asks for another",
        ),
        pytest.param(
            bitsandbytes("0.45.4.dev0", ()),
            "2.6.0+cu124",
            {},
            {BNB: "fail"},
            id="a checkout without binaries",
        ),
        pytest.param(
            bitsandbytes("0.49.2", ()), "2.6.0+cpu", {}, {}, id="a torch without CUDA asks for none"
        ),
        pytest.param(
            packages(bitsandbytes="0.44.1"),
            "2.7.1+cu128",
            {},
            {BNB: "fail"},
            id="0.44 has none for 12.8 and uses none",
        ),
        pytest.param(
            packages(bitsandbytes="0.41.1"),
            "2.4.0+cu124",
            {},
            {BNB: "fail"},
            id="between two wheels that both lack it",
        ),
        pytest.param(
            packages(bitsandbytes="0.41.1"), "2.1.0+cu121", {}, {}, id="between two wheels that both have it"
        ),
        pytest.param(
            packages(bitsandbytes="0.45.5"),
            "2.9.0+cu130",
            {},
            {BNB: "fail"},
            id="the wheel's list, where nobody looked into the folder",
        ),
        pytest.param(
            packages(bitsandbytes="0.60.0"), "2.30.0+cu140", {}, {}, id="a wheel that no table knows"
        ),
    ],
)
def test_bitsandbytes_and_the_cuda_of_torch(
    installed: Packages, torch_version: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert (
        loud(packages=installed, torch=torch(torch_version), environment=variables(**environment)) == expected
    )


NVCC = "nvcc-torch-cuda-mismatch"


@pytest.mark.parametrize(
    ("nvcc", "torch_version", "compiled", "environment", "expected"),
    [
        pytest.param("11.8", "2.5.0+cu124", ("setup.py",), {}, {NVCC: "fail"}, id="another major"),
        pytest.param(
            "12.1",
            "2.5.0+cu124",
            ("setup.py",),
            {},
            {},
            id="another minor is a warning of torch's, not trouble",
        ),
        pytest.param("11.8", "2.5.0+cu124", (), {}, {}, id="nothing is compiled"),
        pytest.param("11.8", "2.5.0+cpu", ("setup.py",), {}, {}, id="a torch without CUDA"),
        pytest.param(
            "13.2",
            "2.14.0+cu130",
            ("deepspeed",),
            {},
            {NVCC: "fail"},
            id="DeepSpeed mixes no minors of CUDA 13",
        ),
        pytest.param(
            "13.2", "2.14.0+cu130", ("deepspeed",), {"DS_SKIP_CUDA_CHECK": "1"}, {}, id="told not to look"
        ),
        pytest.param("13.2", "2.14.0+cu130", ("setup.py",), {}, {}, id="torch itself does"),
        pytest.param(None, "2.5.0+cu124", ("setup.py",), {}, {}, id="no toolkit found is another matter"),
    ],
)
def test_the_toolkit_that_compiles_is_of_torchs_major(
    nvcc: str | None, torch_version: str, compiled: tuple[str, ...], environment: dict[str, str], expected: dict[str, str]
) -> None:  # fmt: skip
    libraries = Libraries(nvcc_version=nvcc, compiles_extensions=compiled)
    assert (
        loud(libraries=libraries, torch=torch(torch_version), environment=variables(**environment))
        == expected
    )
