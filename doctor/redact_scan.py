"""Credentials in a text that must stay word for word (a patch, a script): found and named by file and line, not cut. Pure.

Cutting would break the text, so it is all or nothing. A hit must look like a credential: code is full of words such as
key and token, of commits and of digests, and a refusal for those would teach people to switch the scan off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from doctor.redact_secrets import _BEARER, _SHAPES, is_secret_name

__all__ = ["Hit", "secrets_in_patch", "secrets_in_text"]


class Hit(NamedTuple):
    file: str
    line: int
    """In the file as it is now; of a line that was taken out, where it stood."""
    kind: str
    """shape, password in an address, value of NAME, bare key, name of the file."""


# .env  .env.local  id_rsa  server.pem  service-account.json  .netrc  .pypirc  kaggle.json
_PRIVATE_FILES = re.compile(
    r"(^|/)(\.env(\.(?!example|sample|template)[\w.]+)?|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pypirc|\.git-credentials|kaggle\.json"
    r"|credentials(\.json)?|service[-_]account[\w-]*\.json|[^/]+\.(pem|p12|pfx|keystore|jks))$"
)
# https://user:password@host   https://token@host
_LOGIN = re.compile(
    r"\b[A-Za-z][A-Za-z0-9+.-]*://(?!git@|\$|\{|<)([^\s/@:\"'<>{}$]+)(?::([^\s/@\"'<>{}$]+))?@[\w.-]+"
)
# X-Amz-Signature=..., sig=..., access_token=... in an address
_SIGNED = re.compile(r"[?&](?:X-Amz-Signature|sig|signature|access_token|token|auth|key|api_key)=([A-Za-z0-9%+/=_-]{8,})", re.IGNORECASE)  # fmt: skip
# HF_TOKEN = "abc...", password: 'abc', --hub_token abc
_ASSIGNED = re.compile(
    r"""(?:(?P<option>--?[A-Za-z][\w.-]*)\s+|(?P<name>[A-Za-z][\w.-]*)["']?\s*[=:]\s*)(?P<quote>["']?)(?P<value>[^\s"',;)}\]]+)(?P=quote)"""
)
# "0123456789abcdef0123456789abcdef01234567", a W&B key, in quotes and on no line that speaks of commits
_BARE_KEY = re.compile(r"""["'][0-9a-f]{40}["']""")
_SPEAKS_OF_COMMITS = re.compile(
    r"commit|sha|rev|digest|hash|checksum|blob|index|tree|ref|oid|fingerprint", re.IGNORECASE
)
_CODE = re.compile(
    r"[(){}\[\]$<>]|^(?:os|self|args|config|cfg|getenv|None|True|False|str|int|input|lambda)\b"
)


def secrets_in_text(text: str, file: str) -> list[Hit]:
    """Return what looks like a credential in a whole file."""
    hits = [Hit(file, 0, "name of the file")] if _PRIVATE_FILES.search(file) else []
    return hits + [
        Hit(file, number, kind) for number, line in enumerate(text.splitlines(), 1) for kind in kinds_in(line)
    ]


def secrets_in_patch(patch: str) -> list[Hit]:
    """Return what looks like a credential in a patch as git writes it: added, removed and context lines alike."""
    hits: list[Hit] = []
    file, number, binary = "", 0, False
    for line in patch.splitlines():
        # diff --git a/train.py b/train.py
        if line.startswith("diff --git "):
            file, binary = line.rpartition(" b/")[2].strip('"'), False
            hits += [Hit(file, 0, "name of the file")] if _PRIVATE_FILES.search(file) else []
        elif line.startswith("GIT binary patch"):
            binary = True
        elif match := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            number = int(match[2]) or int(match[1])
        elif not binary and line[:1] in ("+", "-", " ") and not line.startswith(("+++ ", "--- ")):
            hits += [Hit(file, number, kind) for kind in kinds_in(line[1:])]
            number += line[0] != "-"
    return hits


def kinds_in(line: str) -> Iterator[str]:
    """Yield what a line holds that looks like a credential, once a kind."""
    if _SHAPES.search(line) or _BEARER.search(line):
        yield "shape"
    if any(_is_login(match) for match in _LOGIN.finditer(line)):
        yield "password in an address"
    if _SIGNED.search(line):
        yield "signature in an address"
    if name := next(_secret_names(line), ""):
        yield f"value of {name}"
    if _BARE_KEY.search(line) and not _SPEAKS_OF_COMMITS.search(line):
        yield "bare key"


def _is_login(match: re.Match[str]) -> bool:
    user, password = match[1], match[2]
    placeholder = (password or user).lower() in (
        "password",
        "pass",
        "pw",
        "secret",
        "token",
        "user",
        "xxx",
        "***",
    )
    return not placeholder and (password is not None or len(user) >= 12)


def _secret_names(line: str) -> Iterator[str]:
    position = 0
    while match := _ASSIGNED.search(line, position):
        position = max(match.start("value"), match.start() + 1)
        name = match["option"] or match["name"]
        if is_secret_name(name) and _is_literal_secret(match["value"], is_weak(name)):
            yield name


def is_weak(name: str) -> bool:
    """``key`` and ``pass`` alone are ordinary words of code; ``api_key`` and ``password`` are not."""
    return name.lower().strip("-") in ("key", "pass", "auth", "pat", "sig", "signature", "private", "cred") or "license" in name.lower()  # fmt: skip


def _is_literal_secret(value: str, weak: bool) -> bool:
    """A value written out: long enough, letters and digits mixed, no variable, no call, no placeholder."""
    if _CODE.search(value) or len(value) < (16 if weak else 8) or re.fullmatch(r"[xX*.\-_]+", value):
        return False
    if re.search(r"your|example|placeholder|changeme|dummy|test|xxxx|\*\*\*", value, re.IGNORECASE):
        return False
    mixed = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return mixed and not (weak and re.search(r"[./]", value))
