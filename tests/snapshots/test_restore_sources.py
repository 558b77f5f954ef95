"""Repositories and source folders restored for real: a git server on loopback, a package that builds without any tool."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model import GitState
from doctor.restore import restore
from doctor.restore_commands import Options
from doctor.snapshots.restore_plan import RestoreError, plan_restore
from tests.snapshots.boxes import box, content, dist

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
# A build backend in the tree itself: it wants nothing installed.
BACKEND = """
import pathlib, zipfile
INFO = "lib-1.0.dist-info"
def _write(folder, files):
    files = {**files, f"{INFO}/METADATA": "Metadata-Version: 2.1\\nName: lib\\nVersion: 1.0\\n", f"{INFO}/WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    with zipfile.ZipFile(pathlib.Path(folder) / "lib-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{INFO}/RECORD", "".join(f"{name},,\\n" for name in [*files, f"{INFO}/RECORD"]))
    return "lib-1.0-py3-none-any.whl"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    return _write(folder, {"lib.py": pathlib.Path("lib.py").read_text()})
def build_editable(folder, config_settings=None, metadata_directory=None):
    return _write(folder, {"lib.pth": str(pathlib.Path.cwd()) + "\\n"})
"""


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str]:
    """A bare repository with two commits, and the first of them."""
    source, bare = tmp_path / "source", tmp_path / "serve/lib.git"
    source.mkdir()

    def git(*words: str, cwd: Path = source) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip

    git("init", "-q")
    (source / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "lib"\nversion = "1.0"\n')  # fmt: skip
    (source / "backend.py").write_text(BACKEND)
    (source / "lib.py").write_text("x = 'the commit that was proven'\n")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD")
    (source / "lib.py").write_text("x = 'what came later'\n")
    git("commit", "-qam", "two")
    git("clone", "-q", "--bare", str(source), str(bare), cwd=tmp_path)
    git("update-server-info", cwd=bare)

    return bare, commit


@pytest.fixture
def served(repository: tuple[Path, str]) -> Iterator[tuple[str, str]]:
    """The address of a git server, and the first of two commits there."""
    bare, commit = repository
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "git",
        "daemon",
        "--export-all",
        f"--base-path={bare.parent}",
        "--listen=127.0.0.1",
        f"--port={port}",
        "--reuseaddr",
    ]
    daemon = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_for(port)
        yield f"git://127.0.0.1:{port}/lib.git", commit
    finally:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    pytest.skip("git daemon is not here")


@pytest.fixture
def plain_files(repository: tuple[Path, str]) -> Iterator[str]:
    """The address of the same repository behind a server that knows nothing of git."""
    folder = str(repository[0].parent)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=folder)  # type: ignore[arg-type]

        def log_message(self, *arguments: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/lib.git"
    server.shutdown()
    server.server_close()


def said_by(python: Path) -> str:
    return subprocess.run([str(python), "-c", "import lib; print(lib.x)"], capture_output=True, text=True, check=True, cwd="/").stdout.strip()  # fmt: skip


def quiet(line: str) -> None: ...


@pytest.mark.slow
def test_a_repository_is_installed_at_its_commit_not_at_its_newest(
    tmp_path: Path, served: tuple[str, str]
) -> None:
    url, commit = served
    snapshot = box(dist("lib", "1.0"), python=f"{HERE}.0", contents=(content("lib", "1.0", vcs="git", url=url, commit=commit),))  # fmt: skip
    python = restore(
        plan_restore(snapshot), tmp_path / "v", Path(sys.executable), Options(consents=("vcs",)), quiet
    )
    assert said_by(python) == "the commit that was proven"


@pytest.mark.slow
def test_an_editable_install_is_cloned_into_the_new_environment(
    tmp_path: Path, served: tuple[str, str]
) -> None:
    url, commit = served
    tree = GitState(commit=commit, remote=url, dirty=False)
    snapshot = box(dist("lib", "1.0", editable=True), python=f"{HERE}.0", contents=(content("lib", "1.0", editable=True, git=tree),))  # fmt: skip
    python = restore(
        plan_restore(snapshot), tmp_path / "v", Path(sys.executable), Options(consents=("vcs",)), quiet
    )
    assert said_by(python) == "the commit that was proven" and (tmp_path / "v/src/lib/lib.py").is_file()


@pytest.mark.slow
def test_plain_files_behind_a_web_server_are_refused_before_pip_clones_them(
    tmp_path: Path, plain_files: str
) -> None:
    snapshot = box(dist("lib", "1.0"), python=f"{HERE}.0", contents=(content("lib", "1.0", vcs="git", url=plain_files, commit="f" * 40),))  # fmt: skip
    said: list[str] = []
    with pytest.raises(RestoreError, match="does not answer as a git server"):
        restore(
            plan_restore(snapshot),
            tmp_path / "v",
            Path(sys.executable),
            Options(consents=("vcs",)),
            said.append,
        )
    assert not (tmp_path / "v").exists() and not [
        line for line in said if "Collecting" in line or "Cloning" in line
    ]


@pytest.mark.slow
def test_a_commit_that_is_gone_leaves_no_half_environment(tmp_path: Path, served: tuple[str, str]) -> None:
    snapshot = box(dist("lib", "1.0"), python=f"{HERE}.0", contents=(content("lib", "1.0", vcs="git", url=served[0], commit="f" * 40),))  # fmt: skip
    with pytest.raises(RestoreError, match="the phase repositories failed"):
        restore(
            plan_restore(snapshot), tmp_path / "v", Path(sys.executable), Options(consents=("vcs",)), quiet
        )
    assert not (tmp_path / "v").exists()
