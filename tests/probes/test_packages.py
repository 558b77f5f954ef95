"""What is installed: every copy, what its installer left, and what is broken about it. No input may hang or
raise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.model import Distribution, Packages
from doctor.probes.dist_info import (
    critical_paths,
    name_and_version,
    normalise,
    parse_direct_url,
    parse_headers,
    parse_requires_txt,
    read_distribution,
)
from doctor.probes.packages import probe
from tests.probes.trees import Site, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def venv(tree: Tree) -> Path:
    return tree.venv("venv", tree.base())


@pytest.fixture
def site(tree: Tree, venv: Path) -> Site:
    return tree.site(venv)


def read(tree: Tree, python: Path, **environ: str) -> Packages:
    reading = probe(tree.context(python=python, cwd=None, **environ))
    assert reading.status == "ok", reading.why
    assert reading.value is not None
    return reading.value


# ------------------------------------------------------------------------------------------------- parsing
@pytest.mark.parametrize(
    ("raw", "expected"),
    [("Flash_Attn", "flash-attn"), ("ruamel.yaml", "ruamel-yaml"), ("a-_.b", "a-b")],
)
def test_names_are_normalised(raw: str, expected: str) -> None:
    assert normalise(raw) == expected


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("nvidia_nccl_cu13-2.30.7.dist-info", ("nvidia-nccl-cu13", "2.30.7")),
        ("torch-2.13.0+cpu.dist-info", ("torch", "2.13.0+cpu")),
        ("PyYAML-5.4.1-py3.9.egg-info", ("pyyaml", "5.4.1")),
        ("mine.egg-info", ("mine", "")),
    ],
)
def test_a_folder_name_tells_name_and_version(folder: str, expected: tuple[str, str]) -> None:
    assert name_and_version(folder) == expected


def test_headers_end_at_the_empty_line_and_folded_lines_are_joined() -> None:
    raw = b'Name: a\r\nRequires-Dist: b>=1;\r\n python_version < "3.9"\r\nRequires-Dist: c\r\n\r\nRequires-Dist: not this\r\n'
    assert parse_headers(raw) == {"Name": ["a"], "Requires-Dist": ['b>=1; python_version < "3.9"', "c"]}


def test_a_password_in_direct_url_is_not_kept() -> None:
    text = '{"url": "https://user:secret@host.example/w/a-1.0-py3-none-any.whl?token=x#sha256=1", "archive_info": {}}'
    assert parse_direct_url(text) == ("https://host.example/w/a-1.0-py3-none-any.whl", False)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"url": 3}', '{"dir_info": {}}', '{"url": "file:///x", "dir_info": 1}', "{"]
)
def test_a_broken_direct_url_is_none(text: str) -> None:
    assert parse_direct_url(text) == (None, False)


def test_setuptools_requirements_keep_their_markers_and_lose_their_extras() -> None:
    text = 'numpy>=1.20\n\n[dev]\npytest\n\n[:python_version < "3.8"]\ntyping-extensions\n\n[gpu:sys_platform == "linux"]\ncupy\n'
    assert parse_requires_txt(text) == ["numpy>=1.20", 'typing-extensions ; python_version < "3.8"']


def test_only_files_that_an_import_hangs_on_are_looked_for() -> None:
    record = (
        b"\ntorch/__init__.py,sha256=a,1\ntorch/_C.cpython-311-x86_64-linux-gnu.so,,\ntorch/lib/libc10.so,,\n"
        b"torch/nn/__init__.py,,\ntorch/include/c10/x.h,,\ntorch/lib/sub/libx.so,,\n"
    )
    found = critical_paths(record, "torch")
    assert found == [
        b"torch/__init__.py",
        b"torch/lib/libc10.so",
        b"torch/_C.cpython-311-x86_64-linux-gnu.so",
    ]
    assert critical_paths(b"\nnvidia/cudnn/lib/libcudnn.so.9,,\n", "nvidia-cudnn-cu12") == [
        b"nvidia/cudnn/lib/libcudnn.so.9"
    ]


# ------------------------------------------------------------------------------------------------- one
# distribution
def test_everything_that_the_installer_left_is_read(tree: Tree, venv: Path, site: Site) -> None:
    site.dist(
        "Flash_Attn",
        "2.8.2",
        requires=["torch", 'einops ; extra == "x"'],
        tags=["cp311-cp311-linux_x86_64", "cp311-abi3-linux_x86_64"],
        installer="uv",
        direct_url={"url": "file:///src/flash", "dir_info": {"editable": True}},
        requested=True,
    )
    item = read(tree, venv).get("flash-attn")
    assert item is not None
    assert item.requires_dist == ("torch", 'einops ; extra == "x"')
    assert item.wheel_tags == ("cp311-cp311-linux_x86_64", "cp311-abi3-linux_x86_64")
    assert (item.installer, item.requested, item.editable, item.direct_url) == (
        "uv",
        True,
        True,
        "file:///src/flash",
    )
    assert (item.location, item.metadata_error, item.missing_files) == (str(site.path), "", ())


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [(b"", "no Name"), (b"Version: 1\n\n", "no Name"), (b"\xff\xfe\x00", "no Name")],
    ids=["empty", "no name", "binary"],
)
def test_metadata_without_a_name_is_known_by_its_folder_and_says_so(
    tree: Tree, venv: Path, site: Site, metadata: bytes, problem: str
) -> None:
    site.dist("broken", "1.0", metadata=metadata)
    item = read(tree, venv).get("broken")
    assert item is not None
    assert problem in item.metadata_error
    assert item.requires_dist is None


def test_a_dist_info_without_metadata_is_half_an_install(tree: Tree, venv: Path, site: Site) -> None:
    (site.dist("torch", "2.6.0") / "METADATA").unlink()
    item = read(tree, venv).get("torch")
    assert item is not None
    assert (item.version, item.metadata_error) == ("2.6.0", "METADATA: No such file or directory")


def test_undecodable_metadata_keeps_what_is_readable(tree: Tree, venv: Path, site: Site) -> None:
    gbk = "作者".encode("gbk")
    site.dist(
        "legacy",
        "1.0",
        metadata=b"Name: legacy\nVersion: 1.0\nAuthor: " + gbk + b"\nRequires-Dist: \xb0x\n\n",
    )
    item = read(tree, venv).get("legacy")
    assert item is not None
    assert item.metadata_error == ""
    assert item.requires_dist == ("\\xb0x",)


def test_a_hundred_megabytes_of_readme_cost_nothing(tree: Tree, venv: Path, site: Site) -> None:
    folder = site.dist("big", "1.0", requires=["numpy"])
    with open(folder / "METADATA", "ab") as file:
        file.truncate(100 << 20)
    item = read(tree, venv).get("big")
    assert item is not None
    assert item.requires_dist == ("numpy",)


def test_headers_that_never_end_are_cut(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("endless", "1.0", metadata=b"Name: endless\nVersion: 1.0\n" + b"Requires-Dist: x\n" * 300_000)
    item = read(tree, venv).get("endless")
    assert item is not None
    assert item.requires_dist is not None
    assert len(item.requires_dist) == 2000


def test_a_fifo_a_link_loop_and_a_folder_in_metadatas_place_do_not_hang(
    tree: Tree, venv: Path, site: Site
) -> None:
    for name in ("fifo", "loop", "folder"):
        (site.dist(name, "1.0") / "METADATA").unlink()
    os.mkfifo(site.path / "fifo-1.0.dist-info/METADATA")
    (site.path / "loop-1.0.dist-info/METADATA").symlink_to("METADATA")
    (site.path / "folder-1.0.dist-info/METADATA").mkdir()
    (site.path / "round-1.0.dist-info").symlink_to("round-1.0.dist-info")
    packages = read(tree, venv)
    errors = {item.name: item.metadata_error for item in packages.items}
    assert sorted(errors) == ["fifo", "folder", "loop", "round"]
    assert all(errors.values())


def test_names_with_escapes_are_made_safe(tree: Tree, venv: Path, site: Site) -> None:
    site.dist("evil", "1.0", metadata=b"Name: evil\x1b[31m\nVersion: 1.0\x07\n\n")
    names = [(item.name, item.version) for item in read(tree, venv).items]
    assert names == [("evil\\x1b[31m", "1.0\\x07")]


def test_a_debian_egg_info_file_is_a_distribution(tmp_path: Path) -> None:
    (tmp_path / "six-1.16.0.egg-info").write_text("Name: six\nVersion: 1.16.0\n")
    item = read_distribution(str(tmp_path), "six-1.16.0.egg-info")
    assert (item.name, item.version, item.metadata_error, item.requested) == ("six", "1.16.0", "", None)


def test_an_egg_info_folder_has_its_requirements_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "old-1.0-py3.9.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Name: old\nVersion: 1.0\n")
    (folder / "requires.txt").write_text("numpy<2\n")
    assert read_distribution(str(tmp_path), folder.name).requires_dist == ("numpy<2",)


# ------------------------------------------------------------------------------------------------- all of
# them
def test_second_copies_are_kept_in_import_order(tree: Tree) -> None:
    conda = tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    user = Site(tree.root / "home/.local/lib/python3.11/site-packages")
    user.path.mkdir(parents=True)
    user.dist("torch", "2.1.0")
    tree.site(conda).dist("torch", "2.6.0")
    copies = [(item.version, item.location) for item in read(tree, conda).items if item.name == "torch"]
    assert copies == [("2.1.0", str(user.path)), ("2.6.0", str(tree.site(conda).path))]


def test_an_editable_projects_own_egg_info_is_no_second_copy(tree: Tree, venv: Path, site: Site) -> None:
    source = Site(tree.root / "source")
    (source.path / "mine.egg-info").mkdir(parents=True)
    source.file("mine.egg-info/PKG-INFO", "Name: mine\nVersion: 0.1\n")
    site.file("__editable__.mine-0.1.pth", f"{source.path}\n")
    site.dist("mine", "0.1", direct_url={"url": f"file://{source.path}", "dir_info": {"editable": True}})
    assert [(item.name, item.editable) for item in read(tree, venv).items] == [("mine", True)]


def test_leftovers_of_interrupted_installs_are_no_distributions(tree: Tree, venv: Path, site: Site) -> None:
    (site.path / "~orch-2.1.0.dist-info").mkdir()
    (site.path / "~orch").mkdir()
    packages = read(tree, venv)
    assert packages.items == ()
    assert packages.leftovers == (f"{site.path}/~orch", f"{site.path}/~orch-2.1.0.dist-info")


def test_a_torch_folder_that_is_no_package_is_what_was_left_of_torch(
    tree: Tree, venv: Path, site: Site
) -> None:
    """`import torch` takes it for a namespace package: AttributeError: module 'torch' has no attribute 'Tensor'."""
    site.file("torch/lib/libtorch.so", "")
    assert read(tree, venv).leftovers == (f"{site.path}/torch",)


def test_a_torch_that_is_there_leaves_nothing_over(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()
    assert read(tree, venv).leftovers == ()


def test_a_lost_library_of_torchs_family_is_named(tree: Tree, venv: Path, site: Site) -> None:
    site.torch()
    (site.path / "torch/lib/libtorch_cuda.so").unlink()
    site.dist("nvidia-cudnn-cu12", "9.1.0.70", record=["nvidia/cudnn/lib/libcudnn.so.9"])
    site.dist("numpy", "2.1.0", record=["numpy/_core/lost.so"])
    missing = {item.name: item.missing_files for item in read(tree, venv).items}
    assert missing["torch"] == ("torch/lib/libtorch_cuda.so",)
    assert missing["nvidia-cudnn-cu12"] == ("nvidia/cudnn/lib/libcudnn.so.9",)
    assert missing["numpy"] == ()


def test_conda_and_pip_are_told_apart(tree: Tree) -> None:
    conda = tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    for record in ("numpy-1.26.4-py311h64a7726_0.json", "scipy-1.11.0-py311h_0.json", "oldstyle-2.0-0.json"):
        (conda / "conda-meta" / record).touch()
    site = tree.site(conda)
    site.dist("numpy", "1.26.4", installer="conda")
    site.dist("scipy", "1.14.0", installer="pip")
    site.dist("oldstyle", "2.0", installer=None)
    told = {item.name: item.from_conda for item in read(tree, conda).items}
    assert told == {"numpy": True, "scipy": False, "oldstyle": True}


def test_a_folder_that_cannot_be_listed_makes_the_list_incomplete(
    tree: Tree, venv: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.dist("numpy", "2.1.0")
    extra = tree.root / "extra"
    extra.mkdir()
    real = os.listdir

    def denied(path: str | Path) -> list[str]:
        if str(path) == str(extra):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "listdir", denied)
    packages = read(tree, venv, PYTHONPATH=str(extra))
    assert packages.is_missing("torch") is None
    assert packages.complete is False
    assert "Permission denied" in str(packages.unread["items"])


def test_an_environment_without_site_packages_is_not_called_empty(tree: Tree, venv: Path, site: Site) -> None:
    site.path.rmdir()
    packages = read(tree, venv)
    assert packages.complete is False
    assert "no site-packages folder" in str(packages.unread["items"])


def test_thousands_of_distributions_are_all_read(tree: Tree, venv: Path, site: Site) -> None:
    for index in range(2000):
        folder = site.path / f"pkg{index}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: pkg{index}\nVersion: 1.0\n\n")
    packages = read(tree, venv)
    assert len({item.name for item in packages.items}) == 2000
    assert packages.complete


def test_the_running_environment_reads_as_importlib_reads_it() -> None:
    import importlib.metadata
    import sys

    from doctor.probes import Context

    reading = probe(Context(python=sys.executable))
    assert reading.value is not None
    ours = {item.name: item for item in reading.value.items}
    theirs = {normalise(dist.metadata["Name"]): dist for dist in importlib.metadata.distributions()}
    assert set(ours) == set(theirs)
    for name, dist in theirs.items():
        assert _same(ours[name], dist.version, tuple(dist.requires or ())), name


def _same(item: Distribution, version: str, requires: tuple[str, ...]) -> bool:
    squeezed = tuple(" ".join(line.split()) for line in requires)
    return (
        item.version == version
        and tuple(" ".join(line.split()) for line in item.requires_dist or ()) == squeezed
    )
