"""What of a snapshot's provenance leaves the machine: digests and commits stay, a patch stays whole or not at all. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import msgspec

from doctor.model import Text, t
from doctor.redact_scan import Hit, secrets_in_patch

DIGEST_KEYS = frozenset({"commit", "requested_revision"})
"""Forty hex digits here name a commit; anywhere else they may be somebody's key."""
_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_commit(key: str, value: str) -> bool:
    return key in DIGEST_KEYS and _HEX.fullmatch(value) is not None


def set_patches_aside(provenance: Any, as_they_are: bool) -> list[tuple[dict[str, Any], str]]:
    """Take the patches out of a provenance tree and return where they belong; one with a credential stays out."""
    kept: list[tuple[dict[str, Any], str]] = []
    for tree in git_trees(provenance):
        patch = tree.pop("patch", None)
        if patch is None:
            continue
        hits = [] if as_they_are else secrets_in_patch(patch_text(patch, bool(tree.get("patch_is_base64"))))
        if hits:
            tree["patch_why"] = msgspec.to_builtins(left_out(hits[0]))
        else:
            kept.append((tree, patch))
    return kept


def git_trees(provenance: Any) -> list[dict[str, Any]]:
    """Return every working tree in a provenance as builtins: the project's and those of editable installs."""
    if not isinstance(provenance, dict):
        return []
    trees = [provenance.get("git"), *(item.get("git") for item in provenance.get("contents", ()))]
    return [tree for tree in trees if isinstance(tree, dict)]


def patch_text(patch: str, is_base64: bool) -> str:
    """Return a patch as text to be searched, whatever bytes it holds."""
    return base64.b64decode(patch).decode("utf-8", "replace") if is_base64 else patch


def left_out(hit: Hit) -> Text:
    return t(
        "left out: {file}:{line} looks like a credential ({kind})",
        file=hit.file,
        line=hit.line,
        kind=hit.kind,
    )


def clean_names(provenance: Any, clean: Callable[[str], str]) -> None:
    """Clean what people name: branches and untracked files."""
    for tree in git_trees(provenance):
        if "branch" in tree:
            tree["branch"] = clean(tree["branch"])
        if "untracked" in tree:
            tree["untracked"] = [clean(name) for name in tree["untracked"]]


def for_strangers(provenance: Any) -> None:
    """Drop what tells whose code it is: patches, remotes, branches, names of files and data (``--share``)."""
    for tree in git_trees(provenance):
        for key in ("patch", "remote", "branch", "untracked", "root"):
            if tree.pop(key, None) and key == "patch":
                tree["patch_why"] = msgspec.to_builtins(t("left out: the snapshot was made to be shared"))
    for row in provenance.get("data", ()) if isinstance(provenance, dict) else ():
        row["path"] = row.get("path", "").rpartition("/")[2]
