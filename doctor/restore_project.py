"""The code of a snapshot in a folder again: its commit, and the changes since as a patch that was checked before it is applied.

git does it, with no hook, no file-system monitor and no setting of a stranger's; what a patch may name is checked here first.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from doctor.model import GitState, Snapshot, Text, t
from doctor.probes.git_state import read_git
from doctor.redact_secrets import without_secrets
from doctor.snapshots.project_patch import Project, patch_bytes_of, refusal
from doctor.snapshots.restore_plan import RestoreError
from runner.strings import printable

LIMIT_S = 120.0
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.symlinks=false", "-c", "core.protectNTFS=true", "-c", "apply.whitespace=nowarn")  # fmt: skip
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def check_project(snapshot: Snapshot, folder: Path) -> None:
    """Raise RestoreError unless ``folder`` is a clean working tree of the snapshot's commit, and the patch applies."""
    state = _state_of(snapshot)
    here = read_git(folder, os.environ)
    if here is None or not here.root:
        raise RestoreError(_no_tree(state, folder))
    if here.why is not None:
        raise RestoreError(here.why)
    if here.commit != state.commit:
        raise RestoreError(t("{folder} is at commit {here}, the snapshot is of {there}: `git -C {folder} checkout {there}`", folder=str(folder), here=str(here.commit)[:12], there=str(state.commit)))  # fmt: skip
    if state.patch is None:
        return
    if here.dirty:
        raise RestoreError(t("{folder} has changes of its own: commit them, or use a fresh clone, so that nothing of yours is overwritten", folder=str(folder)))  # fmt: skip
    _git(Path(here.root), ["apply", "--check", "-p1", "-"], patch_bytes_of(state))


def restore_project(snapshot: Snapshot, folder: Path) -> Project:
    """Apply the snapshot's changes to ``folder``. Raises RestoreError as :func:`check_project`, and where git refuses."""
    check_project(snapshot, folder)
    return apply_to(folder, _state_of(snapshot))


def apply_to(folder: Path, state: GitState) -> Project:
    """Apply the changes of ``state`` to a clean tree at its commit. Raises RestoreError."""
    root = Path((read_git(folder, os.environ) or GitState()).root or folder)
    patch = patch_bytes_of(state)
    if patch:
        if why := refusal(patch):
            raise RestoreError(why)
        _git(root, ["apply", "--check", "-p1", "-"], patch)
        _git(root, ["apply", "-p1", "-"], patch)
    after = read_git(root, os.environ)
    noted = state.patch_sha256
    same = after is not None and after.patch_sha256 == noted if noted else None
    return Project(
        folder=str(folder), commit=state.commit or "", patched=bool(patch), same_patch=same if patch else None,
        missing=state.untracked, missing_count=state.untracked_count or 0,
    )  # fmt: skip


def _state_of(snapshot: Snapshot) -> GitState:
    """Return the project's git state, fit to be restored. Raises RestoreError."""
    provenance = snapshot.facts.provenance.value
    state = provenance.git if provenance else None
    if state is None or not state.commit or not _COMMIT.fullmatch(state.commit):
        raise RestoreError(t("the snapshot was not taken in a git working tree: there is no code to restore"))
    if state.dirty and state.patch is None:
        raise RestoreError(state.patch_why or t("the changes since the commit are not in the snapshot"))
    patch = patch_bytes_of(state)
    if state.patch and not patch:
        raise RestoreError(t("the changes in the snapshot cannot be read: they are no base64"))
    if why := refusal(patch):
        raise RestoreError(why)
    return state


def _no_tree(state: GitState, folder: Path) -> Text:
    if state.remote:
        return t("{folder} is no git working tree: `git clone {remote} {folder}`, then `git -C {folder} checkout {commit}`", folder=str(folder), remote=printable(state.remote), commit=str(state.commit))  # fmt: skip
    return t("{folder} is no git working tree: clone the project there, and check out {commit}", folder=str(folder), commit=str(state.commit))  # fmt: skip


def _git(root: Path, words: Sequence[str], patch: bytes) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ = {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", *_SAFE, *words], cwd=root, env=environ, input=patch, capture_output=True, timeout=LIMIT_S, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RestoreError(t("git could not be asked: {error}", error=str(error))) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise RestoreError(t("the changes do not apply to {folder}, and nothing was changed: {error}", folder=str(root), error=printable(without_secrets(said))))  # fmt: skip
