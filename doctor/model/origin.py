"""Where an environment came from: commits, sources, digests, fingerprints of data."""

from __future__ import annotations

from doctor.model.readings import Record, Section
from runner.text import Text


class GitState(Record, frozen=True):
    """One working tree: ``git status``, ``git diff HEAD --binary``."""

    root: str = ""
    commit: str | None = None
    """None: no commit yet, or it could not be read (``why`` says so)."""
    branch: str = ""
    remote: str | None = None
    """Where it was cloned from, without user, password and query."""
    dirty: bool | None = None
    """Tracked files differ from the commit."""
    patch: str | None = None
    """``git apply`` brings the changes back, on this commit. Word for word, never cleaned."""
    patch_is_base64: bool = False
    """The patch is not UTF-8; ``patch`` holds its bytes in base64."""
    patch_bytes: int | None = None
    patch_sha256: str = ""
    """Of the patch, kept where the patch itself is left out."""
    patch_why: Text | None = None
    """Why there is no patch although files differ."""
    untracked: tuple[str, ...] = ()
    """Names only, the first of them; ``untracked_count`` says how many there are."""
    untracked_count: int | None = None
    why: Text | None = None


class Content(Record, frozen=True):
    """What proves that an installed distribution is the same one elsewhere. Digests are ``sha256:HEX``."""

    name: str
    version: str = ""
    location: str = ""
    record_sha256: str = ""
    """Over the sorted ``path,hash`` rows of RECORD, without what installers add; empty: ``why`` says why."""
    record_files: int | None = None
    metadata_sha256: str = ""
    build: str = ""
    """``Build:`` of WHEEL: part of the wheel's file name."""
    url: str | None = None
    """direct_url.json: no user, password or query in it."""
    vcs: str = ""
    commit: str = ""
    requested_revision: str = ""
    subdirectory: str = ""
    archive_sha256: str = ""
    editable: bool = False
    git: GitState | None = None
    """Of an editable install's source tree."""
    file_url: str = ""
    """Where the file that was installed can be had, once `doctor snapshot resolve` has looked."""
    file_sha256: str = ""
    index: str = ""
    """The index that offers it."""
    why: Text | None = None


class CondaPackage(Record, frozen=True):
    """One file of conda-meta."""

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""
    url: str = ""
    sha256: str = ""


class DataFingerprint(Record, frozen=True):
    path: str
    size_bytes: int | None = None
    files: int | None = None
    modified_at: str = ""
    """UTC, ISO 8601; of a folder: its newest file's."""
    sha256: str = ""
    how: str = ""
    """``whole``: every byte; ``sampled``: size, first, last and evenly spaced blocks of each file."""
    why: Text | None = None
    """Why it could not be read, or not all of it."""


class KeptProof(Record, frozen=True):
    """What `doctor prove RUN` kept: the first steps, computed twice, equal to the bit."""

    steps: int
    sha256: str
    """``sha256:HEX`` over weights, batches, random state, gradients and optimizer state of each step."""
    plan_sha256: str = ""
    made_at: str = ""
    level: str = ""
    device: str = ""
    driver: str = ""
    torch: str = ""
    threads: int = 0


class RunSettings(Record, frozen=True):
    """What a run was told: from its plan.json."""

    name: str = ""
    plan_sha256: str = ""
    profile: dict[str, str | int | float | bool | None] = {}
    """``train.lr`` -> 3e-05; lists as JSON."""
    settings: dict[str, str | int | float | bool | None] = {}
    """Device, precision, micro batch, threads, workers as they were settled."""
    seeds: dict[str, int] = {}
    environment: dict[str, str] = {}
    """Variables set before the interpreter started."""
    proof: KeptProof | None = None
    """From its proof.json; None: `doctor prove RUN` was not asked."""


class IndexLine(Record, frozen=True):
    """Where packages are asked for: one line of a pip or uv configuration."""

    option: str
    """index-url, extra-index-url, find-links."""
    url: str
    source: str = ""
    """The file or variable it stands in."""


class Provenance(Section, frozen=True):
    """Where the environment, the code and the data came from. Read for a snapshot, not for a check."""

    contents: tuple[Content, ...] = ()
    conda: tuple[CondaPackage, ...] = ()
    os_packages: dict[str, str] = {}
    """Of the system's package manager, those that a training environment stands on."""
    indexes: tuple[IndexLine, ...] = ()
    git: GitState | None = None
    """Of the working directory; None: it is in no git working tree."""
    data: tuple[DataFingerprint, ...] = ()
    run: RunSettings | None = None

    def content(self, name: str) -> Content | None:
        return next((item for item in self.contents if item.name == name), None)
