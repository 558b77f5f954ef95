"""Which interpreter is judged, what its files say of it, and where it imports from: on fake trees and on real
Pythons."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.probes import Context
from doctor.probes.interpreter import find_library, from_binary, parse_pyvenv, read_layout
from doctor.probes.packages import probe as probe_packages
from doctor.probes.python import conda_env, probe
from doctor.probes.search_path import parse_pth
from doctor.probes.target import BadPython, find_target, is_tool_environment
from doctor.probes.torch import probe as probe_torch
from tests.probes.trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# ------------------------------------------------------------------------------------------------- choosing
def test_the_option_beats_every_variable(tree: Tree) -> None:
    base = tree.base()
    asked, active = tree.venv("asked", base), tree.venv("active", base)
    target = find_target(tree.context(python=asked, VIRTUAL_ENV=str(active)))
    assert (target.executable, target.chosen_by) == (asked / "bin/python", "--python")


def test_an_active_venv_beats_conda_beats_path(tree: Tree) -> None:
    base = tree.base()
    venv, conda = tree.venv("venv", base), tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    variables = {"CONDA_PREFIX": str(conda), "PATH": str(base.parent)}
    both = find_target(tree.context(None, None, VIRTUAL_ENV=str(venv), **variables))
    assert (both.prefix, both.chosen_by, both.kind) == (venv, "VIRTUAL_ENV", "venv")
    only_conda = find_target(tree.context(None, None, **variables))
    assert (only_conda.prefix, only_conda.chosen_by, only_conda.kind) == (conda, "CONDA_PREFIX", "conda")
    neither = find_target(tree.context(PATH=str(base.parent)))
    assert (neither.executable, neither.chosen_by) == (base.parent / "python", "PATH")


def test_a_deleted_venv_that_is_still_named_is_passed_over(tree: Tree) -> None:
    base = tree.base()
    target = find_target(tree.context(VIRTUAL_ENV=str(tree.root / "gone"), PATH=str(base.parent)))
    assert target.executable == base.parent / "python"


def test_python3_is_taken_where_there_is_no_python(tree: Tree) -> None:
    base = tree.base()
    (base.parent / "python").unlink()
    assert find_target(tree.context(PATH=str(base.parent))).executable == base.parent / "python3"


def test_an_old_systems_python_2_is_passed_over_for_its_python3(tree: Tree) -> None:
    old = Tree(tree.root, "2.7", "2.7.18").base("old")
    base = tree.base("usr")
    path = f"{old.parent}:{base.parent}"
    (old.parent / "python3").unlink()
    (base.parent / "python").unlink()
    assert find_target(tree.context(PATH=path)).executable == base.parent / "python3"
    assert find_target(tree.context(PATH=str(old.parent))).version == "2.7.18"


@pytest.mark.parametrize("marker", ["uv-receipt.toml", "pipx_metadata.json"])
def test_our_own_tool_environment_is_not_judged_while_there_is_another(tree: Tree, marker: str) -> None:
    base = tree.base()
    tool = tree.venv("tools/rundoctor", base)
    (tool / marker).touch()
    path = f"{tool}/bin:{base.parent}"
    assert find_target(tree.context(PATH=path), own_prefix=str(tool)).executable == base.parent / "python"


def test_our_own_tool_environment_is_judged_when_it_is_the_only_one(tree: Tree) -> None:
    tool = tree.venv("tools/rundoctor", tree.base())
    (tool / "uv-receipt.toml").touch()
    target = find_target(tree.context(PATH=f"{tool}/bin"), own_prefix=str(tool))
    assert (target.prefix, target.chosen_by) == (tool, "ours")


def test_another_tools_environment_on_path_is_judged(tree: Tree) -> None:
    tool = tree.venv("tools/other", tree.base())
    (tool / "uv-receipt.toml").touch()
    assert find_target(tree.context(PATH=f"{tool}/bin"), own_prefix="/elsewhere").prefix == tool


def test_an_environment_in_uvs_cache_is_a_tools() -> None:
    assert is_tool_environment(Path("/root/.cache/uv/archive-v0/Fq3zX"))
    assert not is_tool_environment(Path("/root/projects/archive/venv"))


def test_no_python_at_all_is_an_answer(tree: Tree) -> None:
    context = tree.context()
    context.target = find_target(context, own_prefix=str(tree.root / "nowhere"))
    reading = probe(context)
    assert reading.status == "absent"
    assert reading.why is not None
    assert "no Python" in str(reading.why)


def test_what_python_runs_here_is_kept_beside_what_is_judged(tree: Tree) -> None:
    base = tree.base()
    venv = tree.venv("venv", base)
    reading = probe(tree.context(python=venv, PATH=str(base.parent)))
    assert [(other.source, other.value) for other in reading.others] == [
        ("PATH", str(base.parent / "python"))
    ]
    same = probe(tree.context(python=venv, PATH=f"{venv}/bin"))
    assert same.others == ()


# ------------------------------------------------------------------------------------------------- pyenv
def pyenv(tree: Tree) -> Path:
    root = tree.root / "pyenv"
    for version in ("3.9.18", "3.11.7", "3.11.10"):
        Tree(tree.root, version.rsplit(".", 1)[0], version).base(f"pyenv/versions/{version}")
    shim = root / "shims/python"
    shim.parent.mkdir()
    shim.write_text('#!/usr/bin/env bash\nexec pyenv exec python "$@"\n')
    shim.chmod(0o755)
    return root


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("3.9.18", "3.9.18"), ("3.11", "3.11.10"), ("3.12.0\n3.11.7", "3.11.7")],
    ids=["exact", "newest of a minor", "first that is installed"],
)
def test_a_pyenv_shim_leads_to_the_version_that_pyenv_would_run(
    tree: Tree, setting: str, expected: str
) -> None:
    root = pyenv(tree)
    (root / "version").write_text("3.9.18\n")
    work = tree.root / "project/deep"
    work.mkdir(parents=True)
    (tree.root / "project/.python-version").write_text(setting + "\n")
    target = find_target(tree.context(cwd=work, PATH=f"{root}/shims", PYENV_ROOT=str(root)))
    assert (target.version, target.kind) == (expected, "pyenv")


def test_pyenvs_system_means_the_next_python_on_path(tree: Tree) -> None:
    root, base = pyenv(tree), tree.base()
    context = tree.context(PATH=f"{root}/shims:{base.parent}", PYENV_ROOT=str(root), PYENV_VERSION="system")
    assert find_target(context).executable == base.parent / "python"


# ------------------------------------------------------------------------------------------------- --python
def test_a_link_to_a_folder_keeps_its_own_name(tree: Tree) -> None:
    venv = tree.venv("env-a", tree.base())
    (tree.root / "current").symlink_to(venv)
    target = find_target(tree.context(python=tree.root / "current"))
    assert target.prefix == tree.root / "current"
    assert target.kind == "venv"


def test_a_relative_path_and_a_name_on_path_are_understood(tree: Tree) -> None:
    base = tree.base()
    tree.venv("work/.venv", base)
    assert find_target(tree.context(python=".venv")).kind == "venv"
    named = find_target(tree.context(python="python3.11", PATH=str(base.parent)))
    assert named.executable == base


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nowhere", "no such command"),
        ("./nowhere", "no such file or folder"),
        ("empty", "no bin/python in this folder"),
        ("notes.txt", "not an executable file"),
        ("script", "not a Python interpreter"),
        ("pipe", "not an executable file"),
    ],
)
def test_a_wrong_python_option_is_a_sentence_that_names_it(tree: Tree, given: str, says: str) -> None:
    context = tree.context(python=given)
    (context.cwd / "empty").mkdir()
    (context.cwd / "notes.txt").write_text("hello")
    (context.cwd / "script").write_text("#!/bin/sh\nexit 3\n")
    (context.cwd / "script").chmod(0o755)
    os.mkfifo(context.cwd / "pipe")
    with pytest.raises(BadPython) as caught:
        find_target(context)
    assert says in str(caught.value.text)
    assert given in str(caught.value.text)


def test_a_wrapper_that_never_returns_is_given_up(tree: Tree) -> None:
    context = tree.context(python="./slow")
    (context.cwd / "slow").write_text("#!/bin/sh\nexec sleep 60\n")
    (context.cwd / "slow").chmod(0o755)
    with pytest.raises(BadPython):
        find_target(context)


# ------------------------------------------------------------------------------------------------- versions
# and kinds
def test_the_base_installation_tells_the_version_not_a_stale_pyvenv(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base(), {"version": "3.11.2"})
    assert read_layout(venv / "bin/python").version == "3.11.7"


def test_without_header_the_binary_tells_the_version(tree: Tree) -> None:
    base = tree.base(header=False)
    assert from_binary(base, base.parent.parent, "3.11") == "3.11.7"
    assert read_layout(base).version == "3.11.7"


def test_conda_records_the_version(tree: Tree) -> None:
    base = tree.base("conda", header=False)
    base.write_bytes(b"")
    (tree.root / "conda/conda-meta").mkdir()
    (tree.root / "conda/conda-meta/python-3.11.9-h955ad1f_0.json").touch()
    assert read_layout(base).version == "3.11.9"


@pytest.mark.parametrize(("minor", "tail"), [("3.6", "m"), ("3.7", "m"), ("3.13", "t")])
def test_binaries_with_a_tail_are_understood(tmp_path: Path, minor: str, tail: str) -> None:
    tree = Tree(tmp_path, minor, f"{minor}.1")
    prefix = tree.base(tail=tail).parent.parent
    if tail == "m":  # the library folder of 3.6 and 3.7 has no tail
        (prefix / f"lib/python{minor}m").rename(prefix / f"lib/python{minor}")
    layout = read_layout(prefix / "bin/python")
    assert layout.version == f"{minor}.1"
    assert layout.library_name == (f"python{minor}t" if tail == "t" else f"python{minor}")


def test_two_libraries_under_one_prefix_are_told_apart_by_the_binarys_name(tree: Tree) -> None:
    base = tree.base("usr")
    Tree(tree.root, "3.12", "3.12.1").base("usr2")
    shutil.copytree(tree.root / "usr2/lib/python3.12", tree.root / "usr/lib/python3.12")
    assert find_library(base)[1] == tree.root / "usr/lib/python3.11"


def test_a_venv_whose_base_is_gone_is_described_with_its_packages(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    tree.site(venv).dist("numpy", "2.1.0")
    shutil.rmtree(tree.root / "opt")
    target = find_target(tree.context(VIRTUAL_ENV=str(venv)))
    assert target.version == "3.11.7"
    assert target.site_packages == (tree.site(venv).path,)
    reading = probe(tree.context(VIRTUAL_ENV=str(venv)))
    assert reading.value is not None
    assert "is not there" in str(reading.value.unread["executable"])


def test_a_venv_made_by_uv_says_so(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base(), {"uv": "0.9.1", "version_info": "3.11.7"})
    assert read_layout(venv / "bin/python").kind == "uv"


def test_pyvenv_settings_are_read_with_and_without_spaces() -> None:
    assert parse_pyvenv("home = /usr/bin\nVersion=3.11.7\n\nnonsense\n") == {
        "home": "/usr/bin",
        "version": "3.11.7",
    }


def test_a_conda_environment_has_the_name_that_conda_shows() -> None:
    assert conda_env(Path("/opt/conda/envs/nlp"), {}) == "nlp"
    active = {"CONDA_PREFIX": "/data/e", "CONDA_DEFAULT_ENV": "/data/e"}
    assert conda_env(Path("/data/e"), active) == "/data/e"


def test_the_conda_installation_itself_is_base(tmp_path: Path) -> None:
    (tmp_path / "condabin").mkdir()
    assert conda_env(tmp_path, {}) == "base"


def test_an_externally_managed_base_is_told_and_its_venv_is_not(tree: Tree) -> None:
    base = tree.base()
    (base.parent.parent / "lib/python3.11/EXTERNALLY-MANAGED").touch()
    reading = probe(tree.context(python=base))
    assert reading.value is not None
    assert reading.value.externally_managed is True
    inside = probe(tree.context(python=tree.venv("venv", base)))
    assert inside.value is not None
    assert inside.value.externally_managed is False


# ------------------------------------------------------------------------------------------------- the import
# path
def test_pth_files_give_their_folders_and_their_code_is_never_run(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    site, marker = tree.site(venv), tree.root / "ran"
    (tree.root / "source").mkdir()
    site.file(
        "a.pth", f"# comment\n{tree.root}/source\nmissing\nimport pathlib; pathlib.Path('{marker}').touch()\n"
    )
    target = find_target(tree.context(python=venv))
    assert target.site_packages == (site.path, tree.root / "source")
    assert not marker.exists()


@pytest.mark.parametrize(
    "text", ["\0\n", "x" * 5000, "\udcff\n", ""], ids=["nul", "too long a name", "bad byte", "empty"]
)
def test_a_pth_with_nonsense_adds_nothing(text: str, tmp_path: Path) -> None:
    assert parse_pth(text, tmp_path) in ([], [tmp_path])


def test_the_users_site_comes_before_conda_but_never_into_a_venv(tree: Tree) -> None:
    conda = tree.base("conda").parent.parent
    (conda / "conda-meta").mkdir()
    user = tree.root / "home/.local/lib/python3.11/site-packages"
    user.mkdir(parents=True)
    target = find_target(tree.context(python=conda))
    assert target.site_packages == (user, tree.site(conda).path)
    assert target.search is not None
    assert target.search.user_site_before_env is True
    switched_off = find_target(tree.context(python=conda, PYTHONNOUSERSITE="1"))
    assert switched_off.site_packages == (tree.site(conda).path,)
    venv = find_target(tree.context(python=tree.venv("venv", conda / "bin/python3.11")))
    assert user not in venv.site_packages
    assert venv.search is not None
    assert venv.search.user_site_enabled is False


def test_a_venv_with_system_packages_has_its_own_first(tree: Tree) -> None:
    base = tree.base()
    venv = tree.venv("venv", base, {"include-system-site-packages": "true"})
    user = tree.root / "home/.local/lib/python3.11/site-packages"
    user.mkdir(parents=True)
    expected = (tree.site(venv).path, user, tree.site(base.parent.parent).path)
    assert find_target(tree.context(python=venv)).site_packages == expected


def test_pythonpath_comes_first_and_its_empty_entry_is_the_working_directory(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    context = tree.context(python=venv, PYTHONPATH=f"{tree.root}/none::")
    assert find_target(context).site_packages == (context.cwd, tree.site(venv).path)


def test_debians_folders_are_in_debians_order(tree: Tree) -> None:
    base = tree.base("usr", debian=True)
    local = tree.root / "usr/local/lib/python3.11/dist-packages"
    local.mkdir(parents=True)
    assert find_target(tree.context(python=base)).site_packages == (
        local,
        tree.root / "usr/lib/python3/dist-packages",
    )


def test_lib64_as_a_link_is_not_a_second_folder(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    assert find_target(tree.context(python=venv)).site_packages == (tree.site(venv).path,)


# ------------------------------------------------------------------------------------------------- against
# the truth
_PRINT = (
    "import json, site, sys; print(json.dumps({'version': '%d.%d.%d' % sys.version_info[:3], 'prefix': sys.prefix,"
    " 'path': [p for p in sys.path if 'packages' in p or 'added' in p], 'user': site.ENABLE_USER_SITE}))"
)
_REAL = [
    Path(sys.executable),
    Path("/usr/bin/python3"),
    *sorted(Path.home().glob(".pyenv/versions/*/bin/python3")),
]


def _truth(executable: Path, environ: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(
        [executable, "-c", _PRINT], env=environ, capture_output=True, check=True, cwd="/", timeout=60
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def _compare(executable: Path, environ: dict[str, str]) -> None:
    truth = _truth(executable, environ)
    target = find_target(Context(environ=environ, cwd=Path("/"), python=str(executable)))
    ours = [str(path) for path in target.site_packages if "packages" in str(path) or "added" in str(path)]
    seen: dict[str, str] = {}
    for path in truth["path"]:  # type: ignore[attr-defined]
        if Path(path).is_dir():
            seen.setdefault(os.path.realpath(path), path)
    assert (target.version, str(target.prefix), ours) == (
        truth["version"],
        truth["prefix"],
        list(seen.values()),
    )
    assert target.search is not None
    assert target.search.user_site_enabled == truth["user"]


@pytest.mark.parametrize("executable", _REAL, ids=str)
@pytest.mark.parametrize("variables", [{}, {"PYTHONNOUSERSITE": "1"}], ids=["plain", "no user site"])
def test_a_real_interpreter_says_the_same_of_itself(
    executable: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    if not executable.exists():
        pytest.skip(f"{executable} is not on this machine")
    if executable.parts[1] == "usr" and not executable.resolve().name.startswith("python3"):
        pytest.skip("a wrapper")
    minor = ".".join(read_layout(executable).version.split(".")[:2])
    (tmp_path / f".local/lib/python{minor}/site-packages").mkdir(parents=True)
    _compare(executable, {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **variables})


@pytest.mark.parametrize(
    "options", [[], ["--system-site-packages"], ["--copies"]], ids=["plain", "system packages", "copies"]
)
def test_a_real_venv_says_the_same_of_itself(options: list[str], tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", *options, tmp_path / "env"], check=True, timeout=120
    )
    (tmp_path / "added").mkdir()
    site = next((tmp_path / "env/lib").glob("python3*/site-packages"))
    (site / "extra.pth").write_text(f"{tmp_path}/added\n")
    _compare(tmp_path / "env/bin/python", {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})


def test_a_venv_whose_link_is_dead_cannot_run_though_its_home_is_there(tree: Tree) -> None:
    venv = tree.venv("venv", tree.base())
    for link in (venv / "bin").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to("/gone/python3.11")
    layout = read_layout(venv / "bin/python")
    assert "/gone/python3.11, which is not there" in str(layout.problem)
    assert layout.version == "3.11.7"


# ------------------------------------------------------------------------- something called python that is none
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"#!/bin/sh\nexit 3\n", id="it fails"),
        pytest.param(b"#!/bin/sh\nsleep 100\n", id="it hangs"),
        pytest.param(b"#!/bin/sh\necho hello; echo you\n", id="it prints something else"),
        pytest.param(b"\x7fELF and then nothing", id="it is no program"),
    ],
)
def test_a_python_that_tells_nothing_is_not_an_environment_without_packages(tree: Tree, body: bytes) -> None:
    venv = tree.venv("venv", tree.root / "nowhere")
    for folder in (venv / "lib/python3.11/site-packages", venv / "lib/python3.11"):
        folder.rmdir()
    (venv / "pyvenv.cfg").unlink()
    (venv / "bin/python").unlink()
    (venv / "bin/python").write_bytes(body)
    (venv / "bin/python").chmod(0o755)
    context = tree.context(VIRTUAL_ENV=str(venv))
    for ask in (probe, probe_torch, probe_packages):
        reading = ask(context)
        assert reading.status == "failed"
        assert "does not answer as a Python does" in str(reading.why)


@pytest.mark.parametrize("kind", ["folder", "fifo", "not executable"])
def test_a_python_that_nobody_can_execute_is_named_as_such(tree: Tree, kind: str) -> None:
    venv = tree.venv("venv", tree.base())
    path = venv / "bin/python"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"#!/bin/sh\n")
    assert "no file that this user may execute" in str(read_layout(path).problem)
    reading = probe(tree.context(VIRTUAL_ENV=str(venv)))
    assert reading.value is not None
    assert "executable" in reading.value.unread


# ----------------------------------------------------------------------------------------------- wrappers, PyPy
def test_a_wrapper_that_calls_a_python_of_pyenvs_is_no_shim(tree: Tree) -> None:
    root = pyenv(tree)
    (root / "version").write_text("3.9.18\n")
    wrapper = tree.root / "train-python"
    wrapper.write_text(f'#!/bin/sh\n# {tree.root}/.pyenv/versions\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    target = find_target(tree.context(python=wrapper, PYENV_ROOT=str(root)))
    assert target.version.split(".")[:2] == [str(part) for part in sys.version_info[:2]]


def test_pypys_packages_lie_in_a_folder_of_its_own_name(tree: Tree) -> None:
    base, venv = tree.root / "opt/pypy", tree.root / "venv"
    for folder in (base / "bin", base / "lib/pypy3.10", base / "lib/python3.11", venv / "bin"):
        folder.mkdir(parents=True)
    for library in ("pypy3.10", "python3.11"):
        (base / "lib" / library / "os.py").touch()
    binary = base / "bin/pypy3.10"
    binary.write_bytes(b"\x7fELF")
    binary.chmod(0o755)
    (venv / "bin/python").symlink_to(binary)
    (venv / "pyvenv.cfg").write_text(
        f"home = {base}/bin\nimplementation = PyPy\nversion_info = 3.10.14.final.0\n"
    )
    for expected in (base / "lib/pypy3.10", None):
        layout = read_layout(venv / "bin/python")
        assert (layout.library, layout.library_name, layout.version) == (expected, "pypy3.10", "3.10.14")
        shutil.rmtree(base / "lib/pypy3.10", ignore_errors=True)
