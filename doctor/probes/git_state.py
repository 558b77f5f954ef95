"""One git working tree: commit, remote, what differs from the commit as a patch that applies, and untracked names.

git is asked so that nothing of the tree's or the user's configuration runs or changes the answer (no external diff, no
textconv, no hook, no file-system monitor), with a time limit and a cap on what it may say.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from doctor.model import GitState, Text, t
from doctor.probes.bounded import is_there
from doctor.redact_secrets import without_secrets
from runner.strings import printable

PATCH_LIMIT_BYTES = 1 << 20
UNTRACKED_SHOWN = 200
DEADLINE_S = 3.0
_STATUS_LIMIT_BYTES = 4 << 20
_QUIET = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true", "-c", "diff.noprefix=false",
    "-c", "diff.mnemonicPrefix=false", "-c", "core.pager=cat", "-c", "color.ui=never", "--no-optional-locks",
)  # fmt: skip
_PATCH = (
    "diff", "HEAD", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short",
    "--src-prefix=a/", "--dst-prefix=b/", "--no-renames",
)  # fmt: skip


def read_git(folder: Path, environ: Mapping[str, str], deadline_s: float = DEADLINE_S) -> GitState | None:
    """Return the state of the working tree that ``folder`` lies in; None where it lies in none."""
    git = _Git(folder, environ, deadline_s)
    try:
        root = git("rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n")
    except GitError as error:
        above = _marked_above(folder)
        return GitState(root=printable(str(above)), why=error.text) if above else None
    try:
        return _read(git, root)
    except GitError as error:
        return GitState(root=printable(root), why=error.text)


def _marked_above(folder: Path) -> Path | None:
    """Return the nearest folder with a ``.git``: there is a working tree although git does not say so."""
    return next((path for path in (folder, *folder.parents) if is_there(path / ".git")), None)


def _read(git: _Git, root: str) -> GitState:
    status = git(
        "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal", limit=_STATUS_LIMIT_BYTES
    )
    state = parse_status(status)
    state = msgspec.structs.replace(state, root=printable(root), remote=_remote(git, state.branch))
    return _with_patch(git, state) if state.dirty and state.commit else state


def parse_status(raw: bytes) -> GitState:
    """Return commit, branch, dirtiness and untracked names out of ``git status --porcelain=v2 -z --branch``."""
    commit, branch, dirty, untracked = None, "", False, []
    for row in raw.split(b"\0"):
        text = row.decode("utf-8", "surrogateescape")
        if text.startswith("# branch.oid ") and not text.endswith("(initial)"):
            commit = text.removeprefix("# branch.oid ").strip()
        elif text.startswith("# branch.head "):
            branch = printable(text.removeprefix("# branch.head ").strip())
        elif text.startswith("? "):
            untracked.append(printable(text[2:]))
        elif text[:2] in ("1 ", "2 ", "u "):
            dirty = True
    return GitState(
        commit=commit,
        branch=branch,
        dirty=dirty,
        untracked=tuple(untracked[:UNTRACKED_SHOWN]),
        untracked_count=len(untracked),
    )


def _remote(git: _Git, branch: str) -> str | None:
    """Return where the branch comes from: its own remote, else origin."""
    pairs = git.optional_pairs("config", "-z", "--get-regexp", r"^(branch\..*\.remote|remote\..*\.url)$")
    for name in (pairs.get(f"branch.{branch}.remote", "origin"), "origin"):
        if url := pairs.get(f"remote.{name}.url"):
            return clean_remote(printable(url))
    return None


def clean_remote(url: str) -> str:
    """``https://user:pw@host/o/r?x`` -> ``https://host/o/r``; ``me@host:o/r.git`` -> ``host:o/r.git``; git@ stays."""
    if "://" in url:
        return without_secrets(url)
    user, at, rest = url.partition("@")
    return url if not at or user == "git" or "/" in user else without_secrets(rest)


def _with_patch(git: _Git, state: GitState) -> GitState:
    try:
        patch = git(*_PATCH, limit=PATCH_LIMIT_BYTES)
    except GitError as error:
        return msgspec.structs.replace(state, patch_why=error.text)
    try:
        text, is_base64 = patch.decode("utf-8"), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(patch).decode("ascii"), True
    return msgspec.structs.replace(
        state, patch=text, patch_is_base64=is_base64, patch_bytes=len(patch),
        patch_sha256=f"sha256:{hashlib.sha256(patch).hexdigest()}",
        patch_why=None if patch else t("the difference is in a submodule, a file mode or a line end: no patch holds it"),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------- asking git
class GitError(Exception):
    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class _Git:
    """git in one folder, bounded in time and in what it may say."""

    def __init__(self, folder: Path, environ: Mapping[str, str], deadline_s: float) -> None:
        self._folder, self._deadline_s = folder, deadline_s
        kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self._environ = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def optional_pairs(self, *words: str) -> dict[str, str]:
        """Return what ``git config -z`` answers, name -> the last value, which counts; nothing where git has none."""
        try:
            rows = self(*words).decode("utf-8", "surrogateescape").split("\0")
        except GitError:
            return {}
        split = (row.partition("\n") for row in rows if row)
        return {name: value.strip() for name, _, value in split}

    def __call__(self, *words: str, limit: int = 1 << 16) -> bytes:
        """Return what git prints. Raises GitError: it is not there, refuses, hangs, or says more than ``limit``."""
        try:
            process = subprocess.Popen(
                ["git", *_QUIET, *words], cwd=self._folder, env=self._environ, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise GitError(t("git could not be asked: {error}", error=error.strerror or str(error))) from None
        return self._answer(process, words[0], limit)

    def _answer(self, process: subprocess.Popen[bytes], verb: str, limit: int) -> bytes:
        timer = threading.Timer(self._deadline_s, process.kill)
        timer.start()
        said: list[bytes] = []
        listener = threading.Thread(
            target=lambda: said.append(process.stderr.read(4096) if process.stderr else b"")
        )
        listener.daemon = True
        listener.start()
        try:
            assert process.stdout is not None
            answer = process.stdout.read(limit + 1)
        finally:
            late = not timer.is_alive()
            timer.cancel()
            if process.poll() is None and (late or len(answer) > limit):
                process.kill()
        code = process.wait()
        listener.join(0.5)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if len(answer) > limit:
            raise GitError(t("git {verb} says more than {limit} KB: left out", verb=verb, limit=limit >> 10))
        if late:
            raise GitError(
                t("git {verb} took longer than {seconds} s", verb=verb, seconds=round(self._deadline_s, 1))
            )
        if code != 0:
            reason = b"".join(said).decode("utf-8", "replace").strip().partition("\n")[0]
            raise GitError(
                t("git {verb}: {error}", verb=verb, error=printable(without_secrets(reason)) or str(code))
            )
        return answer
