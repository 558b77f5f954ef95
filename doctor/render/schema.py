"""The JSON Schemas of what is written for machines: the report of ``check --json``, the snapshot file, a line of ``watch --json``."""

from __future__ import annotations

from typing import Any

import msgspec

from doctor.model import Report, Snapshot
from doctor.render.watch_shape import DESCRIPTIONS, WatchLine

NAMES = ("report", "snapshot", "watch")

# What ``check --json`` adds to the Report record.
_ADDED = {
    "tool": {"type": "string"},
    "exit_code": {"type": "integer"},
    "environment": {
        "type": "string",
        "description": "The headline of the judged environment, in the report's language.",
    },
    "deep": {
        "type": "object",
        "description": "With --deep: what was tried in the examined interpreter, as in the snapshot's facts.deep.",
    },
    "machine": {"type": "string", "description": "The headline of the machine, in the report's language."},
}


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) called ``report``, ``snapshot`` or ``watch``.

    Raises:
        KeyError: there is no schema of that name.
    """
    schema = msgspec.json.schema({"report": Report, "snapshot": Snapshot, "watch": WatchLine}[name])
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if name == "report":
        schema["$defs"]["Report"]["properties"].update(_ADDED)
        schema["$defs"]["Text"]["properties"]["text"] = {
            "type": "string",
            "description": "The sentence, said.",
        }
    if name == "watch":
        for key, words in DESCRIPTIONS.items():
            schema["$defs"]["WatchLine"]["properties"][key]["description"] = words
    return schema


def encoded(name: str) -> str:
    """Return the schema as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(json_schema(name)), indent=1).decode()
