"""What a stranger's patch may touch: files below its tree, and no link, no submodule, nothing of git's own. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from doctor.model import GitState, Record, Snapshot, Text, t

LIMIT_BYTES = 8 << 20
# diff --git a/x b/x    --- a/x    +++ b/x    rename from x    copy to x
_HEADER = re.compile(
    rb'(?:--- |\+\+\+ |rename (?:from|to) |copy (?:from|to) )(?P<path>"(?:[^"\\]|\\.)*"|[^\t\n]*)'
)
_DIFF = re.compile(rb"diff --git (?P<rest>.*)")
# new file mode 120000, old mode 100644, deleted file mode 160000, index 0a1b..2c3d 120000
_MODE = re.compile(
    rb"(?:new file mode|new mode|old mode|deleted file mode) (\d+)|index [0-9a-f]+\.\.[0-9a-f]+ (\d+)"
)
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class Project(Record, frozen=True):
    """What was done with a folder of code."""

    folder: str
    commit: str
    patched: bool = False
    same_patch: bool | None = None
    """Whether what differs from the commit now is, byte for byte, what differed there; None: no digest to compare with."""
    missing: tuple[str, ...] = ()
    """Files that git did not know there: named in the snapshot, and not in it."""
    missing_count: int = 0


def patch_bytes_of(state: GitState) -> bytes:
    """Return a patch as git wrote it; empty where there is none, or none that can be decoded."""
    if not state.patch:
        return b""
    if not state.patch_is_base64:
        return state.patch.encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode(state.patch, validate=True)
    except (binascii.Error, ValueError):
        return b""


def patches_by_digest(snapshot: Snapshot) -> dict[str, GitState]:
    """Return digest -> the state that holds that patch: of one tree read twice, the patch is in the file once."""
    provenance = snapshot.facts.provenance.value
    states = [provenance.git, *(one.git for one in provenance.contents)] if provenance else []
    return {one.patch_sha256: one for one in states if one and one.patch and one.patch_sha256}


def refusal(patch: bytes) -> Text | None:
    """Return why a patch is not to be applied; None: nothing against it but what git itself finds."""
    if len(patch) > LIMIT_BYTES:
        return t("the patch is larger than {limit} MB: apply it by hand", limit=LIMIT_BYTES >> 20)
    for path in _paths(patch):
        if _escapes(path):
            return t("the patch names {path}, which is outside its tree or git's own: it is not applied", path=path.decode("utf-8", "backslashreplace"))  # fmt: skip
    for mode in _modes(patch):
        if mode in (b"120000", b"160000"):
            return t("the patch makes or changes a symbolic link or a submodule: apply it by hand, `doctor snapshot convert --format patch` gives it")  # fmt: skip
    return None


def _paths(patch: bytes) -> Iterator[bytes]:
    # Every line is looked at, in a hunk or not: git counts a hunk's lines, and takes what follows for a header again.
    for line in patch.split(b"\n"):
        if match := _DIFF.match(line):
            yield from (_bare(word) for word in re.split(rb' (?=(?:"?[a-z]/))', match["rest"]))
        elif match := _HEADER.match(line):
            yield _bare(match["path"])


def _bare(word: bytes) -> bytes:
    """``"a/x\\303\\244"`` -> the path's own bytes, without git's prefix."""
    word = word.rstrip(b"\r")
    if word.startswith(b'"') and word.endswith(b'"') and len(word) > 1:
        word = _ESCAPE.sub(_letter, word[1:-1])
    return word[2:] if word[:2] in (b"a/", b"b/") else word


def _letter(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 255]) if match[1].isdigit() else _LETTERS.get(match[1], match[1])


def _escapes(path: bytes) -> bool:
    if path == b"/dev/null":
        return False
    parts = path.replace(b"\\", b"/").lower().split(b"/")
    return (
        path.startswith((b"/", b"\\"))
        or b"\0" in path
        or any(part in (b"..", b".git", b".gitmodules") for part in parts)
    )


def _modes(patch: bytes) -> Iterator[bytes]:
    for line in patch.split(b"\n"):
        if match := _MODE.match(line):
            yield match[1] or match[2] or b""
