"""A snapshot in other tools' words: right, honest about what is lost, and read by the tool itself where it can be had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from doctor.machine import with_facts
from doctor.model import CondaPackage, Content, GitState, Host, IndexLine, Provenance, Torch, ok
from doctor.snapshots.formats import FORMATS, FormatError, convert
from doctor.snapshots.formats.sources import Source, source_of
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import make_wheel

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra rundoctor[train]")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MIXED = box(
    dist("torch", "2.6.0+cu124", "cp311-cp311-manylinux_2_28_x86_64"),
    dist("numpy", "2.1.0", "cp311-cp311-manylinux_2_17_x86_64"),
    dist("lib", "1.0", direct_url="https://github.com/o/lib.git"),
    dist("mine", "0.1", editable=True, direct_url="file:///home/user/mine"),
    dist("alone", "0.2", editable=True, direct_url="file:///home/user/alone"),
    dist("wheel-of-mine", "3", direct_url="https://h.example/wheel_of_mine-3-py3-none-any.whl"),
    contents=(
        content("torch", "2.6.0+cu124", "a"),
        content("lib", "1.0", "b", url="https://github.com/o/lib.git", vcs="git", commit=COMMIT, subdirectory="py"),
        content("mine", "0.1", editable=True, git=GitState(commit=COMMIT, remote="git@github.com:o/mine.git", dirty=True)),
        content("alone", "0.2", editable=True),
        content("wheel-of-mine", "3", "c", url="https://h.example/wheel_of_mine-3-py3-none-any.whl", archive_sha256="sha256:" + "d" * 64),
    ),
    torch=Torch(version="2.6.0+cu124", cuda="12.4"),
    indexes=(IndexLine(option="index-url", url="https://mirror.example/simple"),),
    variables={"PYTHONHASHSEED": "0", "HF_HOME": "/home/user/hf"},
)  # fmt: skip
PLAIN = box(
    dist("one", "1.0"), dist("two", "2.0"), contents=(content("one", "1.0", "a"), content("two", "2.0", "b"))
)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# ---------------------------------------------------------------------------------------- requirements
def test_requirements_hold_versions_indexes_commits_and_digests() -> None:
    found = convert(MIXED, "requirements")
    assert lines(found.text) == [
        "--extra-index-url https://download.pytorch.org/whl/cu124",
        f"lib @ git+https://github.com/o/lib.git@{COMMIT}#subdirectory=py",
        f"-e git+ssh://git@github.com/o/mine.git@{COMMIT}#egg=mine",
        "numpy==2.1.0",
        "torch==2.6.0+cu124",
        f"wheel-of-mine @ https://h.example/wheel_of_mine-3-py3-none-any.whl#sha256={'d' * 64}",
    ]


def test_requirements_say_what_they_lost() -> None:
    lost = " ".join(map(str, convert(MIXED, "requirements").lost))
    for words in (
        "alone runs from a source folder",
        "mine has changes since its commit",
        "without a file's digest",
        "the driver",
    ):
        assert words in lost
    assert "# alone 0.2: " in convert(MIXED, "requirements").text


def test_an_index_of_that_machine_is_a_comment_not_an_option() -> None:
    text = convert(MIXED, "requirements").text
    assert "# index used there: --index-url https://mirror.example/simple" in text
    assert not [line for line in lines(text) if "mirror.example" in line]


@pytest.mark.parametrize("line", [line for line in lines(convert(MIXED, "requirements").text) if not line.startswith("-")])  # fmt: skip
def test_each_line_is_a_requirement_to_packaging(line: str) -> None:
    assert Requirement(line).name


def pip(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_pip_takes_the_requirements(tmp_path: Path) -> None:
    make_wheel(tmp_path / "links", "one", "1.0")
    make_wheel(tmp_path / "links", "two", "2.0")
    (tmp_path / "requirements.txt").write_text(convert(PLAIN, "requirements").text)
    done = pip("install", "--dry-run", "--no-deps", "--ignore-installed", "--no-index", "--find-links", "links", "--target", "t", "-r", "requirements.txt", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0 and "Would install one-1.0 two-2.0" in done.stdout, done.stderr


# ---------------------------------------------------------------------------------------- pylock
def test_pylock_is_refused_with_everything_that_is_missing() -> None:
    with pytest.raises(FormatError) as caught:
        convert(PLAIN, "pylock")
    assert [str(one) for one in caught.value.reasons] == ["one 1.0: no address and digest", "two 2.0: no address and digest"]  # fmt: skip
    assert "snapshot resolve" in str(caught.value.text)


def resolved(url: str, digest: str) -> Content:
    return content("one", "1.0", "a", file_url=url, file_sha256=f"sha256:{digest}")


def test_a_complete_pylock_is_valid_and_names_each_file() -> None:
    from packaging.pylock import Pylock

    tomllib = pytest.importorskip("tomllib", reason="it came with Python 3.11")
    url, digest = "https://files.example/one-1.0-py3-none-any.whl", "e" * 64
    text = convert(box(dist("one", "1.0"), contents=(resolved(url, digest),)), "pylock").text
    lock = Pylock.from_dict(tomllib.loads(text))
    package = lock.packages[0]
    assert package.wheels is not None
    assert (package.name, package.wheels[0].url, dict(package.wheels[0].hashes)) == (
        "one",
        url,
        {"sha256": digest},
    )


def test_uv_installs_from_the_pylock(tmp_path: Path) -> None:
    import hashlib
    import shutil

    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("uv is not here")
    wheel = make_wheel(tmp_path / "links", "one", "1.0")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    item = Source(name="one", version="1.0", kind="index", sha256=digest, file_url=wheel.as_uri())
    from doctor.snapshots.formats.pylock import as_toml, lock_tree

    (tmp_path / "pylock.toml").write_text(as_toml(lock_tree(PLAIN, [item])))
    done = subprocess.run([uv, "pip", "install", "--dry-run", "--target", "t", "-r", "pylock.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0 and "one==1.0" in done.stderr, done.stderr


# ---------------------------------------------------------------------------------------- conda
def test_conda_gets_its_own_packages_by_build_and_pips_beside() -> None:
    condas = (
        CondaPackage(name="python", version="3.11.7", build="h1_0", channel="https://conda.anaconda.org/conda-forge/linux-64"),
        CondaPackage(name="numpy", version="2.1.0", build="py311_0", channel="https://conda.anaconda.org/conda-forge/linux-64"),
        CondaPackage(name="evil\n  - x", version="1", build="0"),
    )  # fmt: skip
    machine = box(dist("numpy", "2.1.0", from_conda=True), dist("torch", "2.6.0+cu124"), conda=condas)
    tree = yaml.safe_load(convert(machine, "conda").text)
    assert tree["channels"] == ["https://conda.anaconda.org/conda-forge"]
    assert tree["dependencies"] == ["python=3.11.7=h1_0", "numpy=2.1.0=py311_0", {"pip": ["--extra-index-url https://download.pytorch.org/whl/cu124", "torch==2.6.0+cu124"]}]  # fmt: skip
    assert "prefix" not in tree and "name" not in tree


def test_an_environment_without_conda_still_names_its_python() -> None:
    tree = yaml.safe_load(convert(PLAIN, "conda").text)
    assert (
        tree["dependencies"][:2] == ["python=3.11", "pip"]
        and {"pip": ["one==1.0", "two==2.0"]} in tree["dependencies"]
    )


def test_a_conda_built_package_is_never_called_pypis() -> None:
    found = source_of(dist("numpy", "2.1.0", from_conda=True, direct_url="file:///croot/numpy/work"), None)
    assert found.requirement == "numpy==2.1.0" and "built by conda" in str(found.problem)


# ---------------------------------------------------------------------------------------- images
def test_the_dockerfile_builds_on_an_image_with_that_python_and_a_new_enough_c_library() -> None:
    text = convert(box(dist("torch", "2.6.0+cu124", "cp311-cp311-manylinux_2_28_x86_64"), host=Host(glibc="2.36")), "dockerfile").text  # fmt: skip
    assert "ARG BASE=python:3.11-slim-bookworm" in text and "torch==2.6.0+cu124" in text
    assert "nvidia-driver" not in text


def test_a_dockerfile_that_compiles_for_cuda_builds_on_the_toolkit() -> None:
    text = convert(MIXED, "dockerfile").text
    assert "ARG BASE=nvidia/cuda:12.4.1-devel-ubuntu22.04" in text and 'ENV PYTHONHASHSEED="0"' in text
    assert "/home/user/hf" not in text


def test_the_c_library_decides_where_no_image_is_as_new_as_that_machine() -> None:
    newer = box(dist("one", "1", "cp311-cp311-manylinux_2_28_x86_64"), host=Host(glibc="2.99"))
    assert "trixie" in convert(newer, "dockerfile").text
    with pytest.raises(FormatError, match=r"glibc 2\.99"):
        convert(box(dist("one", "1", "cp311-cp311-manylinux_2_99_x86_64")), "dockerfile")


def test_the_apptainer_definition_has_its_sections() -> None:
    found = convert(MIXED, "apptainer")
    text = found.text
    assert (
        text.startswith("Bootstrap: docker\nFrom: nvidia/cuda:12.4.1")
        and "\n%post\n" in text
        and "\n%environment\n" in text
    )
    assert any("--nv" in str(one) for one in found.lost)
    post = text.partition("%post\n")[2].partition("%environment")[0]
    done = subprocess.run(["sh", "-n"], input=post, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------------------- the others
def test_the_sbom_is_read_by_cyclonedx_itself() -> None:
    pytest.importorskip("cyclonedx", reason="the extra rundoctor[sbom] is not installed")
    bom = pytest.importorskip("cyclonedx.model.bom")
    schema, validation = (
        pytest.importorskip("cyclonedx.schema"),
        pytest.importorskip("cyclonedx.validation.json"),
    )
    text = convert(PLAIN, "cyclonedx").text
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_5).validate_str(text) is None
    assert sorted(one.name for one in bom.Bom.from_json(json.loads(text)).components) == ["one", "two"]


def test_without_the_library_an_sbom_is_refused_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx.model", None)
    with pytest.raises(FormatError, match=r"rundoctor\[sbom\]"):
        convert(PLAIN, "cyclonedx")


def test_markdown_names_machine_packages_and_code() -> None:
    text = convert(box(dist("one", "1.0"), git=GitState(commit=COMMIT, remote="https://h/r.git", dirty=False)), "markdown").text  # fmt: skip
    assert "| one | 1.0 |" in text and COMMIT in text and "| Python | 3.11.7 |" in text


def test_the_patch_comes_out_as_it_went_in() -> None:
    machine = box(
        git=GitState(commit=COMMIT, dirty=True, patch="diff --git a/x b/x\r\n+a\n", untracked_count=2)
    )
    found = convert(machine, "patch")
    assert found.text == "diff --git a/x b/x\r\n+a\n" and "2" in str(found.lost[0])


@pytest.mark.parametrize("form", ["requirements", "conda", "dockerfile", "apptainer", "markdown"])
def test_a_snapshot_without_packages_gives_no_nonsense(form: str) -> None:
    empty = with_facts(box(), provenance=ok(Provenance()))
    try:
        text = convert(empty, form).text
    except FormatError as error:
        assert str(error.text)
    else:
        assert "None" not in text


# ---------------------------------------------------------------------------------------- hostile files
EVIL = [
    "x\n--index-url=https://evil.example", "--index-url=https://evil.example", "-r /etc/passwd", "a b", "a;b", "../../etc", "$(id)", "`id`",
    "x\r\nRUN id", "END_OF_REQUIREMENTS", "a" * 500, "\u2028x", "x'", 'x"', "",
]  # fmt: skip


@pytest.mark.parametrize("form", [one for one in FORMATS if one not in ("pylock", "patch", "cyclonedx")])
@pytest.mark.parametrize("evil", EVIL, ids=[repr(one)[:30] for one in EVIL])
def test_a_strangers_words_become_no_line_of_their_own(form: str, evil: str) -> None:
    hostile = box(
        dist(evil, "1.0"), dist("good", evil), dist("url", "1", direct_url=evil), dist("url2", "1", direct_url=f"https://h/{evil}"), dist("fine", "1.0"),
        contents=(
            content("url", "1", url=evil), content("vcs", "1", vcs="git", url=f"https://h/{evil}", commit=evil),
            content("ed", "1", editable=True, git=GitState(commit=COMMIT, remote=evil)),
        ),
        indexes=(IndexLine(option=evil, url=f"http://x{evil}"),), conda=(CondaPackage(name=evil, version="1", build="0", channel=evil),),
        variables={"PYTHONHASHSEED": evil, evil: "1"}, torch=Torch(version=evil, cuda="12.4"),
    )  # fmt: skip
    text = convert(hostile, form).text
    for line in text.splitlines():
        words = line.lstrip(" -").strip('"')
        assert not words.startswith(("--index-url=https://evil", "-r /etc", "RUN id")), line
    acted_on = [line for line in lines(text) if not line.lstrip().startswith(("#", "|", "Code", "Data"))]
    as_a_path = (
        f"url2 @ https://h/{evil}"  # what stands behind the host of an address is a path and nothing else
    )
    for line in acted_on:
        words = line.replace(as_a_path, "")
        assert not any(one in words for one in ("$(id)", "`id`", "evil.example")) or form == "markdown", line


@pytest.mark.parametrize("version", ["1.0\n", "1.0 ; x", "1.0 --hash=sha256:0", "latest", "１.0"])
def test_a_version_that_is_none_is_left_out_and_named(version: str) -> None:
    found = source_of(dist("lib", version), None)
    assert found.kind == "none" and found.problem is not None


@pytest.mark.parametrize(
    "url",
    ["https://h/a b", "https://h/x#egg=y", "https://h/../../x", "file:///etc/passwd", "https://u:p@h/***/x", "ext::sh -c id", "https://h/x\n-e y"],
)  # fmt: skip
def test_an_address_that_is_not_plain_is_written_nowhere(url: str) -> None:
    found = source_of(dist("lib", "1.0"), content("lib", "1.0", "a", vcs="git", url=url, commit=COMMIT))
    assert found.kind == "none" or url not in found.requirement
