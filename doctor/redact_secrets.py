"""Credentials out of any string: addresses, ``name=value``, command-line options, and by their shape. Pure."""

from __future__ import annotations

import re
from functools import cache

from doctor.tables import load

GONE = "***"


@cache
def _secret_words() -> frozenset[str]:
    return frozenset(load("variables")["secret_words"])


# In a name, these say that the value is a number, a place or a model's token, not a credential.
_HARMLESS_WORDS = frozenset({
    "id", "ids", "len", "length", "size", "count", "num", "max", "min", "type", "file", "path", "dir",
    "error", "exception", "pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "image", "video",
    "audio", "speech", "next", "new", "prefix", "suffix", "middle", "start", "end", "stop", "tokenizer",
    "tokens", "per",
})  # fmt: skip
# Alone, these words are common in ordinary text (``key=lambda``, ``KeyError: 5``): the value must look like a secret.
_WEAK_ALONE = frozenset(["key", "pass", "auth", "pat", "license", "signature", "sig", "private", "cred"])


def _words(name: str) -> list[str]:
    # HF_TOKEN, wandbApiKey, --hub-token
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_secret_name(name: str) -> bool:
    """Return whether a variable, option or setting of this name holds a credential: by its words, not its letters.

    ``HF_TOKEN``, ``wandbApiKey`` and ``PGPASSWORD`` do; ``TOKENIZERS_PARALLELISM``, ``pad_token`` and ``KEYBOARD``
    do not.
    """
    words = _words(name)
    if _HARMLESS_WORDS.intersection(words):
        return any(word in ("secret", "password", "access") for word in words)
    return any(word in _secret_words() or word.endswith(("password", "passwd", "apikey")) for word in words)


def is_credential_variable(name: str) -> bool:
    """Return whether a variable of this name has to be set again by hand; PWD is the shell's own folder."""
    return name not in ("PWD", "OLDPWD") and is_secret_name(name)


# Shapes that issuers gave their credentials so that they can be found.
_SHAPES = re.compile(
    r"""
      \b(?:hf|api_org)_[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bgl(?:pat|ptt|dt)-[A-Za-z0-9_-]{16,}
    | \bsk-[A-Za-z0-9_-]{16,} | \b(?:rpa|nvapi|npm|dop_v1|wandb_v1)[_-][A-Za-z0-9_-]{16,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{12,} | \bAIza[0-9A-Za-z_-]{30,} | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \bpypi-[A-Za-z0-9_-]{16,} | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----
    """,
    re.VERBOSE,
)
# A bare 40 or 64 hex digits: a W&B or vast.ai key, unless it is a commit or a digest.
_BARE_HEX = re.compile(
    r"(?<!sha256=)(?<!sha256:)(?<!sha1=)(?<![\w@/.-])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![\w])"
)
_BEARER = re.compile(
    r"\b(Bearer|Basic|token)(\s+)(?=[A-Za-z0-9._~+/=-]*\d)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE
)
_VALUE = r"""(?P<value>"[^"]*"?|'[^']*'?|(?:[^\s"'&;,]|,(?!\s))+)"""
# NAME=value, "name": "value", --name=value
_ASSIGNED = re.compile(r"""(?P<name>[A-Za-z][\w.-]*)(?P<gap>["']?\s*[=:]\s*)""" + _VALUE)
# --name value
_OPTION = re.compile(r"""(?P<name>(?<![\w-])--?[A-Za-z][\w.-]*)(?P<gap>\s+)(?!-)""" + _VALUE)
# https://me:pw@host/x, and as a path makes of it: https:/me:pw@host/x
_URL = re.compile(r"""(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*:/(?:/|(?=[^\s"'<>/]*@)))(?P<rest>[^\s"'<>]+)""")
_PEM = re.compile(r"-----BEGIN[ A-Z]*PRIVATE KEY-----(?s:.*?)(?:-----END[ A-Z]*PRIVATE KEY-----|$)")


# What each of the shapes has in it, to pass by what cannot be one: most strings of a machine are versions and paths.
_SHAPE_MARKS = (
    "hf_", "api_org_", "gh", "gl", "sk-", "rpa", "nvapi", "npm", "dop_v1", "wandb_v1", "AKIA", "ASIA", "AIza", "xox", "pypi-", "eyJ",
)  # fmt: skip


@cache
def _may_name_a_secret() -> re.Pattern[str]:
    """Every secret name has one of these words in it."""
    return re.compile(
        "|".join(sorted(map(re.escape, _secret_words() | {"apikey", "passwd", "password"}))), re.IGNORECASE
    )


def without_secrets(text: str) -> str:
    """Return ``text`` with every credential in it replaced by ``***``. Applying it twice changes nothing more."""
    if len(text) < 6:
        return text
    text = _PEM.sub(GONE, text) if "PRIVATE KEY" in text else text
    if ":/" in text:
        text = _URL.sub(lambda match: match["scheme"] + _clean_rest(match["rest"]), text)
    text = _BEARER.sub(rf"\1\2{GONE}", text) if " " in text else text
    assigned, option = "=" in text or ":" in text, "-" in text and " " in text
    if (assigned or option) and _may_name_a_secret().search(text):
        text = _hide_values(_ASSIGNED, text) if assigned else text
        text = _hide_values(_OPTION, text) if option else text
    text = _SHAPES.sub(GONE, text) if any(mark in text for mark in _SHAPE_MARKS) else text
    return _BARE_HEX.sub(GONE, text) if len(text) >= 40 else text


def _hide_values(pattern: re.Pattern[str], text: str) -> str:
    """Hide the values of secret names. The value of any other name is searched too: it may be the next assignment."""
    pieces, position = [], 0
    while match := pattern.search(text, position):
        end = (
            match.end() if _is_secret_pair(match["name"], match["gap"], match["value"]) else match.end("gap")
        )
        pieces.append(text[position : match.start("value")])
        if end == match.end():
            quote = match["value"][0] if match["value"][0] in "\"'" else ""
            pieces.append(quote + GONE + quote)
        position = end
    return "".join([*pieces, text[position:]])


def _is_secret_pair(name: str, gap: str, value: str) -> bool:
    bare = value.strip("\"'")
    if bare.startswith(("$", GONE, "//")) or bare.lower() in ("true", "false", "none", "null", ""):
        return False
    if not is_secret_name(name):
        return False
    words = _words(name)
    weak = len(words) == 1 and (words[0] in _WEAK_ALONE or ":" in gap)
    return not weak or _may_be_secret(bare)


def _may_be_secret(value: str) -> bool:
    return len(value) >= 6 and any(letter.isdigit() for letter in value)


def _clean_rest(rest: str) -> str:
    """Clean what follows the scheme: no userinfo, no query, no token in the path."""
    if re.match(r"[^/@]*:(?!\d+(?:/|$))[^/@]*/[^@]*@", rest):  # a password with an unescaped slash
        rest = rest.rpartition("@")[2]
    address, mark, fragment = rest.partition("#")
    address = address.partition("?")[0]
    authority, slash, path = address.partition("/")
    userinfo, at, host = authority.rpartition("@")
    kept = (
        f"{userinfo}@"
        if at and (userinfo == "git" or re.fullmatch(r"\$\{\w+\}(:\$\{\w+\})?", userinfo))
        else ""
    )
    return kept + host + slash + _clean_path(path) + (mark + fragment if _is_harmless(fragment) else "")


# sha256=..., egg=name, subdirectory=path: what a requirement's address may say after the hash sign
_HARMLESS_FRAGMENT = re.compile(r"sha256=[0-9a-f]{64}|egg=[\w.\[\]-]+|subdirectory=[\w./-]+")


def _is_harmless(fragment: str) -> bool:
    return bool(fragment) and all(_HARMLESS_FRAGMENT.fullmatch(part) for part in fragment.split("&"))


def _clean_path(path: str) -> str:
    # t/TOKEN/channel (conda), TOKEN/simple (a private index)
    parts = path.split("/")
    return "/".join(_clean_part(part, parts[index - 1] if index else "") for index, part in enumerate(parts))


def _clean_part(part: str, before: str) -> str:
    name, at, revision = part.partition("@")
    if before == "t" or _looks_random(name):
        return GONE + at + revision
    return part


def _looks_random(word: str) -> bool:
    """Letters and digits mixed through a word of 20 and more: a token. A digest in hex is one too: nothing is lost."""
    if not re.fullmatch(r"[A-Za-z0-9_~=+-]{20,}", word):
        return False
    changes = len(re.findall(r"[A-Za-z]\d|\d[A-Za-z]", word))
    return changes >= 4
