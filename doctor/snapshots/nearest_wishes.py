"""What a resolver is asked for in place of a set that cannot be had or does not run, and what is given up in which order. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from doctor.checks.advice import TorchBuild
from doctor.model import Record, Snapshot, Text, t
from doctor.recommend import recommend, target_of
from doctor.snapshots.fit import fit, merged
from doctor.snapshots.formats.sources import TORCH_INDEX, sources
from doctor.tables import load

OF_TORCH = re.compile(r"nvidia-(?!ml-py$).*|cuda-(bindings|pathfinder|toolkit)|triton|pytorch-triton")


class Wish(Record, frozen=True):
    """What is asked of the indexes for one package."""

    name: str
    version: str
    requirement: str
    why: Text | None = None
    """Why it is no longer the exact version."""


class Swap(Record, frozen=True):
    """Another torch build in place of one that does not run here."""

    build: TorchBuild
    why: Text

    @property
    def version(self) -> str:
        return self.build.torch if self.build.on_pypi else f"{self.build.torch}+{self.build.tag}"

    @property
    def index(self) -> str:
        return "" if self.build.on_pypi else f"{TORCH_INDEX}{self.build.tag}"


class NoTorch(Exception):  # noqa: N818 - it is what it says
    """No torch build runs here. ``text`` says what would help."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


# ---------------------------------------------------------------------------------------- what is asked
def torch_swap(snapshot: Snapshot, here: Snapshot) -> Swap | None:
    """Return the torch build nearest to the snapshot's that runs on this driver and these cards; None: its own does.

    Raises:
        NoTorch: none does.
    """
    against = [one for one in fit(snapshot, here).obstacles if one.finding and one.level == "fail"]
    torch = snapshot.facts.torch.value
    if torch is None or not torch.cuda or not against:
        return None
    answer = recommend(target_of(merged(snapshot, here)))
    if answer.best is None:
        raise NoTorch(answer.ways_out[0] if answer.ways_out else against[0].why)
    return Swap(build=answer.best, why=against[0].why)


def wishes_of(snapshot: Snapshot, swap: Swap | None) -> list[Wish]:
    """Return what to ask for: every package of an index by its exact version, the torch family as ``swap`` says."""
    found = [one for one in sources(snapshot) if one.kind == "index"]
    wishes = [
        Wish(name=one.name, version=one.version, requirement=f"{one.name}=={one.version}") for one in found
    ]
    if swap is None:
        return wishes
    return [_swapped(one, swap) for one in wishes if not OF_TORCH.fullmatch(one.name)]


def _swapped(wish: Wish, swap: Swap) -> Wish:
    label = swap.version.partition("+")[2]
    row: dict[str, str] = next(
        (row for row in load("torch_wheels")["release"] if row["version"] == swap.build.torch), {}
    )
    mate = (
        swap.build.torch
        if wish.name == "torch"
        else row.get(wish.name, "")
        if wish.name in ("torchvision", "torchaudio")
        else ""
    )
    if mate:
        return msgspec.structs.replace(
            wish, requirement=f"{wish.name}=={mate}" + (f"+{label}" if label else ""), why=swap.why
        )
    if wish.name in ("torchvision", "torchaudio", "torchtext", "torchdata"):
        return msgspec.structs.replace(wish, requirement=wish.name, why=swap.why)
    return wish


# ---------------------------------------------------------------------------------------- what is given up
# there is no version of lib==1.0
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of ([\w.-]+?)(?:==|<|>| and|,)")
# lib==1.0 has no wheels with a matching platform tag     lib==1.0 has no usable wheels
_NO_WHEEL = re.compile(r"([\w.-]+)==\S+ has no (?:usable )?wheels")
# lib was not found in the package registry
_NOT_FOUND = re.compile(r"([\w.-]+) was not found in")
# you require lib==1.0
_REQUIRED = re.compile(r"you require ([\w.-]+?)(?:==|<=|>=|[,.]? |$|[.,]$)")


def blamed(said: str) -> tuple[set[str], bool]:
    """Return which packages a resolver's failure is about, and whether they cannot be had (else: they conflict)."""
    text = " ".join(said.split())
    gone = {
        match[1].rstrip(".")
        for pattern in (_NO_VERSION, _NO_WHEEL, _NOT_FOUND)
        for match in pattern.finditer(text)
    }
    if gone:
        return gone, True
    return {match[1].rstrip(".") for match in _REQUIRED.finditer(text)}, False


def loosened(wishes: Iterable[Wish], names: set[str], gone: bool) -> list[Wish] | None:
    """Return the wishes with one step given up for each of ``names``; None: there is nothing to give up.

    The exact version, then the newest before it, then any, then none. Of packages that conflict, torch and transformers
    stay as long as another can give way.
    """
    rows = list(wishes)
    touched = names & {one.name for one in rows}
    yielding = touched - {"torch", "transformers"} or touched
    touched = touched if gone else yielding
    if not touched:
        return None
    return [step for one in rows for step in ([one] if one.name not in touched else _one_step(one, gone))]


def _one_step(wish: Wish, gone: bool) -> Iterator[Wish]:
    why = wish.why or (
        t("no index asked here has a file of {name} {version} that this machine can install", name=wish.name, version=wish.version)
        if gone
        else t("{name} {version} does not go with what can be had of the others", name=wish.name, version=wish.version)
    )  # fmt: skip
    below, public = f"{wish.name}<={wish.version.partition('+')[0]}", wish.name
    if wish.requirement.startswith(f"{wish.name}=="):
        yield msgspec.structs.replace(wish, requirement=below, why=why)
    elif wish.requirement == below:
        yield msgspec.structs.replace(wish, requirement=public, why=why)
