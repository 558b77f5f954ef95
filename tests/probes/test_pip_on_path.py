"""Whose ``pip`` the session's is: by the first line of its script, however pip, pyenv or a long path wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.probes.pip_on_path import interpreter_of
from doctor.probes.python import probe
from tests.probes.trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def pip(folder: Path, first: str, name: str = "pip") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"{first}\nimport sys\nfrom pip._internal.cli.main import main\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("first", "python"),
    [
        pytest.param("#!/root/miniconda3/bin/python", "/root/miniconda3/bin/python", id="conda"),
        pytest.param("#!/usr/bin/python3.10 ", "/usr/bin/python3.10", id="a blank at the end"),
        pytest.param("#!/bin/sh\n'''exec' \"/a b/bin/python\" \"$0\" \"$@\"\n' '''", "/a b/bin/python", id="a path with blanks"),
        pytest.param("#!/bin/sh\n'''exec' /long/bin/python3 \"$0\" \"$@\"\n' '''", "/long/bin/python3", id="a long path"),
        pytest.param("#!/usr/bin/env python3", None, id="whatever is first on PATH"),
        pytest.param("#!/bin/bash\nexec something", None, id="another script"),
        pytest.param("\x7fELF", None, id="a program"),
    ],
)  # fmt: skip
def test_the_script_names_its_interpreter(tmp_path: Path, first: str, python: str | None) -> None:
    found = interpreter_of(pip(tmp_path, first))
    assert (str(found) if found else None) == python


def is_of_judged(tree: Tree, venv: Path, *path: Path) -> bool | None:
    context = tree.context(VIRTUAL_ENV=str(venv), PATH=":".join(map(str, path)))
    python = probe(context).value
    assert python is not None
    return python.pip_command.is_of_judged if python.pip_command else None


def test_a_pip_of_the_environment_is_its_own_and_the_bases_is_not(tree: Tree) -> None:
    base = tree.base()
    venv = tree.venv("venv", base)
    pip(venv / "bin", f"#!{venv}/bin/python3")
    pip(base.parent, f"#!{base}")
    assert is_of_judged(tree, venv, venv / "bin", base.parent) is True
    assert is_of_judged(tree, venv, base.parent) is False
    assert is_of_judged(tree, venv) is None


def test_one_installation_under_two_names_is_one(tree: Tree) -> None:
    base = tree.base()
    elsewhere = tree.root / "usr/local/bin"
    elsewhere.mkdir(parents=True)
    (elsewhere / "python3").symlink_to(base)
    pip(elsewhere, f"#!{elsewhere}/python3")
    context = tree.context(PATH=f"{elsewhere}:{base.parent}")
    python = probe(context).value
    assert python is not None and python.pip_command is not None
    assert python.pip_command.is_of_judged


def test_a_pip_whose_python_is_gone_tells_nothing(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    pip(tree.root / "old", "#!/nowhere/bin/python")
    assert is_of_judged(tree, venv, tree.root / "old") is None


def test_the_shim_of_pyenv_is_looked_through(tree: Tree) -> None:
    version = tree.root / ".pyenv/versions/3.11.7"
    base = tree.base(".pyenv/versions/3.11.7")
    pip(version / "bin", f"#!{base}")
    pip(tree.root / ".pyenv/shims", "#!/usr/bin/env bash\nexec pyenv exec pip")
    (tree.root / ".pyenv/version").write_text("3.11.7\n")
    venv = tree.venv("venv", base)
    assert is_of_judged(tree, venv, tree.root / ".pyenv/shims") is False
