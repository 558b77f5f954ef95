"""CUDA's libraries and the toolkit, and what compiled packages were built for: names and headers, nothing
loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doctor.model import Libraries
from doctor.probes.extensions import dotted, from_tag, read_extension, read_extensions
from doctor.probes.libraries import parse_loader_cache, probe, wheel_versions
from doctor.probes.library_folders import loader_folders, stem_and_version
from doctor.probes.packages import probe as packages_probe
from doctor.probes.toolkit import parse_nvcc, parse_version_json
from tests.probes.elf_files import write_elf
from tests.probes.trees import NEW_STRING, OLD_STRING, TORCH_CHECK, Site, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def venv(tree: Tree) -> Path:
    return tree.venv("venv", tree.base())


@pytest.fixture
def site(tree: Tree, venv: Path) -> Site:
    return tree.site(venv)


def read(tree: Tree, venv: Path, cwd: Path | None = None, **environ: str) -> Libraries:
    reading = probe(tree.context(python=venv, cwd=cwd, **environ))
    assert reading.status == "ok", reading.why
    assert reading.value is not None
    return reading.value


def told(libraries: Libraries) -> list[tuple[str, str | None, str]]:
    return [(item.soname, item.version, item.found_by) for item in libraries.items]


# ------------------------------------------------------------------------------------------------- names
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libcudnn.so.8.9.7", ("libcudnn", "8.9.7")),
        ("libcublasLt.so.12", ("libcublasLt", "12")),
        ("libcudart.so", ("libcudart", "")),
        ("libcudnn_ops.so.9", ("libcudnn_ops", "9")),
        ("libcudart.so.bak", ("", "")),
        ("libcudart.a", ("", "")),
    ],
)
def test_a_file_name_tells_stem_and_version(name: str, expected: tuple[str, str]) -> None:
    assert stem_and_version(name) == expected


def test_an_empty_entry_of_the_loaders_path_is_the_working_directory() -> None:
    folders = loader_folders({"LD_LIBRARY_PATH": "/usr/local/cuda/lib64::lib"}, Path("/work"))
    assert folders == [Path("/usr/local/cuda/lib64"), Path("/work"), Path("/work/lib")]
    assert loader_folders({"LD_LIBRARY_PATH": ""}, Path("/work")) == []
    assert loader_folders({}, Path("/work")) == []


def test_the_loaders_cache_gives_cudas_libraries_of_this_architecture() -> None:
    cache = (
        b"glibc-ld.so.cache1.1\0libcudnn.so.9\0/usr/lib/x86_64-linux-gnu/libcudnn.so.9\0libc.so.6\0/lib/libc.so.6\0"
        b"libcudart.so.12\0/usr/lib/i386-linux-gnu/libcudart.so.12\0libcudart.so.12\0/usr/local/cuda/lib64/libcudart.so.12\0"
    )
    assert parse_loader_cache(cache) == [
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.9",
        "/usr/local/cuda/lib64/libcudart.so.12",
    ]


# ------------------------------------------------------------------------------------------------- what lies
# where
def test_a_library_on_the_loaders_path_stands_beside_the_bundled_one(
    tree: Tree, venv: Path, site: Site
) -> None:
    system = tree.root / "usr/local/cuda-12.1/lib64"
    write_elf(system / "libcudnn.so.8.9.7", soname="libcudnn.so.8")
    (system / "libcudnn.so.8").symlink_to("libcudnn.so.8.9.7")
    (system / "libcudnn.so").symlink_to("libcudnn.so.8")
    write_elf(site.path / "nvidia/cudnn/lib/libcudnn.so.9", soname="libcudnn.so.9")
    site.dist("nvidia-cudnn-cu12", "9.1.0.70")
    libraries = read(tree, venv, LD_LIBRARY_PATH=f"{system}:/nowhere")
    assert told(libraries) == [
        ("libcudnn.so.8", "8.9.7", "LD_LIBRARY_PATH"),
        ("libcudnn.so.9", "9.1.0.70", "bundled"),
    ]
    assert libraries.items[0].path == str(system / "libcudnn.so.8")
    assert libraries.unread == {}


def test_a_wheel_of_two_cuda_majors_leaves_the_version_unknown(tree: Tree, venv: Path, site: Site) -> None:
    write_elf(site.path / "nvidia/nccl/lib/libnccl.so.2", soname="libnccl.so.2")
    site.dist("nvidia-nccl-cu12", "2.21.5")
    site.dist("nvidia-nccl-cu13", "2.27.7")
    assert told(read(tree, venv)) == [("libnccl.so.2", None, "bundled")]
    assert wheel_versions([site.path]) == {"nccl": {"2.21.5", "2.27.7"}}


def test_cuda_13s_common_folder_is_searched(tree: Tree, venv: Path, site: Site) -> None:
    write_elf(site.path / "nvidia/cu13/lib/libcudart.so.13", soname="libcudart.so.13")
    site.dist("nvidia-cuda-runtime", "13.0.96")
    assert told(read(tree, venv)) == [("libcudart.so.13", "13.0.96", "bundled")]


def test_cudnns_header_tells_a_version_that_no_name_does(tree: Tree, venv: Path) -> None:
    home = Site(tree.root / "cudnn")
    write_elf(home.path / "lib/libcudnn.so.9", soname="libcudnn.so.9")
    home.file(
        "include/cudnn_version.h",
        "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n",
    )
    assert told(read(tree, venv, LD_LIBRARY_PATH=str(home.path / "lib"))) == [
        ("libcudnn.so.9", "9.10.2", "LD_LIBRARY_PATH")
    ]


def test_condas_libstdcxx_tells_its_newest_symbol(tree: Tree) -> None:
    conda = tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    offers = ["GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.13"]
    write_elf(conda / "lib/libstdc++.so.6.0.30", soname="libstdc++.so.6", offers=offers)
    (conda / "lib/libstdc++.so.6").symlink_to("libstdc++.so.6.0.30")
    item = read(tree, conda).items[0]
    assert (item.soname, item.newest_symbol, item.found_by) == ("libstdc++.so.6", "GLIBCXX_3.4.30", "conda")


def test_what_is_no_library_is_passed_over(tree: Tree, venv: Path) -> None:
    folder = Site(tree.root / "lib")
    folder.file("libcudart.so", "/* GNU ld script */\nINPUT(libcudart.so.12)\n")
    (folder.path / "libcudnn.so.9").symlink_to("gone")
    (folder.path / "libnccl.so.2").mkdir()
    assert read(tree, venv, LD_LIBRARY_PATH=str(folder.path)).items == ()


def test_the_systems_libraries_come_from_the_loaders_cache(tree: Tree, venv: Path) -> None:
    write_elf(tree.root / "usr/local/cuda/lib64/libcudart.so.12", soname="libcudart.so.12")
    Site(tree.root / "etc").file(
        "ld.so.cache", b"x\0libcudart.so.12\0/usr/local/cuda/lib64/libcudart.so.12\0"
    )
    assert told(read(tree, venv)) == [("libcudart.so.12", None, "system")]


def test_a_file_in_a_folders_place_on_the_loaders_path_is_no_trouble(tree: Tree, venv: Path) -> None:
    (tree.root / "file").touch()
    assert read(tree, venv, LD_LIBRARY_PATH=f"{tree.root}/file").unread == {}


# ------------------------------------------------------------------------------------------------- the
# toolkit
def toolkit(folder: Path, script: str = "#!/bin/sh\nexit 1\n") -> Path:
    nvcc = folder / "bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(script)
    nvcc.chmod(0o755)
    return nvcc


def test_nvccs_version_comes_from_version_json(tree: Tree, venv: Path) -> None:
    nvcc = toolkit(tree.root / "cuda-12.4")
    versions = {"cuda": {"version": "12.4.1"}, "cuda_nvcc": {"version": "12.4.131"}}
    (tree.root / "cuda-12.4/version.json").write_text(json.dumps(versions))
    libraries = read(tree, venv, CUDA_HOME=str(tree.root / "cuda-12.4"))
    assert (libraries.nvcc_version, libraries.nvcc_path) == ("12.4", str(nvcc))


def test_nvccs_version_comes_from_cudas_header_where_there_is_no_version_file(tree: Tree, venv: Path) -> None:
    nvcc = toolkit(tree.root / "cuda")
    Site(tree.root / "cuda").file("include/cuda.h", "/* The CUDA driver API */\n#define CUDA_VERSION 12060\n")
    assert read(tree, venv, PATH=str(nvcc.parent)).nvcc_version == "12.6"


def test_nvcc_is_asked_only_when_no_file_tells(tree: Tree, venv: Path) -> None:
    said = "Cuda compilation tools, release 11.8, V11.8.89"
    nvcc = toolkit(tree.root / "bin-only", f"#!/bin/sh\necho '{said}'\n")
    assert read(tree, venv, PATH=str(nvcc.parent)).nvcc_version == "11.8"


def test_an_nvcc_that_hangs_is_there_with_its_version_unread(tree: Tree, venv: Path) -> None:
    nvcc = toolkit(tree.root / "slow", "#!/bin/sh\nexec sleep 60\n")
    libraries = read(tree, venv, PATH=str(nvcc.parent))
    assert (libraries.nvcc_path, libraries.nvcc_version) == (str(nvcc), None)
    assert "does not tell its version" in str(libraries.unread["nvcc_version"])


def test_cuda_home_that_is_not_there_hides_the_nvcc_on_path(tree: Tree, venv: Path) -> None:
    nvcc = toolkit(tree.root / "other")
    assert read(tree, venv, CUDA_HOME="/nowhere", PATH=str(nvcc.parent)).nvcc_path is None


def test_no_toolkit_is_no_version(tree: Tree, venv: Path) -> None:
    libraries = read(tree, venv)
    assert (libraries.nvcc_path, libraries.nvcc_version, dict(libraries.unread)) == (None, None, {})


@pytest.mark.parametrize("text", ["", "[]", '{"cuda": 3}', '{"cuda_nvcc": {}}', "{}"])
def test_a_broken_version_json_is_none(text: str) -> None:
    assert parse_version_json(text) is None


def test_nvccs_own_words_are_read() -> None:
    assert (
        parse_nvcc("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n")
        == "13.0"
    )
    assert parse_nvcc("Segmentation fault") is None


def test_what_compiles_here_is_named_and_nothing_else(tree: Tree, venv: Path, site: Site) -> None:
    assert read(tree, venv).compiles_extensions == ()
    site.dist("deepspeed", "0.12.2")
    work = Site(tree.root / "project")
    work.file("setup.py", "from torch.utils.cpp_extension import BuildExtension, CUDAExtension\n")
    assert read(tree, venv, cwd=work.path).compiles_extensions == ("deepspeed", "setup.py")
    work.file("setup.py", "from setuptools import setup\nsetup()\n")
    assert read(tree, venv, cwd=work.path).compiles_extensions == ("deepspeed",)


def test_the_compilers_version_is_what_its_name_leads_to(tree: Tree, venv: Path) -> None:
    tools = Site(tree.root / "tools")
    tools.file("x86_64-linux-gnu-gcc-12")
    (tools.path / "gcc").symlink_to("x86_64-linux-gnu-gcc-12")
    assert read(tree, venv, PATH=str(tools.path)).compiler_version == "12"
    assert read(tree, venv).compiler_version is None


# ------------------------------------------------------------------------------------------------- compiled
# packages
@pytest.mark.parametrize(
    ("version", "url", "torch", "cuda", "abi"),
    [
        ("2.8.0.post2+cu12torch2.6cxx11abiTRUE", "", "2.6", "12", True),
        (
            "2.5.7",
            "https://x/flash_attn-2.5.7%2Bcu122torch2.2cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
            "2.2",
            "12.2",
            False,
        ),
        ("2.5.7", "flash_attn-2.5.7+cu122torch2.2cxx11abiFALSE-cp310", "2.2", "12.2", False),
        ("2.1.2+pt21cu121", "", "2.1", "12.1", None),
        ("2.1.2+pt20cpu", "", "2.0", None, None),
        ("0.21.0+cu124", "", None, "12.4", None),
        ("2.8.2", "", None, None, None),
    ],
)
def test_a_local_tag_tells_what_a_wheel_was_built_for(
    version: str, url: str, torch: str | None, cuda: str | None, abi: bool | None
) -> None:
    found = from_tag("flash-attn", version, url)
    assert (found.torch, found.cuda, found.cxx11_abi) == (torch, cuda, abi)


def test_digits_become_a_version() -> None:
    assert [dotted(text) for text in ("124", "12", "130")] == ["12.4", "12", "13.0"]


def extension(tree: Tree, venv: Path, name: str) -> dict[str, object]:
    reading = packages_probe(tree.context(python=venv))
    assert reading.value is not None
    found = reading.value.extension(name)
    assert found is not None
    return {
        field: getattr(found, field) for field in found.__struct_fields__ if getattr(found, field) is not None
    }


def test_a_librarys_own_symbols_outweigh_its_tag(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("flash_attn", "2.8.2+cu12torch2.6cxx11abiTRUE")
    write_elf(
        site.path / "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so",
        needed=["libcudart.so.12", "libc10.so"],
        symbols=[TORCH_CHECK + OLD_STRING],
        needs=["GLIBC_2.14", "GLIBC_2.32", "GLIBCXX_3.4.22"],
    )
    assert extension(tree, venv, "flash-attn") == {
        "distribution": "flash-attn", "torch": "2.6", "cuda": "12", "cxx11_abi": False, "needs_glibc": "2.32", "needs_glibcxx": "3.4.22",
    }  # fmt: skip


def test_xformers_note_is_finer_than_what_it_links(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("xformers", "0.0.28.post3")
    site.file(
        "xformers/cpp_lib.json",
        '{"version": {"cuda": 1204, "hip": null, "torch": "2.5.1+cu124", "python": "3.10"}}',
    )
    write_elf(site.path / "xformers/_C.so", needed=["libcudart.so.12"], symbols=[TORCH_CHECK + NEW_STRING])
    found = extension(tree, venv, "xformers")
    assert (found["torch"], found["cuda"], found["cxx11_abi"]) == ("2.5", "12.4", True)


def test_bitsandbytes_builds_are_its_file_names(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("bitsandbytes", "0.45.0")
    for name in ("cuda118", "cuda121", "cuda121_nocublaslt", "cpu"):
        site.file(f"bitsandbytes/libbitsandbytes_{name}.so")
    assert extension(tree, venv, "bitsandbytes")["cuda_builds"] == ("118", "121")


def test_a_bitsandbytes_without_any_build_says_none_not_unknown(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("bitsandbytes", "0.45.4.dev0")
    site.file("bitsandbytes/__init__.py")
    assert extension(tree, venv, "bitsandbytes")["cuda_builds"] == ()


def test_the_cpu_onnxruntime_over_the_gpu_one_is_told(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("onnxruntime", "1.23.2")
    site.dist("onnxruntime-gpu", "1.23.2")
    site.file(
        "onnxruntime/capi/build_and_package_info.py", "package_name = 'onnxruntime'\n__version__ = '1.23.2'\n"
    )
    assert extension(tree, venv, "onnxruntime-gpu")["loads_package"] == "onnxruntime"


def test_onnxruntimes_cuda_is_in_its_note(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("onnxruntime-gpu", "1.26.0")
    note = "package_name = 'onnxruntime-gpu'\n__version__ = '1.26.0'\ncuda_version = '12.8'\n"
    site.file("onnxruntime/capi/build_and_package_info.py", note)
    assert extension(tree, venv, "onnxruntime-gpu")["cuda"] == "12.8"


@pytest.mark.parametrize(
    ("version", "expected"), [("2.1", "2.1"), ("0.0", None)], ids=["prebuilt", "built at first use"]
)
def test_deepspeed_says_what_it_was_compiled_with(
    tree: Tree, venv: Path, site: Site, version: str, expected: str | None
) -> None:
    site.dist("deepspeed", "0.12.2")
    note = f"version='0.12.2'\ntorch_info={{'version': '{version}', 'bf16_support': True, 'cuda_version': '{version}'}}\n"
    site.file("deepspeed/git_version_info_installed.py", note)
    assert extension(tree, venv, "deepspeed").get("torch") == expected


@pytest.mark.parametrize("note", ["", "[]", '{"version": []}', '{"version": {"cuda": "x", "torch": 3}}'])
def test_a_broken_note_tells_nothing(tree: Tree, venv: Path, site: Site, note: str) -> None:
    site.dist("xformers", "0.0.28")
    site.file("xformers/cpp_lib.json", note)
    assert extension(tree, venv, "xformers") == {"distribution": "xformers"}


def test_pure_packages_are_no_extensions(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("peft", "0.17.0")
    reading = packages_probe(tree.context(python=venv))
    assert reading.value is not None
    assert reading.value.extensions == ()
    assert read_extensions(reading.value.items) == ()


def test_only_the_copy_that_is_imported_counts(tmp_path: Path) -> None:
    first, second = Site(tmp_path / "first"), Site(tmp_path / "second")
    for site, build in ((first, "118"), (second, "124")):
        site.dist("bitsandbytes", "0.45.0")
        site.file(f"bitsandbytes/libbitsandbytes_cuda{build}.so")
    from doctor.probes.dist_info import read_distribution

    items = [read_distribution(str(site.path), "bitsandbytes-0.45.0.dist-info") for site in (first, second)]
    assert [item.cuda_builds for item in read_extensions(items)] == [("118",)]
    assert read_extension(items[1]).cuda_builds == ("124",)
