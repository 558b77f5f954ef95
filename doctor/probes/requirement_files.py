"""The requirement lines of a folder: requirements*.txt and pyproject.toml, each read within limits."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from doctor.model import Requirement, Text, t
from doctor.probes.bounded import read_bytes
from doctor.probes.gaps import reason_of
from doctor.redact_secrets import without_secrets
from runner.strings import printable

_FILES_LIMIT = 20
_LINES_LIMIT = 500
_FILE_LIMIT_BYTES = 256 << 10


def read_requirements(cwd: Path, names: list[str], unread: dict[str, Text]) -> list[Requirement]:
    files = [
        name
        for name in names
        if re.fullmatch(r"requirements.*\.(txt|in)|pyproject\.toml", name, re.IGNORECASE)
    ]
    found: list[Requirement] = []
    for name in files[:_FILES_LIMIT]:
        try:
            text = read_bytes(cwd / name, _FILE_LIMIT_BYTES).decode("utf-8-sig")
            lines = parse_pyproject(text) if name.endswith(".toml") else parse_requirements(text)
        except OSError as error:
            unread[printable(name)] = t(
                "{path} could not be read: {error}", path=printable(name), error=reason_of(error)
            )
        except UnicodeDecodeError:
            unread[printable(name)] = t("{path} is not UTF-8", path=printable(name))
        except ValueError as error:
            unread[printable(name)] = t(
                "{path} is broken: {error}", path=printable(name), error=printable(str(error))
            )
        else:
            found += [
                Requirement(line=without_secrets(printable(line)), file=printable(name)) for line in lines
            ]
    return found[:_LINES_LIMIT]


def parse_requirements(text: str) -> list[str]:
    """Return the requirement lines: comments and options (``-r``, ``--index-url``, ``--hash``) left out."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*$", "", line) for line in joined.splitlines())
    bare = (re.split(r"\s--?(?:hash|config-settings|global-option)\b", line)[0].strip() for line in lines)
    return [line for line in bare if line and not line.startswith("-")]


def parse_pyproject(text: str) -> list[str]:
    """Return ``[project] dependencies``.

    Raises:
        ValueError: it is not TOML, or its dependencies are not a list of strings.
    """
    # Imported here: most folders hold no such file, and the parser takes its time.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    project: Any = tomllib.loads(text).get("project", {})
    lines = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("project.dependencies is not a list of strings")
    return [line.strip() for line in lines if line.strip()]
