"""Brings ``doctor/tables/ready.json`` up to date with the TOML files: ``python -m tests.tables
[--write]``."""

from __future__ import annotations

import json
import sys

from doctor.tables import READY, mark_of, parse


def current() -> bytes:
    """Return the bytes that ready.json should have."""
    tables = {}
    for path in sorted(READY.parent.glob("*.toml")):
        raw = path.read_bytes()
        tables[path.stem] = {"mark": mark_of(raw), "table": parse(raw)}
    return json.dumps(tables, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def main() -> int:
    """Say whether ready.json is up to date; with ``--write``, make it so."""
    if "--write" in sys.argv:
        READY.write_bytes(current())
    is_current = READY.exists() and READY.read_bytes() == current()
    print("up to date" if is_current else "stale: python -m tests.tables --write")
    return 0 if is_current else 1


if __name__ == "__main__":
    sys.exit(main())
