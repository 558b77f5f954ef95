"""Where the environment, the code and the data came from, and digests that prove it. Read for a snapshot only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from doctor.model import Content, GitState, Provenance, Reading, Text, ok, t
from doctor.probes.conda_meta import read_conda
from doctor.probes.data_prints import fingerprint
from doctor.probes.git_state import read_git
from doctor.probes.index_config import read_indexes
from doctor.probes.os_packages import read_os_packages
from doctor.probes.packages import list_folders
from doctor.probes.record_digest import read_content, source_folder

if TYPE_CHECKING:
    from doctor.probes import Context

EDITABLES_LIMIT = 20


def probe(context: Context) -> Reading[Provenance]:
    """Read digests of every distribution, conda's records, the configured indexes, git and data."""
    unread: dict[str, Text] = {}
    trees: dict[Path, GitState | None] = {}
    target = context.target
    contents: tuple[Content, ...] = ()
    project = _tree(context, context.cwd, trees)
    if target.executable is None and target.problem is not None:
        unread["contents"] = target.problem
    elif target.executable is not None:
        contents = tuple(_with_trees(context, list(read_contents(target.site_packages, unread)), trees))
    provenance = Provenance(
        contents=contents,
        conda=read_conda(target.prefix, unread) if target.prefix else (),
        os_packages=read_os_packages(context, unread),
        indexes=read_indexes(context, target.prefix, unread),
        git=project,
        data=tuple(fingerprint(path) for path in context.data_paths),
        unread=unread,
    )
    return ok(provenance, source="RECORD, conda-meta, git")


def read_contents(folders: tuple[Path, ...], unread: dict[str, Text]) -> Iterator[Content]:
    """Yield the content of every wheel installed in ``folders``, in import order."""
    listings, gaps = list_folders(folders)
    if gaps:
        unread["contents"] = gaps["items"]
    for site, names in listings:
        for name in names:
            if name.endswith(".dist-info") and not name.startswith(("~", "-")):
                yield read_content(site, name)


def _with_trees(
    context: Context, contents: list[Content], trees: dict[Path, GitState | None]
) -> Iterator[Content]:
    """Add its source tree's state to each editable install."""
    editables = 0
    for content in contents:
        folder = source_folder(content)
        if folder is not None and editables < EDITABLES_LIMIT:
            editables += 1
            known = set(trees)
            tree = _tree(context, folder, trees)
            content = msgspec.structs.replace(
                content, git=tree if folder not in known else _noted_elsewhere(tree)
            )
        yield content


def _tree(context: Context, folder: Path, trees: dict[Path, GitState | None]) -> GitState | None:
    """Return the working tree of ``folder``, each tree read once."""
    if folder not in trees:
        state = read_git(folder, context.environ)
        trees[folder] = state
        if state is not None and state.root:
            trees.setdefault(Path(state.root), state)
    return trees[folder]


def _noted_elsewhere(state: GitState | None) -> GitState | None:
    """The same tree as the working directory's, or as an editable's before: its patch is in the file once."""
    if state is None or state.patch is None:
        return state
    why = t("the same working tree stands elsewhere in this snapshot, with its patch")
    return msgspec.structs.replace(state, patch=None, patch_why=why, untracked=())
