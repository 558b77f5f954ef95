"""The Chinese catalogue: extract msgids, hold the parts against them, compile. ``python -m tests.catalogue [--write]``.

Parts are ``doctor/locale/zh_CN/*.po``, one a subject; the compiled ``LC_MESSAGES/doctor.mo`` beside them is what ships.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from doctor.tables import load
from doctor.tables.xids import KINDS
from runner.strings import fields_of

ROOT = Path(__file__).parent.parent
PARTS = ROOT / "doctor" / "locale" / "zh_CN"
COMPILED = PARTS / "LC_MESSAGES" / "doctor.mo"
MARKERS = ("t", "say")


def msgids_in(source: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield ``(msgid, place)`` of every marked literal in Python ``source``.

    Raises:
        ValueError: ``t`` is called with something that is not one literal string, which nothing could extract.
    """
    for node in ast.walk(ast.parse(source)):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in MARKERS
            and node.args
        ):
            continue
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            if first.value:
                yield first.value, f"{name}:{node.lineno}"
        elif node.func.id == "t" or isinstance(first, ast.JoinedStr):
            raise ValueError(f"{name}:{node.lineno}: {node.func.id}() wants one literal string")


def extracted(root: Path = ROOT) -> dict[str, str]:
    """Return every msgid of ``doctor`` and ``runner`` with the first place it stands; those of tables as well."""
    found: dict[str, str] = {}
    for package in ("doctor", "runner"):
        for path in sorted((root / package).rglob("*.py")):
            for msgid, place in msgids_in(path.read_text("utf-8"), str(path.relative_to(root))):
                found.setdefault(msgid, place)
    for kind in KINDS:
        for number, meaning in load("xids")[kind].items():
            found.setdefault(meaning, f"doctor/tables/xids.toml:{number}")
    return found


def translations() -> tuple[dict[str, str], list[str]]:
    """Return ``(msgid -> Chinese, problems)`` over all parts."""
    merged: dict[str, str] = {}
    problems = []
    for path in sorted(PARTS.glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, locale="zh_CN", abort_invalid=True)
        for message in catalogue:
            if not message.id or not isinstance(message.id, str):
                continue
            text = str(message.string)
            if message.id in merged and merged[message.id] != text:
                problems.append(f"{path.name}: translated again, differently: {message.id!r}")
            merged[message.id] = text
    return merged, problems


def problems() -> list[str]:
    """Return what is wrong with the catalogue, one sentence each: missing, empty, obsolete, fields that differ."""
    wanted = extracted()
    have, found = translations()
    for msgid, place in wanted.items():
        if not have.get(msgid):
            found.append(f"{place}: not translated: {msgid!r}")
        elif sorted(set(fields_of(msgid))) != sorted(set(fields_of(have[msgid]))):
            found.append(f"{place}: fields differ: {msgid!r} / {have[msgid]!r}")
    found += [f"obsolete, no code says it: {msgid!r}" for msgid in have if msgid not in wanted]
    return found


def compiled() -> bytes:
    """Return the bytes of the .mo that the parts make."""
    catalogue = Catalog(locale="zh_CN", charset="utf-8", header_comment="")
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 11, 30, tzinfo=timezone.utc)
    for msgid, text in sorted(translations()[0].items()):
        catalogue.add(msgid, text)
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def main() -> int:
    """Print the problems; with ``--write``, drop obsolete entries' complaint and write the .mo."""
    found = problems()
    print("\n".join(found))
    print(f"{len(extracted())} msgids, {len(found)} problems")
    if "--write" in sys.argv:
        COMPILED.parent.mkdir(parents=True, exist_ok=True)
        COMPILED.write_bytes(compiled())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
