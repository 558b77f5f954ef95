"""Where a snapshot comes from: this machine's probes, or a file. From there on nobody can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from doctor import __version__
from doctor.model import SCHEMA, SECTIONS, Facts, Snapshot, t
from runner.text import Text

if TYPE_CHECKING:
    from doctor.probes import Context

SNAPSHOT_LIMIT_BYTES = 64 << 20
"""A snapshot file larger than this is not ours."""


VERSION_LIMIT = 500
_NEVER_NEGATIVE = ("_bytes", "_count", "_w", "_mhz", "_cores", "_pct")


class BadSnapshot(ValueError):  # noqa: N818 - it is what it says
    """A file that is not a snapshot, or a broken one. ``text`` says what and where."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def live_snapshot(
    context: Context,
    sections: Iterable[str] | None = None,
    deadline_s: float | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Snapshot:
    """Read this machine. Never raises for what it meets there: that is what readings are for.

    ``meanwhile`` is called while the probes wait.
    """
    from doctor.probes import DEADLINE_S, read_facts

    return Snapshot(
        taken_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tool=f"rundoctor {__version__}",
        facts=read_facts(context, sections, DEADLINE_S if deadline_s is None else deadline_s, meanwhile),
    )


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot file, ours or a run directory's.

    Raises:
        OSError: it cannot be read.
        BadSnapshot: it is not JSON, not a snapshot, cut in half, or of a schema newer than ours.
    """
    if path.is_dir():
        path = path / "snapshot.json"
    with open(path, "rb") as file:
        raw = file.read(SNAPSHOT_LIMIT_BYTES + 1)
    return decode_snapshot(raw, str(path))


def decode_snapshot(raw: bytes, name: str) -> Snapshot:
    """Decode a snapshot from its bytes; see :func:`load_snapshot` for what is raised."""
    if len(raw) > SNAPSHOT_LIMIT_BYTES:
        raise BadSnapshot(
            t("{file} is larger than {limit} MB: not a snapshot", file=name, limit=SNAPSHOT_LIMIT_BYTES >> 20)
        )
    try:
        tree = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSnapshot(
            t("{file} is not JSON, or was cut short: {error}", file=name, error=str(error))
        ) from None
    if not isinstance(tree, dict) or "facts" not in tree or not isinstance(tree.get("schema", SCHEMA), int):
        raise BadSnapshot(t("{file} is JSON, but not a doctor snapshot (no facts in it)", file=name))
    if tree.get("schema", SCHEMA) > SCHEMA:
        raise BadSnapshot(
            t("{file} has snapshot schema {theirs}; this doctor reads up to {ours}. Update rundoctor.",
              file=name, theirs=tree["schema"], ours=SCHEMA)
        )  # fmt: skip
    try:
        snapshot = msgspec.convert(tree, Snapshot, strict=True)
    except msgspec.ValidationError as error:
        raise BadSnapshot(t("{file} is not a valid snapshot: {error}", file=name, error=str(error))) from None
    facts = {name: reading for name, reading in tree["facts"].items() if name in SECTIONS}
    if nonsense := next(_nonsense(facts, "$.facts"), ""):
        raise BadSnapshot(t("{file} is not a valid snapshot: {error}", file=name, error=nonsense))
    unknown = tuple(sorted(_unknown_keys(tree)))
    return msgspec.structs.replace(snapshot, unknown_keys=unknown) if unknown else snapshot


def _nonsense(value: Any, path: str, key: str = "") -> Iterator[str]:
    """Yield what no machine can say: a reading that is "ok" and empty, a size below zero, a version without end."""
    if isinstance(value, dict):
        if value.get("status") == "ok" and value.get("value") is None and path.count(".") == 2:
            yield f'"ok" and no value - at `{path}`'
        for name, item in value.items():
            yield from _nonsense(item, f"{path}.{name}", name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nonsense(item, f"{path}[{index}]", key)
    elif isinstance(value, str) and key.endswith("version") and len(value) > VERSION_LIMIT:
        yield f"{len(value)} characters are no version - at `{path}`"
    elif isinstance(value, (int, float)) and value < 0 and key.endswith(_NEVER_NEGATIVE):
        yield f"{value} is below zero - at `{path}`"


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the file's bytes: indented JSON that always names its schema, one line end at the end."""
    tree = {"schema": snapshot.schema, **msgspec.to_builtins(snapshot)}
    return msgspec.json.format(msgspec.json.encode(tree), indent=1) + b"\n"


def _unknown_keys(tree: dict[str, Any]) -> list[str]:
    found = [key for key in tree if key not in Snapshot.__struct_fields__]
    facts = tree["facts"] if isinstance(tree["facts"], dict) else {}
    for section, reading in facts.items():
        if section not in SECTIONS:
            found.append(f"facts.{section}")
        elif isinstance(reading, dict) and isinstance(reading.get("value"), dict):
            known = SECTIONS[section].__struct_fields__
            found += [f"facts.{section}.value.{key}" for key in reading["value"] if key not in known]
    return found


def with_facts(snapshot: Snapshot, **readings: Any) -> Snapshot:
    """Return ``snapshot`` with some sections replaced (a purpose added to a machine)."""
    facts: Facts = msgspec.structs.replace(snapshot.facts, **readings)
    return msgspec.structs.replace(snapshot, facts=facts)
