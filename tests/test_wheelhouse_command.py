"""``doctor wheelhouse``: against an index that is a folder, and installed again from what it made. No
network."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from doctor import __version__
from doctor.commands import main
from doctor.probes import Context
from doctor.wheelhouse import WheelhouseError, collect, requirement, why_pip_failed, write_script
from tests.probes.trees import Tree


def wheel(folder: Path, name: str, version: str, metadata: str = "") -> None:
    """Write a real, installable wheel with one module."""
    notes = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = '{version}'\n",
        f"{notes}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}",
        f"{notes}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{notes}/RECORD"] = "\n".join([*rows, f"{notes}/RECORD,,", ""])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return pip's options for an index that is a folder with a stand-in for rundoctor and what it needs."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    folder = tmp_path / "index"
    folder.mkdir()
    extras = "Provides-Extra: tui\nRequires-Dist: leaf-one>=1\nRequires-Dist: leaf-two ; extra == 'tui'\n"
    wheel(folder, "rundoctor", __version__, extras)
    wheel(folder, "leaf_one", "1.5")
    wheel(folder, "leaf_two", "2.0")
    return ["--no-index", "--find-links", str(folder)]


@pytest.fixture
def has_pip() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, timeout=60)
    if done.returncode:
        pytest.skip("the Python that runs the tests has no pip")


@pytest.mark.slow
@pytest.mark.usefixtures("has_pip")
def test_the_folder_holds_everything_and_installs_from_itself(
    tmp_path: Path, index: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    house = tmp_path / "house"
    command = [
        "wheelhouse",
        str(house),
        "--extra",
        "tui",
        "--python",
        sys.executable,
        "--lang",
        "en",
        *index,
    ]
    assert main(command) == 0
    assert "3 files" in capsys.readouterr().out
    names = sorted(path.name.split("-")[0] for path in house.glob("*.whl"))
    assert names == ["leaf_one", "leaf_two", "rundoctor"]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True, timeout=120)
    python = tmp_path / "env/bin/python"
    done = subprocess.run(
        ["sh", house / "install.sh", python], capture_output=True, text=True, timeout=120, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    code = "import rundoctor, leaf_two; print(rundoctor.version, leaf_two.version)"
    assert subprocess.check_output([python, "-c", code], text=True).split() == [__version__, "2.0"]


@pytest.mark.usefixtures("has_pip")
def test_without_extras_only_the_core_is_taken(tmp_path: Path, index: list[str]) -> None:
    made = collect(tmp_path / "house", [], Context(python=sys.executable), index)
    assert [name.split("-")[0] for name in made.files] == ["leaf_one", "rundoctor"]
    assert made.size_bytes > 0


@pytest.mark.usefixtures("has_pip")
def test_a_package_that_the_index_lacks_is_named_with_the_way_out(
    tmp_path: Path, index: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    next(Path(index[-1]).glob("leaf_one*")).unlink()
    command = [
        "wheelhouse",
        str(tmp_path / "house"),
        "--python",
        sys.executable,
        "--lang",
        "en",
        *index,
    ]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "pip finds no leaf-one>=1" in said
    assert "--index-url" in said


def test_the_script_refuses_another_python(tmp_path: Path) -> None:
    write_script(tmp_path, "rundoctor==1", "3.4")
    done = subprocess.run(
        ["sh", tmp_path / "install.sh", sys.executable], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "for Python 3.4" in done.stderr


def test_an_unknown_extra_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wheelhouse", str(tmp_path), "--extra", "gpu", "--lang", "en"]) == 2
    assert "there is no extra gpu" in capsys.readouterr().err


def test_a_python_that_is_too_old_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "3.8", "3.8.18")
    with pytest.raises(WheelhouseError, match="rundoctor needs 3"):
        collect(tmp_path / "house", [], tree.context(python=tree.base()))
    assert not (tmp_path / "house").exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(WheelhouseError, match="cannot write"):
        collect(tmp_path / "file/house", [], tree.context(python=tree.base()))


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("/usr/bin/python3: No module named pip\n", "has no pip"),
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for textual>=3.0\n",
            "finds no textual>=3.0",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "No space left",
        ),
        ("Killed\n", "Killed"),
        ("", "could not fetch"),
    ],
)
def test_pips_failures_become_sentences(tmp_path: Path, stderr: str, says: str) -> None:
    tree = Tree(tmp_path)
    target = tree.context(python=tree.base()).target
    assert says in str(why_pip_failed(stderr, target))


def test_extras_are_asked_for_once_each() -> None:
    assert requirement(["tui", "train", "tui"]) == f"rundoctor[tui,train]=={__version__}"
    assert requirement([]) == f"rundoctor=={__version__}"
