"""The environments that come with the doctor: how each is known to be good, and which machines it fits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from doctor.checks.versions import minor
from doctor.machine import with_facts
from doctor.model import Provenance, Record, Snapshot, Text, t
from doctor.snapshots.resolved import offers_of, with_offers
from doctor.snapshots.wheel_tags import needs, newest_glibc
from doctor.tables.drivers import minimum_driver


class Wants(Record, frozen=True):
    """What an environment asks of a machine; empty: nothing, or the snapshot does not say."""

    python: str = ""
    """Minor."""
    arch: str = ""
    glibc: str = ""
    cuda: str = ""
    """That torch was built for."""
    driver: str = ""
    """The oldest NVIDIA driver that runs it."""
    cards: tuple[str, ...] = ()
    """``sm_75``, ``compute_90``: what torch has code for."""


class KnownEnvironment(Record, frozen=True):
    """One file of snapshots/, for a list."""

    name: str
    file: str
    label: str
    tested: bool
    wants: Wants
    how: Text | None = None


def wants_of(snapshot: Snapshot) -> Wants:
    """Return what a machine needs to run the environment of ``snapshot``."""
    python, torch, packages = (
        snapshot.facts.python.value,
        snapshot.facts.torch.value,
        snapshot.facts.packages.value,
    )
    floor = newest_glibc(packages)[0] if packages else None
    arches = sorted({need.arch for _, need in needs(packages) if need.arch}) if packages else []
    cuda = (torch.cuda or "") if torch else ""
    return Wants(
        python=(minor(python.version) or "") if python else "",
        arch=", ".join(arches),
        glibc=".".join(map(str, floor)) if floor else "",
        cuda=cuda,
        driver=(minimum_driver(cuda) or "") if cuda else "",
        cards=(torch.arch_list or ()) if torch and cuda else (),
    )


def known_environment(name: str, file: str, snapshot: Snapshot) -> KnownEnvironment:
    known = snapshot.known_good
    return KnownEnvironment(
        name=name,
        file=file,
        label=snapshot.label,
        tested=known is not None and known.tested,
        wants=wants_of(snapshot),
        how=known.how if known else None,
    )


def why_untested(snapshot: Snapshot) -> Text | None:
    """Return why a shipped environment is not to be restored without a word of its own; None: nothing against it."""
    known = snapshot.known_good
    if known is None or known.tested:
        return None
    return known.how or t("nobody has restored it from this file yet")


# ---------------------------------------------------------------------------------------- addresses
def with_lock(snapshot: Snapshot, lock: Mapping[str, Any]) -> Snapshot:
    """Return ``snapshot`` with the address of each file out of its lock (a pylock.toml's tables), where the digests agree."""
    provenance = snapshot.facts.provenance.value or Provenance()
    offers = offers_of(lock)
    found = {
        one.name: offer
        for one in provenance.contents
        for offer in offers.get(one.name, ())
        if one.file_sha256 == f"sha256:{offer.sha256}"
    }
    return with_offers(snapshot, found)


def without_addresses(snapshot: Snapshot) -> Snapshot:
    """Return ``snapshot`` as it stands beside its lock: digests, no addresses."""
    provenance = snapshot.facts.provenance.value or Provenance()
    bare = tuple(msgspec.structs.replace(one, file_url="") for one in provenance.contents)
    reading = msgspec.structs.replace(
        snapshot.facts.provenance, value=msgspec.structs.replace(provenance, contents=bare)
    )
    return with_facts(snapshot, provenance=reading)


# ---------------------------------------------------------------------------------------- how they were made
def restored(system: str, packages: int, steps: int) -> Text:
    return t(
        "restored from this file on {system}: {packages} {packages:package|packages} compared file by file, imported, and a small model trained for {steps} {steps:step|steps} on the CPU. No GPU ran it.",
        system=system, packages=packages, steps=steps,
    )  # fmt: skip


def torch_out_of_reach(file: str) -> Text:
    return t(
        "never restored: {file} is only at download.pytorch.org, which could not be reached. Its digest is the one that public lists of files agree on; all other packages were installed and compared.",
        file=file,
    )  # fmt: skip


def installed_only() -> Text:
    return t("installed from these very files and written down, not restored from this file yet")


def not_read(file: str) -> Text:
    """Why a package has no digest of its content."""
    return t("{file} was not within reach: what is in it was never read", file=file)
