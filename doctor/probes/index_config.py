"""Which package indexes this session asks: pip's and uv's files and variables. Addresses only, never what opens them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.model import IndexLine, Text, t
from doctor.probes.bounded import read_text
from doctor.probes.gaps import reason_of
from doctor.redact_secrets import without_secrets
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

OPTIONS = ("index-url", "extra-index-url", "find-links")
_VARIABLES = {
    "PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url", "PIP_FIND_LINKS": "find-links",
    "UV_INDEX_URL": "index-url", "UV_DEFAULT_INDEX": "index-url", "UV_EXTRA_INDEX_URL": "extra-index-url",
    "UV_INDEX": "extra-index-url", "UV_FIND_LINKS": "find-links",
}  # fmt: skip


def read_indexes(context: Context, prefix: Path | None, unread: dict[str, Text]) -> tuple[IndexLine, ...]:
    """Return every configured index, the strongest source first."""
    found = [
        line
        for name, option in _VARIABLES.items()
        for line in lines_of(option, context.environ.get(name, ""), name)
    ]
    for path in _files(context, prefix):
        try:
            text = read_text(path, 1 << 18)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unread["indexes"] = t("{path} could not be read: {error}", path=printable(str(path)), error=reason_of(error))  # fmt: skip
            continue
        parse = parse_uv if path.suffix == ".toml" else parse_pip
        found += parse(text, printable(str(path)))
    return tuple(dict.fromkeys(found))


def _files(context: Context, prefix: Path | None) -> list[Path]:
    home = Path(context.environ.get("HOME") or "/nonexistent")
    config = Path(context.environ.get("XDG_CONFIG_HOME") or home / ".config")
    given = context.environ.get("PIP_CONFIG_FILE")
    return [
        *([Path(given)] if given and given != "/dev/null" else []),
        *([prefix / "pip.conf"] if prefix else []),
        home / ".pip/pip.conf", config / "pip/pip.conf", context.path("/etc/pip.conf"),
        context.cwd / "uv.toml", config / "uv/uv.toml", context.path("/etc/uv/uv.toml"),
    ]  # fmt: skip


def parse_pip(text: str, source: str) -> list[IndexLine]:
    """Return the index lines of a pip.conf; a file that is none gives none."""
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    return [
        line
        for section in parser.sections()
        for option in OPTIONS
        for key in (option, option.replace("-", "_"))
        if parser.has_option(section, key)
        for line in lines_of(option, parser.get(section, key), source)
    ]


def parse_uv(text: str, source: str) -> list[IndexLine]:
    """Return the index lines of a uv.toml."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tree: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return []
    found = []
    for option in OPTIONS:
        value = tree.get(option)
        found += lines_of(option, " ".join(value) if isinstance(value, list) else str(value or ""), source)
    indexes = tree.get("index")
    for row in indexes if isinstance(indexes, list) else []:
        if isinstance(row, dict) and isinstance(row.get("url"), str):
            found += lines_of("index-url" if row.get("default") else "extra-index-url", row["url"], source)
    return found


def lines_of(option: str, value: str, source: str) -> list[IndexLine]:
    """Return one line for each address in ``value``."""
    # PIP_EXTRA_INDEX_URL="https://a/simple https://b/simple"; UV_INDEX="name=https://..."
    words = [word.partition("=")[2] if "=http" in word else word for word in value.split()]
    return [IndexLine(option=option, url=printable(without_secrets(word)), source=source) for word in words]
