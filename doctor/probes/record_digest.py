"""The content of one installed distribution as digests that do not depend on who installed it, nor where.

A digest over RECORD: the sorted ``path,hash`` rows, without compiled caches, without what lies outside site-packages
(scripts hold the interpreter's path) and without the notes that installers add. Of one wheel, pip's and uv's agree.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from doctor.model import Content, t
from doctor.probes.bounded import read_bytes, text_or_empty
from doctor.probes.dist_info import name_and_version, normalise, parse_headers
from doctor.probes.gaps import reason_of
from runner.strings import printable

RECORD_LIMIT_BYTES = 64 << 20
METADATA_LIMIT_BYTES = 8 << 20
# RECORD, RECORD.jws, INSTALLER, REQUESTED, direct_url.json, uv_cache.json, uv_build.json
_NOTES = re.compile(
    rb"[^/]+\.dist-info/(?:RECORD(?:\.jws|\.p7s)?|INSTALLER|REQUESTED|direct_url\.json|uv_[a-z_]+\.json)$"
)


def all_rows(record: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield ``(path, hash)`` of every row. ``hash`` is ``sha256=...``, empty where none is noted."""
    for line in record.splitlines():
        if line.startswith(b'"'):  # "odd,name.py",sha256=...,12
            yield _quoted(line)
        elif line:
            path, _, rest = line.partition(b",")
            yield path, rest.partition(b",")[0]


def record_rows(record: bytes) -> list[tuple[bytes, bytes]]:
    """Return the rows that count, sorted, each once."""
    return sorted({row for row in all_rows(record) if row[0] and counts(row[0])})


def _quoted(line: bytes) -> tuple[bytes, bytes]:
    import csv

    fields = next(csv.reader([line.decode("utf-8", "surrogateescape")]), [])
    path, noted = (*fields, "", "")[:2]
    return path.encode("utf-8", "surrogateescape"), noted.encode("utf-8", "surrogateescape")


def counts(path: bytes) -> bool:
    """Whether a RECORD path is part of what was installed, the same wherever the wheel is."""
    if path.endswith((b".pyc", b".pyo", b"/")) or path.startswith(
        (b"../", b"/")
    ):  # cmake's lists folders, too
        return False
    return b".dist-info/" not in path or not _NOTES.match(path)


def record_digest(record: bytes) -> tuple[str, int]:
    """Return ``sha256:HEX`` over the rows that count, and how many they are."""
    rows = record_rows(record)
    digest = hashlib.sha256(b"".join(b"%s,%s\n" % row for row in rows)).hexdigest()
    return f"sha256:{digest}", len(rows)


def read_content(site: str, folder_name: str) -> Content:
    """Return what ``site/folder_name`` proves of its distribution; a digest that cannot be had says why."""
    folder = f"{site}/{folder_name}"
    found: dict[str, Any] = {"location": printable(site)}
    found["name"], found["version"] = map(printable, name_and_version(folder_name))
    try:
        metadata = read_bytes(f"{folder}/METADATA", METADATA_LIMIT_BYTES)
    except OSError as error:
        found["why"] = t(
            "{path} could not be read: {error}", path=printable(f"{folder}/METADATA"), error=reason_of(error)
        )
    else:
        found["metadata_sha256"] = f"sha256:{hashlib.sha256(metadata).hexdigest()}"
        found |= _named(metadata)
    found["build"] = _build_tag(folder)
    found |= parse_origin(text_or_empty(f"{folder}/direct_url.json", 1 << 14))
    return Content(**{**found, **_record_of(folder, bool(found.get("editable")), found.get("why"))})


def _named(metadata: bytes) -> dict[str, str]:
    headers = parse_headers(metadata[: 1 << 16])
    name, version = headers.get("Name", [""])[0].strip(), headers.get("Version", [""])[0].strip()
    named = {"name": printable(normalise(name))} if name else {}
    return {**named, "version": printable(version)} if version else named


def _build_tag(folder: str) -> str:
    # Build: 1
    found = re.search(r"^Build: *(\S+)", text_or_empty(f"{folder}/WHEEL", 1 << 14), re.MULTILINE)
    return printable(found[1]) if found else ""


def _record_of(folder: str, editable: bool, why: object) -> dict[str, Any]:
    if editable:  # its RECORD names this machine's paths
        return {"why": why}
    try:
        record = read_bytes(f"{folder}/RECORD", RECORD_LIMIT_BYTES)
    except OSError as error:
        return {"why": t("{path} could not be read: {error}", path=printable(f"{folder}/RECORD"), error=reason_of(error))}  # fmt: skip
    if len(record) >= RECORD_LIMIT_BYTES:
        return {"why": t("{path} is larger than {limit} MB", path=printable(f"{folder}/RECORD"), limit=RECORD_LIMIT_BYTES >> 20)}  # fmt: skip
    digest, files = record_digest(record)
    return {"record_sha256": digest, "record_files": files, "why": why}


# ---------------------------------------------------------------------------------------- direct_url.json
_HEX = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[\w./+~^@{}-]{1,200}")


def parse_origin(text: str) -> dict[str, Any]:
    """Return what direct_url.json says: url (cleaned), editable, vcs and its commit, the archive's sha256."""
    try:
        noted = json.loads(text) if text else {}
        url = urlsplit(noted["url"]) if noted else None
    except (ValueError, TypeError, KeyError):
        return {}
    if url is None:
        return {}
    found: dict[str, Any] = {
        "url": printable(urlunsplit((url.scheme, _host(url.netloc), url.path, "", ""))),
        "editable": bool(_part(noted, "dir_info").get("editable")),
    }
    if isinstance(folder := noted.get("subdirectory"), str):
        found["subdirectory"] = printable(folder)
    vcs, archive = _part(noted, "vcs_info"), _part(noted, "archive_info")
    for key, name in (("vcs", "vcs"), ("commit_id", "commit"), ("requested_revision", "requested_revision")):
        if isinstance(value := vcs.get(key), str) and _REVISION.fullmatch(value):
            found[name] = value
    digest = _part(archive, "hashes").get("sha256") or str(archive.get("hash", "")).removeprefix("sha256=")
    if isinstance(digest, str) and _HEX.fullmatch(digest):
        found["archive_sha256"] = f"sha256:{digest}"
    return found


def _host(netloc: str) -> str:
    """Return where without who; ``git@`` is nobody."""
    user, at, host = netloc.rpartition("@")
    return netloc if at and user == "git" else host


def _part(noted: dict[str, Any], key: str) -> dict[str, Any]:
    value = noted.get(key)
    return value if isinstance(value, dict) else {}


def source_folder(content: Content) -> Path | None:
    """Return the folder of an editable install."""
    from urllib.parse import unquote

    if not (content.editable and content.url and content.url.startswith("file://")):
        return None
    return Path(unquote(content.url.removeprefix("file://")))
