"""A working tree: its commit, a remote without credentials, a patch that really applies, untracked names."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.probes import git_state
from doctor.probes.git_state import clean_remote, parse_status, read_git

Git = Callable[..., bytes]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """git in ``tmp_path/code``, with one commit, away from the developer's own configuration."""
    code = tmp_path / "code"
    code.mkdir()
    (tmp_path / "home").mkdir()

    def run(*words: str, cwd: Path = code, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=cwd, env=environ(tmp_path), capture_output=True,
            input=stdin, check=True,
        )  # fmt: skip
        return done.stdout

    run("init", "-q", "-b", "main")
    (code / "train.py").write_text("lr = 1\n")
    (code / "logo.bin").write_bytes(bytes(range(256)))
    run("add", ".")
    run("commit", "-q", "-m", "first")
    return run


def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}


def test_a_clean_tree_has_a_commit_and_no_patch(git: Git, tmp_path: Path) -> None:
    state = read_git(tmp_path / "code", environ(tmp_path))
    assert state is not None
    assert state.commit == git("rev-parse", "HEAD").decode().strip() and state.branch == "main"
    assert (state.dirty, state.patch, state.untracked, state.why) == (False, None, (), None)


def test_the_patch_brings_text_and_binary_changes_back(git: Git, tmp_path: Path) -> None:
    code, clone = tmp_path / "code", tmp_path / "clone"
    git("clone", "-q", str(code), str(clone), cwd=tmp_path)
    (code / "train.py").write_text("lr = 2\n")
    (code / "logo.bin").write_bytes(bytes(reversed(range(256))))
    (code / "new.py").write_text("x = 1\n")
    git("add", "new.py")
    state = read_git(code, environ(tmp_path))
    assert state is not None and state.dirty is True and state.patch is not None
    git("apply", "-", cwd=clone, stdin=state.patch.encode())
    for name in ("train.py", "logo.bin", "new.py"):
        assert (clone / name).read_bytes() == (code / name).read_bytes(), name


@pytest.mark.parametrize(
    ("option", "value"),
    [("diff.noprefix", "true"), ("color.ui", "always"), ("diff.external", "/bin/false"), ("diff.mnemonicPrefix", "true")],
)  # fmt: skip
def test_a_users_configuration_does_not_break_the_patch(
    git: Git, tmp_path: Path, option: str, value: str
) -> None:
    code, clone = tmp_path / "code", tmp_path / "clone"
    git("clone", "-q", str(code), str(clone), cwd=tmp_path)
    git("config", "--global", option, value)
    (code / "train.py").write_text("lr = 3\n")
    state = read_git(code, environ(tmp_path))
    assert state is not None and state.patch is not None
    git("apply", "-", cwd=clone, stdin=state.patch.encode())
    assert (clone / "train.py").read_text() == "lr = 3\n"


def test_a_file_system_monitor_of_the_tree_is_not_run(git: Git, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = tmp_path / "monitor.sh"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    git("config", "core.fsmonitor", str(hook))
    (tmp_path / "code" / "train.py").write_text("lr = 4\n")
    assert read_git(tmp_path / "code", environ(tmp_path)) is not None
    assert not ran.exists()


def test_text_that_is_not_utf8_is_kept_whole(git: Git, tmp_path: Path) -> None:
    (tmp_path / "code" / "train.py").write_bytes("名 = 1\n".encode("gbk"))
    state = read_git(tmp_path / "code", environ(tmp_path))
    assert state is not None and state.patch is not None and state.patch_is_base64
    assert "名".encode("gbk") in base64.b64decode(state.patch)


def test_untracked_files_are_named_and_not_read(git: Git, tmp_path: Path) -> None:
    (tmp_path / "code" / "notes.txt").write_text("secret words")
    state = read_git(tmp_path / "code", environ(tmp_path))
    assert state is not None and state.untracked == ("notes.txt",) and state.untracked_count == 1
    assert "secret words" not in str(state)


def test_a_patch_beyond_the_cap_is_left_out_and_said(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_state, "PATCH_LIMIT_BYTES", 2048)
    (tmp_path / "code" / "train.py").write_text("x = 1\n" * 5000)
    state = read_git(tmp_path / "code", environ(tmp_path))
    assert state is not None and state.dirty is True and state.patch is None
    assert "more than 2 KB" in str(state.patch_why)


def test_a_git_that_hangs_is_left_and_said(git: Git, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin/git").chmod(0o755)
    slow = {**environ(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    before = os.environ["PATH"]
    os.environ["PATH"] = slow["PATH"]
    try:
        state = read_git(tmp_path / "code", slow, deadline_s=0.3)
    finally:
        os.environ["PATH"] = before
    assert state is not None and "took longer than" in str(state.why)


def test_outside_of_any_tree_there_is_none(tmp_path: Path) -> None:
    assert read_git(tmp_path, {**environ(tmp_path), "GIT_CEILING_DIRECTORIES": "/"}) is None


def test_a_tree_without_a_commit_says_so(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "new")], check=True, env=environ(tmp_path))
    (tmp_path / "new/a.py").write_text("x")
    state = read_git(tmp_path / "new", environ(tmp_path))
    assert state is not None and state.commit is None and state.untracked == ("a.py",)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9@github.com/o/r.git", "https://github.com/o/r.git"),
        ("https://ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9@github.com/o/r.git", "https://github.com/o/r.git"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git"),
        ("wang@git.corp.example:team/r.git", "git.corp.example:team/r.git"),
        ("https://h/r.git?private_token=abc123", "https://h/r.git"),
    ],
)
def test_a_remote_loses_who(url: str, expected: str) -> None:
    assert clean_remote(url) == expected


def test_status_is_read_with_odd_names() -> None:
    raw = b"# branch.oid (initial)\0# branch.head main\x001 .M N... 100644 100644 100644 a b x y\0? a\xff b\0"
    state = parse_status(raw)
    assert (state.commit, state.dirty, state.untracked) == (None, True, ("a\\xff b",))
