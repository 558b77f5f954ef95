"""What in the working directory acts on the environment: requirement lines, files that hide a module."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.model import Project
from doctor.probes import project
from doctor.probes.target import Target
from tests.probes.roots import context_of, write_tree


def look(root: Path, environ: dict[str, str] | None = None) -> Project:
    site = root / "site"
    (site / "torch").mkdir(parents=True, exist_ok=True)
    (site / "transformers").mkdir(exist_ok=True)
    target = Target(executable=None, site_packages=(site,))
    reading = project.probe(context_of(root, environ, cwd="/work", target=target))
    assert reading.status == "ok" and reading.value is not None
    return reading.value


def test_requirement_lines_of_both_kinds_of_file(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "/work/requirements.txt": "# stack\ntorch==2.6.0  # pinned\n--index-url https://u:p@x/simple\n-r more.txt\n\nnumpy \\\n  <2\n",
            "/work/requirements-dev.txt": "pytest>=8 --hash=sha256:00\n",
            "/work/pyproject.toml": '[project]\ndependencies = ["transformers>=4.40", "accelerate"]\n',
            "/work/notes.txt": "torch==1.0\n",
        },
    )
    found = look(tmp_path)
    assert [(item.file, item.line) for item in found.requirements] == [
        ("pyproject.toml", "transformers>=4.40"),
        ("pyproject.toml", "accelerate"),
        ("requirements-dev.txt", "pytest>=8"),
        ("requirements.txt", "torch==2.6.0"),
        ("requirements.txt", "numpy    <2"),
    ]
    assert found.cwd == "/work" and found.unread == {}


def test_a_token_in_a_requirement_stays_behind(tmp_path: Path) -> None:
    line = "mylib @ git+https://ghp_0123456789abcdefghij@github.com/o/r.git@main\n"
    found = look(write_tree(tmp_path, {"/work/requirements.txt": line}))
    assert found.requirements[0].line == "mylib @ git+https://github.com/o/r.git@main"


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        pytest.param("pyproject.toml", b"[project\n", "broken", id="not TOML"),
        pytest.param(
            "pyproject.toml", b'[project]\ndependencies = "torch"\n', "list of strings", id="not a list"
        ),
        pytest.param("requirements.txt", b"torch # \xb5\xc2\n", "UTF-8", id="GBK"),
        pytest.param("requirements.txt", None, "not a regular file", id="a FIFO"),
    ],
)
def test_a_broken_file_is_named_and_the_others_still_read(
    tmp_path: Path, name: str, content: bytes | None, word: str
) -> None:
    write_tree(tmp_path, {"/work/requirements-ok.txt": "numpy\n"})
    if content is None:
        os.mkfifo(tmp_path / "work" / name)
    else:
        (tmp_path / "work" / name).write_bytes(content)
    found = look(tmp_path)
    assert word in str(found.unread[name])
    assert [item.line for item in found.requirements] == ["numpy"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(["torch.py"], ("torch.py",), id="a script named torch.py"),
        pytest.param(["random.py"], ("random.py",), id="a standard module"),
        pytest.param(["transformers/__init__.py"], ("transformers",), id="a package"),
        pytest.param(["transformers/notes.txt"], (), id="a folder that is no package hides nothing"),
        pytest.param(["datasets.py"], (), id="datasets is not installed there"),
        pytest.param(
            ["train.py", "utils.py", "test.py", "torch.txt", "os.py"], (), id="names that harm nobody"
        ),
    ],
)
def test_files_that_hide_a_module(tmp_path: Path, files: list[str], expected: tuple[str, ...]) -> None:
    found = look(write_tree(tmp_path, {f"/work/{name}": "" for name in files}))
    assert found.shadowing_files == expected


def test_a_safe_path_hides_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, {"/work/torch.py": ""})
    assert look(tmp_path, {"PYTHONSAFEPATH": "1"}).shadowing_files == ()


def test_the_checkout_that_is_installed_does_not_hide_itself(tmp_path: Path) -> None:
    write_tree(tmp_path, {"/work/transformers/__init__.py": ""})
    target = Target(executable=None, site_packages=(tmp_path / "work",))
    found = project.probe(context_of(tmp_path, target=target)).value
    assert found is not None and found.shadowing_files == ()


def test_a_working_directory_that_is_gone_is_failed(tmp_path: Path) -> None:
    reading = project.probe(context_of(tmp_path, cwd="/gone"))
    assert reading.status == "failed" and "/gone" in str(reading.why)


def test_a_huge_folder_is_looked_at_in_part_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "_ENTRIES_LIMIT", 3)
    found = look(write_tree(tmp_path, {f"/work/{number}": "" for number in range(5)}))
    assert set(found.unread) == {"requirements", "shadowing_files"}
