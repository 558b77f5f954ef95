"""Readings: what was asked of a machine and how the answer was had; the bases of all records."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from runner.text import Text

SCHEMA = 1
"""Version of the snapshot and report formats; older ones stay readable."""

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of every record: frozen, keyword-only, defaults left out on disk."""


# ---------------------------------------------------------------------------------------------------- readings
Status = Literal["ok", "absent", "failed", "skipped"]


class OtherAnswer(Record, frozen=True):
    """What another source said of the same fact; kept, since disagreement is a finding."""

    source: str
    value: str = ""
    why: Text | None = None


class Reading(Record, Generic[T], frozen=True):
    """The answer to "what is there?", with how it was had.

    ``ok``: read. ``absent``: looked, and it is not there. ``failed``: could not look. ``skipped``: nobody looked
    (checks stay silent, the report lists it). The four are never the same.
    """

    status: Status
    value: T | None = None
    why: Text | None = None
    source: str = ""
    """Where it was read: a path, an API or a command, as a person would look it up."""
    took_ms: float | None = None
    others: tuple[OtherAnswer, ...] = ()


def ok(
    value: T, source: str = "", took_ms: float | None = None, others: tuple[OtherAnswer, ...] = ()
) -> Reading[T]:
    return Reading(status="ok", value=value, source=source, took_ms=took_ms, others=others)


def skipped() -> Reading[T]:
    return Reading(status="skipped")


class Section(Record, frozen=True):
    """Base of the sections of :class:`Facts`."""

    unread: dict[str, Text] = {}
    """Field name -> why that field could not be read though the section could."""
