"""What a probe could not read, field by field, with the reason: ends as the section's ``unread``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from doctor.model import Text, t

if TYPE_CHECKING:
    from doctor.probes import Context

T = TypeVar("T")


class Gaps:
    """Reads files below a context's root and remembers why a field has no value."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.reasons: dict[str, Text] = {}

    def note(self, field: str, why: Text) -> None:
        """Keep the first reason given for ``field``."""
        self.reasons.setdefault(field, why)

    def text(self, field: str, *paths: str) -> str | None:
        """Return the first of ``paths`` that can be read; None, with the reason noted, where none can."""
        for path in paths:
            try:
                return self.context.read(path)
            except FileNotFoundError:
                self.note(field, t("{path} is not there", path=path))
            except OSError as error:
                self.note(field, t("{path} could not be read: {error}", path=path, error=reason_of(error)))
        return None

    def parse(self, field: str, path: str, parser: Callable[[str], T | None]) -> T | None:
        """Return what ``parser`` makes of the file; one that it cannot make sense of is noted, not raised."""
        text = self.text(field, path)
        if text is None:
            return None
        try:
            value = parser(text)
        except (ValueError, IndexError, KeyError):
            value = None
        if value is None:
            self.note(field, t("{path} does not say, or not in a form that is known", path=path))
        return value

    def names(self, field: str, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a folder; None, with the reason noted, where it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(self.context.path(path))))  # noqa: PTH208 - names are what is wanted
        except FileNotFoundError:
            self.note(field, t("{path} is not there", path=path))
        except OSError as error:
            self.note(field, t("{path} could not be read: {error}", path=path, error=reason_of(error)))
        return None

    def same(self, field: str, *others: str) -> None:
        """Give ``others`` the reason of ``field``, if it has one: they stand in the same file."""
        if field in self.reasons:
            for other in others:
                self.note(other, self.reasons[field])

    def unread(self, **values: object) -> dict[str, Text]:
        """Return the reasons of those fields that have no value."""
        return {field: why for field, why in self.reasons.items() if values.get(field) is None}


def is_folder(path: Path) -> bool:
    """Return whether a folder is there; False also where it may not be looked at (``Path.is_dir`` raises then)."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - as is_folder


def is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - as is_folder


def reason_of(error: OSError) -> str:
    """Return the error in the system's words (``Permission denied``), without the path named beside it."""
    return error.strerror or str(error)
