"""``[alerts]`` of a profile, or ``--alert``: who is told of what in a run. Off by default, and no part of the plan.

A webhook's address is a key to somebody's chat: it is kept beside the plan in ``alerts.json``, which only its owner may
read, and is never shown whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from runner.rundir import RunDir
from runner.text import Text, t
from runner.tomltree import TomlTree, apply_overrides, field_problems, read_toml

KINDS = (
    "finished", "failed", "stalled", "hung", "non-finite", "loss-spike", "overfitting", "vram", "throttled", "temperature", "disk", "xid",
)  # fmt: skip
Kind = Literal[
    "finished", "failed", "stalled", "hung", "non-finite", "loss-spike", "overfitting", "vram", "throttled", "temperature", "disk", "xid",
]  # fmt: skip
# $WECOM_URL
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class AlertsSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[alerts]``"""

    to: list[str] = []
    """``bell``, ``webhook=URL`` (or ``webhook=$NAME``: a variable holds it), ``command=CMD``."""
    kinds: list[Kind] = []
    """Empty: all."""
    body: str = ""
    """What is posted to a webhook: JSON with ``{text}`` in it; empty: what its host is known to take."""

    @property
    def is_on(self) -> bool:
        return bool(self.to)

    def wants(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds


OFF = AlertsSection()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``to``, taken apart."""

    kind: Literal["bell", "webhook", "command"]
    value: str = ""
    """The address (it may be a variable's name behind ``$``), or the command."""

    def resolved(self, environ: dict[str, str]) -> str:
        """Return the address or command; an address out of the variable that it names. Empty: it is not set."""
        found = _VARIABLE.fullmatch(self.value) if self.kind == "webhook" else None
        return self.value if found is None else environ.get(found[1] or found[2], "").strip()


def place_of(word: str) -> Place | Text:
    """Return what one of ``to`` means, or what is wrong with it. An address is not repeated in that."""
    kind, equals, value = word.strip().partition("=")
    if word.strip() == "bell":
        return Place(kind="bell")
    if word.startswith(("https://", "http://")):
        kind, equals, value = "webhook", "=", word.strip()
    if kind == "webhook" and equals:
        return _webhook(value.strip())
    if kind == "command" and value.strip():
        return Place(kind="command", value=value.strip())
    return t(
        "an alert goes to bell, webhook=URL, webhook=$NAME or command=CMD (not to {word})", word=kind[:20]
    )


def _webhook(value: str) -> Place | Text:
    if _VARIABLE.fullmatch(value) or is_address(value):
        return Place(kind="webhook", value=value)
    return t(
        "webhook= takes an address that begins with https:// (or http://), or $NAME for a variable that holds one"
    )


def is_address(value: str) -> bool:
    """Return whether ``value`` is what a message can be posted to."""
    try:
        parts = urlsplit(value)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_whole and parts.scheme in ("http", "https") and value.isprintable() and " " not in value


def problems_of(section: AlertsSection) -> Iterator[Text]:
    """Yield what is wrong in a section whose fields are of their types."""
    for word in section.to:
        place = place_of(word)
        if isinstance(place, Text):
            yield place
    if section.body:
        try:
            json.loads(section.body)
        except ValueError as error:
            yield t("alerts.body is no JSON: {error}", error=str(error))
            return
        if "{text}" not in section.body:
            yield t("alerts.body has no {field} in it: nothing would be said", field="{text}")


def read_alerts(path: Path, overrides: Sequence[str] = ()) -> tuple[AlertsSection, list[Text]]:
    """Return the ``[alerts]`` of a profile (off where it has none), and every mistake in it."""
    tree, problems = read_toml(path)
    tree, _ = apply_overrides(tree, overrides)
    part = tree.values.get("alerts")
    if problems or part is None:
        return OFF, []  # what is wrong with the file is the profile's own problem
    alone = TomlTree(values={"alerts": part}, lines=tree.lines, overridden=tree.overridden)
    wrong = [problem for _, problem in field_problems(alone, _File)]
    if wrong:
        return OFF, wrong
    section = msgspec.convert(part, AlertsSection)
    return section, list(problems_of(section))


class _File(msgspec.Struct, frozen=True, kw_only=True):
    alerts: AlertsSection = OFF


# -- beside a run
def write_settings(run: RunDir, section: AlertsSection) -> None:
    """Keep the settings in the run's folder, for its owner's eyes. Raises OSError."""
    path = run.path / "alerts.json"
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch(0o600)
    temporary.write_bytes(msgspec.json.encode(section))
    temporary.replace(path)


def read_settings(run: RunDir) -> AlertsSection:
    """Return the settings kept beside a run; off where there are none, or where they cannot be read."""
    try:
        return msgspec.json.decode((run.path / "alerts.json").read_bytes(), type=AlertsSection)
    except (OSError, msgspec.MsgspecError):
        return OFF
