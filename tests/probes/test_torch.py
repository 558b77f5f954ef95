"""The torch on disk: its build, architectures, ABI, copies and damage, from files alone."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from doctor.model import Reading, Torch
from doctor.probes import Context
from doctor.probes.elf import Elf, ElfError, newest
from doctor.probes.extensions import cxx11_abi
from doctor.probes.fatbin import fatbin_arch_list, literal_arch_list, usual_architectures
from doctor.probes.packages import probe as probe_packages
from doctor.probes.torch import parse_transformers_minimum, parse_version_py, probe
from tests.probes.elf_files import fatbin_block, write_elf
from tests.probes.trees import (
    CPU_VERSION_PY,
    CUDA_VERSION_PY,
    NEW_STRING,
    OLD_STRING,
    TORCH_CHECK,
    Site,
    Tree,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def venv(tree: Tree) -> Path:
    return tree.venv("venv", tree.base())


@pytest.fixture
def site(tree: Tree, venv: Path) -> Site:
    return tree.site(venv)


def read(tree: Tree, venv: Path, **environ: str) -> Torch:
    reading = probe(tree.context(python=venv, cwd=None, **environ))
    assert reading.status == "ok", reading.why
    assert reading.value is not None
    return reading.value


# ------------------------------------------------------------------------------------------------- version.py
@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("cuda: Optional[str] = '13.0'", "13.0"),
        ("cuda = '11.7'", "11.7"),
        ("cuda = None", None),
        ("cuda: Optional[str] = None", None),
    ],
)
def test_version_py_is_read_as_literals_annotated_or_not(text: str, cuda: str | None) -> None:
    assert parse_version_py(f"from typing import Optional\n__version__ = '2.0.0'\n{text}\n") == {
        "__version__": "2.0.0",
        "cuda": cuda,
    }


def test_a_cuda_build_without_local_tag_is_told_by_version_py(tree: Tree, venv: Path, site: Site) -> None:
    site.torch(CUDA_VERSION_PY, dist="2.6.0")
    torch = read(tree, venv)
    assert (torch.version, torch.cuda, torch.hip, torch.broken) == ("2.6.0+cu124", "12.4", None, "")
    assert torch.location == str(site.path / "torch")
    assert torch.copies == (str(site.path / "torch-2.6.0.dist-info"),)


def test_a_cpu_build_has_no_cuda_and_that_is_known(tree: Tree, venv: Path, site: Site) -> None:
    site.torch(CPU_VERSION_PY, dist="2.6.0+cpu")
    torch = read(tree, venv)
    assert (torch.cuda, torch.arch_list, torch.broken, dict(torch.unread)) == ("", None, "", {})


def test_a_rocm_build_is_told(tree: Tree, venv: Path, site: Site) -> None:
    site.torch("__version__ = '2.6.0+rocm6.2'\ncuda = None\nhip: Optional[str] = '6.2.41133'\n")
    torch = read(tree, venv)
    assert (torch.cuda, torch.hip) == ("", "6.2.41133")


def test_a_version_py_that_is_no_python_leaves_cuda_unknown_with_the_reason(
    tree: Tree, venv: Path, site: Site
) -> None:
    site.torch()
    site.file("torch/version.py", "<<<<<<< HEAD\n")
    torch = read(tree, venv)
    assert torch.cuda is None
    assert "version.py cannot be read" in str(torch.unread["cuda"])
    assert torch.version == "2.6.0"


def test_no_torch_is_absent_not_failed(tree: Tree, venv: Path) -> None:
    reading: Reading[Torch] = probe(tree.context(python=venv))
    assert reading.status == "absent"


# -------------------------------------------------------------------------------------------------
# architectures
def test_the_list_is_found_though_other_text_stands_before_it(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()  # ...ipc_hsm_70 sm_80 sm_90 compute_90\0
    torch = read(tree, venv)
    assert torch.arch_list == ("sm_70", "sm_80", "sm_90", "compute_90")
    assert torch.arch_source == "string"


def test_a_single_architecture_is_taken_from_the_kernels(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()
    write_elf(site.path / "torch/lib/libtorch_python.so", rodata=b"\0sm_87\0")
    write_elf(site.path / "torch/lib/libtorch_cuda.so", fatbin=fatbin_block((2, 87), (1, 87)))
    torch = read(tree, venv)
    assert (torch.arch_list, torch.arch_source) == (("sm_87", "compute_87"), "fatbin")


def test_kernels_are_counted_over_padded_blocks(tmp_path: Path) -> None:
    blocks = fatbin_block((2, 80), (2, 90)) + b"\0" * 344 + fatbin_block((2, 80), (2, 90)) + b"\0" * 8
    library = write_elf(tmp_path / "libtorch_cuda.so", fatbin=blocks)
    assert fatbin_arch_list(library) == ("sm_80", "sm_90")


def test_a_stub_without_kernels_is_none_and_1_13s_other_library_is_read(
    tree: Tree, venv: Path, site: Site
) -> None:
    site.torch()
    write_elf(site.path / "torch/lib/libtorch_python.so")
    write_elf(site.path / "torch/lib/libtorch_cuda_cu.so", fatbin=fatbin_block((2, 37), (2, 86)))
    assert fatbin_arch_list(site.path / "torch/lib/libtorch_cuda.so") is None
    assert read(tree, venv).arch_list == ("sm_37", "sm_86")


def test_special_kernels_are_no_support() -> None:
    # torch 2.14.1's own numbers
    images = {(2, 75): 475, (2, 80): 475, (2, 90): 479, (2, 100): 534, (2, 103): 59, (2, 89): 1, (2, 121): 1}
    assert usual_architectures(Counter(images)) == ("sm_75", "sm_80", "sm_90", "sm_100")


@pytest.mark.parametrize(
    "fatbin",
    [
        b"\1" * 64,
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40) + b"\0" * 64,
        fatbin_block((2, 80))[:16] + b"\0" * 88,
    ],
    ids=["no magic", "longer than its section", "header of size nought"],
)
def test_kernels_in_an_unknown_layout_are_an_error_not_a_guess(tmp_path: Path, fatbin: bytes) -> None:
    library = write_elf(tmp_path / "libtorch_cuda.so", fatbin=fatbin)
    with pytest.raises(ElfError):
        fatbin_arch_list(library)


def test_architectures_that_cannot_be_read_carry_the_reason(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()
    site.file("torch/lib/libtorch_python.so", b"not a library")
    torch = read(tree, venv)
    assert torch.arch_list is None
    assert "do not tell their architectures" in str(torch.unread["arch_list"])


WHEEL = os.environ.get("DOCTOR_TEST_TORCH_SITE", "")


@pytest.mark.skipif(
    not WHEEL, reason="DOCTOR_TEST_TORCH_SITE names no folder with an unpacked CUDA build of torch"
)
def test_a_real_cuda_wheel_gives_what_it_prints() -> None:
    """Set DOCTOR_TEST_TORCH_SITE to a folder that holds ``torch/`` of the 2.14.1 CUDA wheel."""
    library = Path(WHEEL) / "torch/lib"
    printed = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    assert literal_arch_list(library / "libtorch_python.so") == printed
    assert fatbin_arch_list(library / "libtorch_cuda.so") == printed
    assert parse_version_py((Path(WHEEL) / "torch/version.py").read_text())["cuda"] == "13.0"


CUDA_PYTHON = os.environ.get("DOCTOR_TEST_CUDA_PYTHON", "")
_ASK_TORCH = (
    "import json, torch, torch.cuda.nccl as nccl; print(json.dumps({'version': torch.__version__,"
    " 'cuda': torch.version.cuda, 'arch_list': torch._C._cuda_getArchFlags().split(),"
    " 'cudnn': torch.backends.cudnn.version(), 'nccl': nccl.version(), 'abi': torch._C._GLIBCXX_USE_CXX11_ABI}))"
)


@pytest.mark.skipif(
    not CUDA_PYTHON, reason="DOCTOR_TEST_CUDA_PYTHON names no Python with a CUDA build of torch"
)
def test_an_installed_cuda_build_is_read_as_it_says_of_itself() -> None:
    """Set DOCTOR_TEST_CUDA_PYTHON to an interpreter with any CUDA build of torch; no GPU is needed."""
    done = subprocess.run([CUDA_PYTHON, "-c", _ASK_TORCH], capture_output=True, check=True, timeout=300)
    said = json.loads(done.stdout)
    torch = probe(Context(python=CUDA_PYTHON)).value
    assert torch is not None
    assert (torch.version, torch.cuda, torch.cxx11_abi, torch.broken) == (
        said["version"],
        said["cuda"],
        said["abi"],
        "",
    )
    assert list(torch.arch_list or ()) == said["arch_list"]
    major, minor, patch = (int(part) for part in (torch.cudnn_version or "0.0.0").split(".")[:3])
    assert major * 10000 + minor * 100 + patch == said["cudnn"]
    assert [int(part) for part in (torch.nccl_version or "").split(".")] == said["nccl"]


# ------------------------------------------------------------------------------------------------- ABI
@pytest.mark.parametrize(("string", "abi"), [(NEW_STRING, True), (OLD_STRING, False)], ids=["new", "old"])
def test_the_cxx_abi_is_read_from_libc10s_symbols(
    tree: Tree, venv: Path, site: Site, string: str, abi: bool
) -> None:
    site.torch(string=string)
    assert read(tree, venv).cxx11_abi is abi


def test_symbols_of_both_abis_or_neither_are_unknown() -> None:
    both = f"\0{TORCH_CHECK}{NEW_STRING}\0{TORCH_CHECK}{OLD_STRING}\0".encode()
    assert cxx11_abi(both) is None
    assert cxx11_abi(b"\0_ZN3c105ErrorD1Ev\0") is None


# ------------------------------------------------------------------------------------------------- damage and
# copies
def lose(site: Site, name: str) -> None:
    (site.path / name).unlink()


@pytest.mark.parametrize(
    "name",
    ["torch/lib/libc10.so", "torch/_C.cpython-311-x86_64-linux-gnu.so", "torch/version.py"],
    ids=["library", "module", "version"],
)
def test_a_lost_file_is_named(tree: Tree, venv: Path, site: Site, name: str) -> None:
    site.torch()
    lose(site, name)
    assert read(tree, venv).broken == f"missing: {name}"


def test_a_dist_info_without_a_package_is_half_an_install(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("torch", "2.6.0+cu124")
    torch = read(tree, venv)
    assert torch.version == "2.6.0+cu124"
    assert "no torch/__init__.py" in torch.broken


def test_a_package_without_record_is_judged_by_its_module_alone(tree: Tree, venv: Path, site: Site) -> None:
    site.torch(dist=None)
    assert read(tree, venv).broken == ""
    lose(site, "torch/_C.cpython-311-x86_64-linux-gnu.so")
    assert read(tree, venv).broken == "missing: torch/_C.*.so"


def test_a_torch_for_another_python_is_broken(tree: Tree, venv: Path, site: Site) -> None:
    site.torch(python="310")
    assert "built for another Python" in read(tree, venv).broken


def test_cuda_libraries_that_nothing_offers_are_named(tree: Tree, venv: Path, site: Site) -> None:
    site.torch(needed=["libcudnn.so.9", "libcudart.so.12", "libcuda.so.1", "libc.so.6"])
    assert read(tree, venv).broken == "not found: libcudnn.so.9, libcudart.so.12"


@pytest.mark.parametrize("where", ["wheel", "LD_LIBRARY_PATH", "loader cache", "environment"])
def test_cuda_libraries_are_found_wherever_torch_would_find_them(
    tree: Tree, venv: Path, site: Site, where: str
) -> None:
    site.torch(needed=["libcudnn.so.9"])
    variables: dict[str, str] = {}
    if where == "wheel":
        site.file("nvidia/cudnn/lib/libcudnn.so.9")
    elif where == "LD_LIBRARY_PATH":
        Site(tree.root / "cuda/lib64").file("libcudnn.so.9")
        variables = {"LD_LIBRARY_PATH": f"/nowhere:{tree.root}/cuda/lib64"}
    elif where == "loader cache":
        Site(tree.root / "etc").file(
            "ld.so.cache", b"glibc-ld.so.cache1.1\0libcudnn.so.9\0/usr/local/cuda/lib64/libcudnn.so.9\0"
        )
    else:
        Site(venv / "lib").file("libcudnn.so.9")
    assert read(tree, venv, **variables).broken == ""


def test_every_copy_is_listed_in_import_order(tree: Tree) -> None:
    conda = tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    user, own = Site(tree.root / "home/.local/lib/python3.11/site-packages"), tree.site(conda)
    user.torch(CPU_VERSION_PY, dist="2.1.0")
    own.torch(dist="2.6.0")
    (own.path / "torch-2.4.0.dist-info").mkdir()
    torch = read(tree, conda)
    assert torch.location == str(user.path / "torch")
    assert torch.copies == (
        str(user.path / "torch-2.1.0.dist-info"),
        str(own.path / "torch-2.4.0.dist-info"),
        str(own.path / "torch-2.6.0.dist-info"),
    )


def test_torchvisions_dist_info_is_no_copy_of_torch(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()
    site.dist("torch_scatter", "2.1.2")
    site.dist("torchvision", "0.21.0")
    assert len(read(tree, venv).copies) == 1


def test_cudnn_and_nccl_come_from_their_wheels_and_two_of_one_are_unknown(
    tree: Tree, venv: Path, site: Site
) -> None:
    site.torch()
    site.dist("nvidia-cudnn-cu12", "9.1.0.70")
    site.dist("nvidia-nccl-cu12", "2.21.5")
    site.dist("nvidia-nccl-cu13", "2.27.7")
    torch = read(tree, venv)
    assert (torch.cudnn_version, torch.nccl_version) == ("9.1.0.70", None)


# -------------------------------------------------------------------------------------------------
# transformers' floor
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'logger.warning_once(f"Disabling PyTorch because PyTorch >= 2.6 is required but found {torch_version}")',
            "2.6",
        ),
        (
            'logger.warning(f"Disabling PyTorch because PyTorch >= 2.1 is required but found {_torch_version}")',
            "2.1",
        ),
        ('logger.info(f"PyTorch version {_torch_version} available.")', None),
    ],
    ids=["5.x", "4.5x", "older"],
)
def test_transformers_own_floor_is_read(text: str, expected: str | None) -> None:
    assert parse_transformers_minimum(text) == expected


# ------------------------------------------------------------------------------------------------- ELF
def test_headers_are_read_back(tmp_path: Path) -> None:
    path = write_elf(
        tmp_path / "lib.so",
        soname="libx.so.1",
        needed=["libc.so.6", "libcudart.so.12"],
        run_path="$ORIGIN/../lib:/opt/lib",
        needs=["GLIBC_2.17", "GLIBC_2.32", "GLIBC_2.4"],
        offers=["GLIBCXX_3.4", "GLIBCXX_3.4.30", "GLIBCXX_3.4.9"],
    )
    with Elf(path) as library:
        assert (library.soname(), library.needed()) == ("libx.so.1", ["libc.so.6", "libcudart.so.12"])
        assert library.run_path() == ["$ORIGIN/../lib", "/opt/lib"]
        assert newest(library.versions_needed(), "GLIBC") == "2.32"
        assert newest(library.versions_offered(), "GLIBCXX") == "3.4.30"
        assert library.section(b".nowhere") is None


@pytest.mark.parametrize("length", [0, 3, 64, 200, 300])
def test_a_library_cut_short_is_an_error_or_holds_less_never_a_crash(tmp_path: Path, length: int) -> None:
    whole = write_elf(tmp_path / "lib.so", soname="libx.so.1", needs=["GLIBC_2.17"]).read_bytes()
    (tmp_path / "cut.so").write_bytes(whole[:length])
    with contextlib.suppress(ElfError), Elf(tmp_path / "cut.so") as library:
        library.versions_needed()
        library.section(b".rodata")


def test_random_bytes_in_the_headers_never_crash_or_hang(tmp_path: Path) -> None:
    import random

    whole = bytearray(
        write_elf(
            tmp_path / "lib.so", soname="libx.so.1", needs=["GLIBC_2.17"], rodata=b"x" * 99
        ).read_bytes()
    )
    numbers = random.Random(7)
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(4):
            damaged[numbers.randrange(16, len(damaged))] = numbers.randrange(256)
        (tmp_path / "damaged.so").write_bytes(damaged)
        with contextlib.suppress(ElfError), Elf(tmp_path / "damaged.so") as library:
            library.needed(), library.soname(), library.versions_needed(), library.versions_offered()
            library.section(b".rodata")


def test_the_running_torch_is_read_as_its_files_say() -> None:
    reading = probe(Context(python=sys.executable))
    if reading.status == "absent":
        pytest.skip("no torch in the environment that runs the tests")
    import importlib.metadata

    assert reading.value is not None
    assert reading.value.version.split("+")[0] == importlib.metadata.version("torch").split("+")[0]
    assert reading.value.broken == ""
    assert reading.value.cxx11_abi is not None


@pytest.mark.parametrize("closed", ["lib", "lib/python3.11", "lib/python3.11/site-packages"])
def test_an_environment_that_may_not_be_looked_into_is_not_without_torch(
    tree: Tree, venv: Path, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user's: every folder below the closed one looks as if it were not there."""
    monkeypatch.setattr("doctor.probes.target.may_be_listed", lambda folder: folder != venv / closed)
    context = tree.context(python=venv)
    torch, packages = probe(context), probe_packages(context)
    assert torch.status == "failed"
    assert str(venv / closed) in str(torch.why)
    assert packages.value is not None


def test_what_is_installed_in_a_closed_library_folder_is_unknown(
    tree: Tree, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tree.site(venv).path
    site.rmdir()
    monkeypatch.setattr("doctor.probes.target.may_be_listed", lambda folder: folder != site.parent)
    packages = probe_packages(tree.context(python=venv)).value
    assert packages is not None
    assert not packages.complete
    assert "may not be read" in str(packages.unread["items"])
