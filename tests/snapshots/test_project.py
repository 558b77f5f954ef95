"""The code of a snapshot again: its changes made in a clean tree of its commit, and nothing that a stranger's patch may want."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import msgspec
import pytest

from doctor.model import GitState
from doctor.probes.git_state import read_git
from doctor.restore_project import check_project, restore_project
from doctor.snapshots.project_patch import LIMIT_BYTES, refusal
from doctor.snapshots.restore_plan import RestoreError
from tests.snapshots.boxes import box


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A tree with a text, a binary file and a folder, all changed since the commit, and one file git does not know."""
    tree = tmp_path / "there"
    (tree / "sub").mkdir(parents=True)
    git(tree, "init", "-q")
    (tree / "train.py").write_text("lr = 1\nsteps = 2\n")
    (tree / "sub/数据.txt").write_bytes("旧\r\n".encode("gbk"))
    (tree / "weights.bin").write_bytes(bytes(range(256)))
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    (tree / "train.py").write_text("lr = 3\nsteps = 2\n")
    (tree / "sub/数据.txt").write_bytes("新\r\n".encode("gbk"))
    (tree / "weights.bin").write_bytes(bytes(reversed(range(256))))
    (tree / "notes.txt").write_text("mine")
    return tree


def clone(tree: Path, name: str = "here") -> Path:
    git(tree.parent, "clone", "-q", str(tree), name)
    return tree.parent / name


def state_of(tree: Path) -> GitState:
    state = read_git(tree, {"PATH": "/usr/bin:/bin"}, 30.0)
    assert state is not None and state.patch
    return state


def test_the_changes_come_back_byte_for_byte(changed: Path) -> None:
    here = clone(changed)
    done = restore_project(box(git=state_of(changed)), here)
    assert done.patched and done.same_patch is True
    assert (done.missing, done.missing_count) == (("notes.txt",), 1)
    for name in ("train.py", "sub/数据.txt", "weights.bin"):
        assert (here / name).read_bytes() == (changed / name).read_bytes()


def test_a_folder_below_the_root_of_the_tree_will_do(changed: Path) -> None:
    here = clone(changed)
    assert restore_project(box(git=state_of(changed)), here / "sub").same_patch is True
    assert (here / "train.py").read_bytes() == (changed / "train.py").read_bytes()


def test_another_commit_is_refused_and_says_which_to_check_out(changed: Path) -> None:
    here = clone(changed)
    git(here, "commit", "-q", "--allow-empty", "-m", "two")
    with pytest.raises(RestoreError, match=rf"checkout {git(changed, 'rev-parse', 'HEAD')}"):
        restore_project(box(git=state_of(changed)), here)


def test_changes_of_ones_own_are_never_mixed_with(changed: Path) -> None:
    here = clone(changed)
    (here / "train.py").write_text("mine\n")
    with pytest.raises(RestoreError, match="changes of its own"):
        check_project(box(git=state_of(changed)), here)
    assert (here / "train.py").read_text() == "mine\n"


def test_a_folder_without_git_says_how_to_get_the_code(tmp_path: Path) -> None:
    state = GitState(commit="a" * 40, remote="https://h.example/o/r.git", dirty=False)
    with pytest.raises(RestoreError, match=r"git clone https://h\.example/o/r\.git"):
        check_project(box(git=state), tmp_path)


def test_a_patch_that_does_not_fit_changes_nothing(changed: Path) -> None:
    here = clone(changed)
    state = state_of(changed)
    wrong = msgspec.structs.replace(state, patch=(state.patch or "").replace("-lr = 1", "-lr = 9"))
    if wrong.patch_is_base64:
        raw = base64.b64decode(state.patch or "").replace(b"-lr = 1", b"-lr = 9")
        wrong = msgspec.structs.replace(state, patch=base64.b64encode(raw).decode())
    with pytest.raises(RestoreError, match="nothing was changed"):
        restore_project(box(git=wrong), here)
    assert git(here, "status", "--porcelain") == ""


def test_hooks_and_settings_of_the_tree_do_not_run(changed: Path) -> None:
    here = clone(changed)
    ran = here.parent / "ran"
    git(here, "config", "core.fsmonitor", f"touch {ran}")
    for hook in ("post-applypatch", "pre-applypatch", "post-index-change", "post-checkout"):
        (here / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (here / ".git/hooks" / hook).chmod(0o755)
    restore_project(box(git=state_of(changed)), here)
    assert not ran.exists()


# ---------------------------------------------------------------------------------------- hostile
def patch(path: str, content: str = "+x\n", head: str = "new file mode 100644\n") -> str:
    return f"diff --git a/{path} b/{path}\n{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n{content}"


HOSTILE = {
    "above the tree": patch("../outside"),
    "above the tree, further in": patch("a/../../outside"),
    "an absolute path": patch("/tmp/outside").replace("a//", "/").replace("b//", "/"),
    "git's hooks": patch(".git/hooks/pre-commit"),
    "git's folder in other letters": patch(".GIT/config"),
    "git's folder of a part": patch("sub/.git/config"),
    "a quoted path with octal dots": 'diff --git "a/\\056\\056/x" "b/\\056\\056/x"\n--- /dev/null\n+++ "b/\\056\\056/x"\n@@ -0,0 +1 @@\n+x\n',
    "a rename out of the tree": "diff --git a/train.py b/train.py\nsimilarity index 100%\nrename from train.py\nrename to ../outside\n",
    "a copy out of the tree": "diff --git a/train.py b/train.py\nsimilarity index 100%\ncopy from train.py\ncopy to ../outside\n",
    "a header after a hunk": patch("fine.txt") + "--- /dev/null\n+++ b/../outside\n@@ -0,0 +1 @@\n+x\n",
    "a link": patch("link", "+/etc\n\\ No newline at end of file\n", "new file mode 120000\n"),
    "a file that becomes a link": "diff --git a/train.py b/train.py\nold mode 100644\nnew mode 120000\n",
    "a submodule": patch("lib", "+Subproject commit " + "a" * 40 + "\n", "new file mode 160000\n"),
    "another submodule's address": patch(".gitmodules"),
    "backslashes": patch("..\\outside"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_patch_that_wants_more_than_its_tree_is_refused(what: str, changed: Path) -> None:
    here = clone(changed)
    assert refusal(HOSTILE[what].encode()) is not None
    state = msgspec.structs.replace(state_of(changed), patch=HOSTILE[what], patch_is_base64=False)
    with pytest.raises(RestoreError):
        restore_project(box(git=state), here)
    assert git(here, "status", "--porcelain") == "" and not (here.parent / "outside").exists()


@pytest.mark.parametrize(
    "content",
    ["+--- a note\n", "+the path ../data stays\n", "+diff --git is a word\n", "+new file mode 120000\n"],
)
def test_ordinary_content_is_not_taken_for_a_header(content: str) -> None:
    assert refusal(patch("fine.txt", content).encode()) is None


def test_a_patch_beyond_the_cap_is_not_applied() -> None:
    assert "larger than" in str(refusal(b"x" * (LIMIT_BYTES + 1)))


def test_a_patch_that_cannot_be_read_is_refused_not_forgotten(changed: Path) -> None:
    broken = msgspec.structs.replace(state_of(changed), patch="%%%", patch_is_base64=True)
    with pytest.raises(RestoreError, match="no base64"):
        restore_project(box(git=broken), clone(changed))
