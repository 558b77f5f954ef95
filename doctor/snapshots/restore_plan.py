"""How an environment is made again: the phases in their order, what needs a yes, and what cannot be had. Pure.

Build tools first, then the torch family from the index that carries its builds, then the rest by exact version without
dependencies, then what is compiled against that torch, then repositories and source folders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from doctor.checks.versions import minor
from doctor.model import Distribution, GitState, Record, Snapshot, Text, t
from doctor.snapshots.diff_packages import contents_of
from doctor.snapshots.formats.sources import TORCH_INDEX, Source, sources
from doctor.snapshots.known_good import why_untested
from doctor.snapshots.project_patch import patches_by_digest

Consent = Literal["sdists", "vcs", "urls"]
CONSENTS: tuple[Consent, ...] = ("sdists", "vcs", "urls")
"""What is run or fetched beyond wheels of the configured indexes: only with the person's word for each."""
BUILD_TOOLS = ("pip", "setuptools", "wheel", "ninja", "packaging")
TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "torchtext", "torchdata")
"""PyTorch's wheels are tagged plain ``linux_x86_64`` inside, and are not compiled where they were found."""


class Phase(Record, frozen=True):
    name: Literal["build-tools", "torch", "packages", "locked", "compiled", "addresses", "repositories", "source-folders"]  # fmt: skip
    lines: tuple[str, ...]
    """Of a requirements file."""
    indexes: tuple[str, ...] = ()
    needs: Consent | None = None
    builds: bool = False
    """Source is compiled, against what is installed by then."""
    hashed: bool = False


class RestorePlan(Record, frozen=True):
    python: str
    """Minor: ``3.11``."""
    phases: tuple[Phase, ...]
    digest: str
    """Over all of the above: an interrupted restore goes on only with the same plan."""
    left_out: tuple[Source, ...] = ()
    """What cannot be had anywhere; each has its ``problem``."""
    doubtful: tuple[Source, ...] = ()
    """What is asked for by version though the file may be another one; verify tells."""
    untested: Text | None = None
    """Why a shipped environment wants ``--untested``."""
    patches: dict[str, GitState] = {}
    """Name of a source folder -> the changes to make in it."""

    def unconsented(self, given: Iterable[str]) -> list[Consent]:
        """Return what still needs a yes."""
        wanted = dict.fromkeys(phase.needs for phase in self.phases if phase.needs)
        return [one for one in wanted if one not in set(given)]


class RestoreError(Exception):
    """It cannot be restored, or went wrong. ``text`` says why and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def plan_restore(snapshot: Snapshot, torch_index: str = TORCH_INDEX) -> RestorePlan:
    """Return the phases. Raises RestoreError: the snapshot names no Python or no packages."""
    python = snapshot.facts.python.value
    wanted = minor(python.version) if python else None
    packages = snapshot.facts.packages.value
    if wanted is None or packages is None or not packages.items:
        raise RestoreError(t("the snapshot does not say which Python and which packages it is for: nothing to restore"))  # fmt: skip
    if not packages.complete:
        raise RestoreError(t("the snapshot holds an excerpt of the packages: an environment made of it would miss some"))  # fmt: skip
    found = sources(snapshot)
    phases = tuple(phase for phase in _phases(found, {item.name: item for item in packages.items}, torch_index) if phase.lines)  # fmt: skip
    patches = _patches(snapshot, found)
    raw = msgspec.json.encode((wanted, msgspec.to_builtins(phases)))
    return RestorePlan(
        python=wanted,
        phases=phases,
        digest=hashlib.sha256(raw).hexdigest(),
        left_out=tuple(one for one in found if one.kind == "none"),
        doubtful=tuple(
            one for one in found if one.kind != "none" and one.problem is not None and one.name not in patches
        ),
        untested=why_untested(snapshot),
        patches=patches,
    )


def _patches(snapshot: Snapshot, found: list[Source]) -> dict[str, GitState]:
    """Return the changes since the commit of each source folder that comes from a repository."""
    held, contents = patches_by_digest(snapshot), contents_of(snapshot)
    wanted = {
        one.name: contents[one.name].git for one in found if one.kind == "editable" and one.name in contents
    }
    return {
        name: held[state.patch_sha256]
        for name, state in wanted.items()
        if state and state.patch_sha256 in held
    }


def _phases(found: list[Source], items: dict[str, Distribution], torch_index: str) -> list[Phase]:
    by_index = [one for one in found if one.kind == "index"]
    tools = [one for one in by_index if one.name in BUILD_TOOLS]
    torch = [one for one in by_index if one.index or one.name in TORCH_FAMILY]
    compiled = [
        one
        for one in by_index
        if one not in tools and one not in torch and not one.sha256 and _is_built_there(items[one.name])
    ]
    rest = [one for one in by_index if one not in tools and one not in torch and one not in compiled]
    indexes = tuple(
        dict.fromkeys(torch_index + one.index.removeprefix(TORCH_INDEX) for one in torch if one.index)
    )
    locked = bool(torch) and all(one.sha256 for one in torch)
    return [
        Phase(
            name="build-tools",
            lines=_lines(tools, hashed=all(one.sha256 for one in tools)),
            hashed=bool(tools) and all(one.sha256 for one in tools),
        ),
        Phase(name="torch", lines=_lines(torch, hashed=locked), indexes=indexes, hashed=locked),
        Phase(name="locked", lines=_lines((one for one in rest if one.sha256), hashed=True), hashed=True),
        Phase(name="packages", lines=_lines(one for one in rest if not one.sha256)),
        Phase(name="compiled", lines=_lines(compiled), needs="sdists", builds=True),
        Phase(name="addresses", lines=_lines(one for one in found if one.kind == "archive"), needs="urls"),
        Phase(
            name="repositories",
            lines=_lines(one for one in found if one.kind == "vcs"),
            needs="vcs",
            builds=True,
        ),
        Phase(
            name="source-folders",
            lines=tuple(f"-e {one.requirement}" for one in found if one.kind == "editable"),
            needs="vcs",
            builds=True,
        ),
    ]


def _is_built_there(item: Distribution) -> bool:
    """A wheel tagged plain ``linux_x86_64`` was compiled on a machine like that one: no index takes such a file."""
    platforms = {tag.rpartition("-")[2] for tag in item.wheel_tags}
    return bool(platforms) and all(platform.startswith("linux_") for platform in platforms)


def _lines(found: Iterable[Source], hashed: bool = False) -> tuple[str, ...]:
    return tuple(one.requirement + (f" --hash=sha256:{one.sha256}" if hashed else "") for one in found)
