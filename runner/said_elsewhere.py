"""What a configuration file of another tool says, as keys of a profile: laid under a profile that leaves them open, and held
against one that does not. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runner.text import Text, printable, t
from runner.tomltree import TomlTree


class Said(msgspec.Struct, frozen=True):
    """One key of a profile as a file says it."""

    key: str
    """``train.clip_norm``"""
    value: Any
    place: str
    """Its name in the file: ``gradient_clipping``."""


class Elsewhere(msgspec.Struct):
    """What one file says."""

    file: str
    said: list[Said] = []
    problems: list[Text] = []
    unused: list[str] = []
    """Its keys that have no effect here: they only print, start processes, or tell of files that are written otherwise."""
    tuning: dict[str, Any] = {}
    """Settings of ``zero_optimization`` that are handed on as they are."""

    def say(self, key: str, value: Any, place: str) -> None:
        """Take a value in, unless the file leaves it open."""
        if value is not None and value != "auto":
            self.said.append(Said(key, value, place))

    def at(self, place: str, value: Any) -> str:
        """Return how a mistake is named: ``ds.json: gradient_cliping = 1.0``."""
        return f"{self.file}: {place} = {shown(value)}"


def shown(value: Any) -> str:
    return printable(str(value))[:60]


def part_of(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of a file, empty where there is none."""
    part = values.get(key)
    return part if isinstance(part, Mapping) else {}


def laid_under(tree: TomlTree, found: Elsewhere) -> tuple[TomlTree, list[Text]]:
    """Return the profile with what it left open filled in, and each contradiction between the two."""
    values = {name: dict(part) if isinstance(part, dict) else part for name, part in tree.values.items()}
    problems = list(found.problems)
    for one in found.said:
        section, _, name = one.key.partition(".")
        part = values.setdefault(section, {})
        if not isinstance(part, dict):
            continue  # told of as a mistake of the profile
        if part.get(name, "auto") == "auto":
            part[name] = one.value
        elif not same(part[name], one.value):
            problems.append(
                t("{place} = {here} contradicts {file}, where {other} is {there}: change one of them, or leave it out of the profile",
                  place=tree.place(one.key), here=shown(part[name]), file=found.file, other=one.place, there=shown(one.value))
            )  # fmt: skip
    return TomlTree(values=values, lines=tree.lines, overridden=tree.overridden), problems


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def is_true(value: Any) -> bool:
    """Return whether a switch is on; both tools also take it as a word or a number."""
    return str(value).lower() in ("true", "1", "yes", "on")


def says_nothing(value: Any) -> bool:
    """Return whether a key is as good as absent: nothing, off, empty, or so in a word."""
    return value in (None, False, "", [], {}) or str(value).lower() in ("no", "none", "false")
