"""Matching what an index offers with what is installed: the one file of that name, proven by its METADATA. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from doctor.machine import with_facts
from doctor.model import Content, Distribution, Provenance, Record, Snapshot, Text, t
from doctor.snapshots.formats.sources import Source, is_url
from doctor.snapshots.wheel_tags import wheel_file_name


class Offer(Record, frozen=True):
    """One file of an index."""

    name: str
    url: str
    sha256: str
    index: str = ""


class Resolution(Record, frozen=True):
    """What became of each package: proven, taken by its name alone, or not found."""

    snapshot: Snapshot
    proven: int = 0
    by_name: tuple[str, ...] = ()
    """The index offers no METADATA to compare: the file's name is the only proof."""
    open: dict[str, Text] = {}


def offers_of(lock: Mapping[str, Any]) -> dict[str, list[Offer]]:
    """Return package -> files out of a pylock.toml; what has no digest or no plain address is no offer."""
    found: dict[str, list[Offer]] = {}
    for package in lock.get("packages", ()):
        for wheel in package.get("wheels", ()):
            url, digest = str(wheel.get("url", "")), str(wheel.get("hashes", {}).get("sha256", ""))
            name = str(wheel.get("name") or url.rpartition("/")[2].partition("#")[0])
            if re.fullmatch(r"[0-9a-f]{64}", digest) and is_url(url):
                offer = Offer(name=name, url=url, sha256=digest, index=str(package.get("index", "")))
                found.setdefault(str(package.get("name", "")), []).append(offer)
    return found


def installed_file(item: Distribution, content: Content | None, offers: list[Offer]) -> Offer | None:
    """Return the offer that is the file which was installed, by its name."""
    name = wheel_file_name(item, content.build if content else "")
    return next((one for one in offers if name is not None and _same_file(one.name, name)), None)


def renamed_file(item: Distribution, offers: list[Offer]) -> Offer | None:
    """Return the one offer that the installed wheel may have been before it was given a name for the index.

    PyTorch's wheels on PyPI say ``linux_x86_64`` in WHEEL and ``manylinux1_x86_64`` in their file's name. METADATA has
    to prove it.
    """
    mine = {
        (tag.split("-")[0], tag.split("-")[1], _arch_of(tag))
        for tag in item.wheel_tags
        if tag.count("-") == 2
    }
    if len(mine) != 1 or not all("-linux_" in tag for tag in item.wheel_tags):
        return None
    like = [
        one
        for one in offers
        if {(tag.interpreter, tag.abi, _arch_of(str(tag))) for tag in _tags(one.name)} == mine
    ]
    return like[0] if len(like) == 1 else None


def _arch_of(tag: str) -> str:
    # cp310-cp310-linux_x86_64, cp310-cp310-manylinux_2_28_aarch64
    return next((arch for arch in ("x86_64", "aarch64") if tag.endswith(f"_{arch}")), "")


def _tags(name: str) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(name.replace("%2B", "+"))[3]
    except InvalidWheelFilename:
        return frozenset()


def _same_file(one: str, other: str) -> bool:
    try:  # manylinux_2_17_x86_64.manylinux2014_x86_64 in either order
        return parse_wheel_filename(one.replace("%2B", "+")) == parse_wheel_filename(other)
    except InvalidWheelFilename:
        return False


def why_open(source: Source, item: Distribution, offers: list[Offer]) -> Text:
    if source.kind != "index":
        return t("not from an index")
    if not item.wheel_tags:
        return t("it was not installed from a wheel")
    if not offers:
        return t("no index offers a wheel of this version")
    return t("none of the {count} wheels of this version is the one that was installed: it was built there, or came from elsewhere", count=len(offers))  # fmt: skip


def with_offers(snapshot: Snapshot, chosen: Mapping[str, Offer]) -> Snapshot:
    """Return ``snapshot`` with the files that were found written into its contents."""
    provenance = snapshot.facts.provenance.value or Provenance()
    contents = [_with_offer(one, chosen.get(one.name)) for one in provenance.contents]
    filled = msgspec.structs.replace(provenance, contents=tuple(contents))
    reading = msgspec.structs.replace(snapshot.facts.provenance, value=filled)
    return with_facts(snapshot, provenance=reading)


def _with_offer(content: Content, offer: Offer | None) -> Content:
    if offer is None:
        return content
    return msgspec.structs.replace(
        content, file_url=offer.url, file_sha256=f"sha256:{offer.sha256}", index=offer.index
    )
