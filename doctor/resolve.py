"""Asks the indexes, through uv, which file each installed wheel was, and compares METADATA or RECORD to be sure. Needs the network."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from doctor.model import Content, IndexLine, Snapshot, Text, t
from doctor.probes.record_digest import record_digest
from doctor.redact_secrets import without_secrets
from doctor.remote_wheel import as_installed, read_record
from doctor.restore_commands import installer_environ, our_uv
from doctor.snapshots.diff_packages import contents_of
from doctor.snapshots.formats.sources import Source, sources
from doctor.snapshots.formats.words import python_minor
from doctor.snapshots.resolved import (
    Offer,
    Resolution,
    installed_file,
    offers_of,
    renamed_file,
    why_open,
    with_offers,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UV_LIMIT_S = 300.0
METADATA_LIMIT_BYTES, METADATA_LIMIT_S = 8 << 20, 15.0


class ResolveError(Exception):
    """The indexes could not be asked. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def resolve(snapshot: Snapshot, indexes: Sequence[IndexLine], environ: dict[str, str]) -> Resolution:
    """Return the snapshot with address and digest of each wheel that an index offers, and what stayed open.

    Raises:
        ResolveError: uv is missing or fails, or the snapshot has nothing to look up.
    """
    uv, minor = our_uv(), python_minor(snapshot)
    found = {one.name: one for one in sources(snapshot)}
    asked = [one for one in found.values() if one.kind == "index"]
    if uv is None:
        raise ResolveError(t("the indexes are asked through uv, which is not here: pip install uv"))
    if not asked or not minor:
        raise ResolveError(t("the snapshot does not say which Python and which packages it is for"))
    offers: dict[str, list[Offer]] = {}
    missing: dict[str, Text] = {}
    groups = [
        [one for one in asked if one.index == index] for index in dict.fromkeys(one.index for one in asked)
    ]
    for group in groups:  # an index that does not answer costs its own packages only
        try:
            lock, gone = _ask_uv(uv, minor, group, indexes, environ)
        except ResolveError as error:
            if len(groups) == 1:
                raise
            missing |= {one.name: error.text for one in group}
        else:
            offers |= offers_of(lock)
            missing |= {name: t("no index offers a wheel of this version") for name in gone}
    return _matched(snapshot, found, offers, missing)


def _ask_uv(
    uv: str, minor: str, asked: Sequence[Source], indexes: Sequence[IndexLine], environ: dict[str, str]
) -> tuple[dict[str, Any], set[str]]:
    """Return the lock that uv makes, asking again without a package that it says is not to be had."""
    left, missing = list(asked), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(20):
            done = _compile(uv, minor, left, indexes, environ, Path(folder))
            if done.returncode == 0:
                return tomllib.loads((Path(folder) / "pylock.toml").read_text("utf-8")), missing
            gone = {one.name for one in left if f"{one.name}=={one.version}" in done.stderr.replace(" ", "")}
            if not gone or len(gone) == len(left):
                break
            missing |= gone
            left = [one for one in left if one.name not in gone]
    reason = " ".join(done.stderr.split())[:300] or "?"
    raise ResolveError(t("uv could not look the packages up: {error}", error=without_secrets(reason.strip())))


def _compile(
    uv: str, minor: str, asked: Sequence[Source], indexes: Sequence[IndexLine], environ: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    (folder / "in.txt").write_text("".join(f"{one.requirement}\n" for one in asked), "utf-8")
    words = [uv, "pip", "compile", "in.txt", "--no-deps", "--python-version", minor, "--no-header", "--quiet"]
    words += ["--format", "pylock.toml", "-o", "pylock.toml", "--index-strategy", "unsafe-best-match"]
    for line in indexes:
        words += [{"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}[line.option], line.url]  # fmt: skip
    for index in dict.fromkeys(one.index for one in asked if one.index):
        words += ["--index", index]
    try:
        return subprocess.run(
            words, cwd=folder, env=installer_environ(environ), capture_output=True, encoding="utf-8", errors="replace",
            stdin=subprocess.DEVNULL, timeout=UV_LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ResolveError(t("uv could not look the packages up: {error}", error=str(error))) from None


def _matched(
    snapshot: Snapshot, found: dict[str, Source], offers: dict[str, list[Offer]], missing: dict[str, Text]
) -> Resolution:
    packages, contents = snapshot.facts.packages.value, contents_of(snapshot)
    chosen: dict[str, Offer] = {}
    still_open: dict[str, Text] = {}
    items = {item.name: item for item in reversed(packages.items)} if packages else {}
    renamed: set[str] = set()
    for name, source in found.items():
        had = offers.get(name, []) if name not in missing else []
        offer = installed_file(items[name], contents.get(name), had)
        if offer is None and (offer := renamed_file(items[name], had)):
            renamed.add(name)
        if offer is None:
            unfit = source.problem if source.kind == "none" else None
            still_open[name] = missing.get(name) or unfit or why_open(source, items[name], offers.get(name, []))  # fmt: skip
        elif name in contents:
            chosen[name] = offer
        else:
            still_open[name] = t("the snapshot holds no digest of it")
    verdicts = _prove(chosen, contents)
    for name in [name for name, verdict in verdicts.items() if verdict is False]:
        del chosen[name]
        still_open[name] = t("the index offers a file of this name with another content: it is not the one that was installed")  # fmt: skip
    for name in [name for name in renamed if verdicts.get(name, False) is None]:
        del chosen[name]
        still_open[name] = t("the index has a file that may be it under another name, and nothing to prove it by")  # fmt: skip
    return Resolution(
        snapshot=with_offers(snapshot, chosen),
        proven=sum(verdict is True for verdict in verdicts.values()),
        by_name=tuple(name for name, verdict in verdicts.items() if verdict is None and name in chosen),
        open=still_open,
    )


def _prove(chosen: dict[str, Offer], contents: dict[str, Content]) -> dict[str, bool | None]:
    """Return, a package, whether the index's file is the installed one; None: the index lets nothing of it be seen."""
    rows = [(offer.url, contents[name]) for name, offer in chosen.items()]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return dict(zip(chosen, pool.map(lambda row: _is_same(*row), rows), strict=True))


def _is_same(url: str, content: Content) -> bool | None:
    by_metadata = _same_metadata(url, content.metadata_sha256)
    if by_metadata is not None or not content.record_sha256 or not url.endswith(".whl"):
        return by_metadata
    record = read_record(url)
    return None if record is None else record_digest(as_installed(record))[0] == content.record_sha256


def _same_metadata(url: str, expected: str) -> bool | None:
    """PEP 658: ``FILE.whl.metadata`` beside the wheel is its METADATA, byte for byte."""
    try:
        with urllib.request.urlopen(f"{url}.metadata", timeout=METADATA_LIMIT_S) as answer:
            raw = answer.read(METADATA_LIMIT_BYTES)
    except (OSError, ValueError, urllib.error.URLError):
        return None
    return f"sha256:{hashlib.sha256(raw).hexdigest()}" == expected if expected else None
