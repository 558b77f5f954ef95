"""Where each distribution of a snapshot can be had again: an index, a commit, an archive, a source folder. Pure.

The only place that turns a stranger's strings into requirement lines: names and versions must be what packaging says they
are, addresses of a known scheme and of plain characters.
"""

from __future__ import annotations

import re
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from doctor.model import Content, Distribution, GitState, Record, Snapshot, Text, t
from doctor.snapshots.diff_packages import contents_of

Kind = Literal["index", "vcs", "archive", "editable", "none"]
# PEP 508: letters, digits, ._- inside
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
# https://host/path, ssh://git@host/path, file is not among them; no blank, quote, control character or option
_URL = re.compile(r"(?:https?|ssh|git)://[A-Za-z0-9.@:_~%+-]+/[A-Za-z0-9._~:/@%+,=()-]*")
# git@github.com:owner/name.git
_SCP = re.compile(r"git@([A-Za-z0-9.-]+):([A-Za-z0-9._~/-]+)")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")
# cu124, cpu, rocm6.2, xpu: what download.pytorch.org names its indexes by
_TORCH_LABEL = re.compile(r"cu\d{2,4}|cpu|rocm\d+(?:\.\d+)*|xpu")
TORCH_INDEX = "https://download.pytorch.org/whl/"


class Source(Record, frozen=True):
    """How one distribution can be had."""

    name: str
    version: str
    kind: Kind
    requirement: str = ""
    """A line for pip: ``torch==2.6.0+cu124``, ``lib @ git+https://...@commit``; without ``-e``."""
    index: str = ""
    """The index that carries this build, where it is not PyPI."""
    sha256: str = ""
    """Hex; of the file at ``requirement``'s address, or of the file that the index offers."""
    file_url: str = ""
    problem: Text | None = None
    """Why it cannot be had, or not exactly."""

    @property
    def exact(self) -> bool:
        return self.problem is None and self.kind != "none"


def sources(snapshot: Snapshot) -> list[Source]:
    """Return every distribution that is imported (the first copy of each), in order of name."""
    packages = snapshot.facts.packages.value
    if packages is None:
        return []
    contents = contents_of(snapshot)
    firsts = [item for item in packages.items if packages.get(item.name) is item]
    return [source_of(item, contents.get(item.name)) for item in sorted(firsts, key=lambda one: one.name)]


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_version(text: str) -> bool:
    try:
        return len(text) <= 128 and bool(Version(text)) and text.isascii() and text == text.strip()
    except InvalidVersion:
        return False


def is_url(text: str) -> bool:
    return len(text) <= 2000 and _URL.fullmatch(text) is not None and "/../" not in text + "/"


def source_of(item: Distribution, content: Content | None) -> Source:
    if not is_name(item.name) or not is_version(item.version):
        why = t("left out: the name or the version is not one that packages have")
        return Source(name=item.name, version=item.version, kind="none", problem=why)
    name = canonicalize_name(item.name)
    if content is not None and content.editable:
        return _editable(name, item.version, content.git)
    if content is not None and content.vcs and content.commit:
        return _vcs(name, item.version, content)
    url = (content.url if content else None) or item.direct_url
    if url and not url.startswith("file:"):
        return _archive(name, item.version, url, content)
    if item.editable:
        return _editable(name, item.version, None)
    return _from_index(name, item, url, content)


# ---------------------------------------------------------------------------------------- one kind each
def _from_index(name: str, item: Distribution, url: str | None, content: Content | None) -> Source:
    label = item.version.partition("+")[2]
    index = f"{TORCH_INDEX}{label}" if _TORCH_LABEL.fullmatch(label) else ""
    problem = None
    if item.from_conda or item.installer == "conda":
        problem = t("{name} was built by conda: PyPI's file of this version is another one", name=name)
    elif url:
        problem = t("{name} was installed from a file of that machine: whether an index has the same one is not known", name=name)  # fmt: skip
    elif label and not index:
        problem = t("{name} {version}: no index is known for builds labelled {label}", name=name, version=item.version, label=label)  # fmt: skip
    elif Version(item.version).is_devrelease:
        problem = t("{name} {version} is a nightly build: indexes drop them after two to three months", name=name, version=item.version)  # fmt: skip
    digest = _hex(content.file_sha256) if content else ""
    url = content.file_url if content and digest and is_url(content.file_url) else ""
    return Source(
        name=name, version=item.version, kind="index", requirement=f"{name}=={item.version}", index=index, problem=None if digest else problem,
        sha256=digest, file_url=url,
    )  # fmt: skip


def _hex(digest: str) -> str:
    bare = digest.removeprefix("sha256:")
    return bare if re.fullmatch(r"[0-9a-f]{64}", bare) else ""


def _vcs(name: str, version: str, content: Content) -> Source:
    url = https_of(content.url or "")
    if content.vcs != "git" or not url or not _COMMIT.fullmatch(content.commit):
        return _lost(name, version, t("{name} comes from a repository whose address or commit is not plain", name=name))  # fmt: skip
    folder = content.subdirectory
    tail = f"#subdirectory={folder}" if folder and _FOLDER.fullmatch(folder) and ".." not in folder else ""
    return Source(
        name=name,
        version=version,
        kind="vcs",
        requirement=f"{name} @ git+{url}@{content.commit}{tail}",
    )


def _archive(name: str, version: str, url: str, content: Content | None) -> Source:
    if not is_url(url) or "***" in url:
        return _lost(name, version, t("{name} comes from an address that is not plain, or held a credential", name=name))  # fmt: skip
    digest = _hex(content.archive_sha256) if content else ""
    tail = f"#sha256={digest}" if digest else ""
    problem = None if digest else t("{name} comes from an address without a known digest", name=name)
    return Source(
        name=name, version=version, kind="archive", requirement=f"{name} @ {url}{tail}", sha256=digest, file_url=url, problem=problem,
    )  # fmt: skip


def _editable(name: str, version: str, git: GitState | None) -> Source:
    url = https_of(git.remote or "") if git else ""
    if git is None or not url or not git.commit or not _COMMIT.fullmatch(git.commit):
        return _lost(name, version, t("{name} runs from a source folder that has no commit at a remote: copy the folder", name=name))  # fmt: skip
    problem = t("{name} has changes since its commit: `doctor snapshot convert --format patch` gives them", name=name) if git.dirty else None  # fmt: skip
    return Source(
        name=name,
        version=version,
        kind="editable",
        requirement=f"git+{url}@{git.commit}#egg={name}",
        problem=problem,
    )


def _lost(name: str, version: str, why: Text) -> Source:
    return Source(name=name, version=version, kind="none", problem=why)


def https_of(url: str) -> str:
    """Return a remote as pip writes it after ``git+``; empty when it is none that may be written."""
    if match := _SCP.fullmatch(url):
        return f"ssh://git@{match[1]}/{match[2]}" if ".." not in match[2] else ""
    return url if is_url(url) and "***" not in url else ""
