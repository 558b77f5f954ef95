"""The profile with the winners, as a file of its own: what is written is read back and means what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doctor.bench_levers import with_settings
from doctor.launch import LaunchError
from doctor.profile_edit import with_keys
from doctor.state_dir import write_whole
from runner.profile import Profile, load_profile
from runner.text import t


def write_winners(source: Path, overrides: Sequence[str], winners: dict[str, Any], target: Path) -> None:
    """Write ``source`` with ``overrides`` and ``winners`` laid over it.

    Raises:
        LaunchError: the file is there already, or the profile is written in a way that cannot be changed line by line.
        OSError: it cannot be written.
    """
    if target.exists():
        raise LaunchError(t("{path} is there already: give --write another name", path=str(target)))
    wanted = with_settings(load_profile(source, overrides), winners)
    text = with_keys(source.read_text("utf-8"), {**_given(overrides), **_paths(wanted, source, overrides), **winners})  # fmt: skip
    beside = target.with_name(target.name + ".checked.toml")
    write_whole(beside, text.encode(), 0o644)
    try:
        same = load_profile(beside) == wanted
    except ValueError:
        same = False
    if not same:
        beside.unlink()
        raise LaunchError(t("{path} cannot be changed line by line; set these yourself: {settings}", path=str(source),
                            settings=", ".join(f"{key} = {value}" for key, value in winners.items())))  # fmt: skip
    beside.rename(target)


def _given(overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``--set`` as keys and values."""
    from runner.tomltree import TomlTree, apply_overrides

    tree, _ = apply_overrides(TomlTree(values={}, lines={}, overridden=frozenset()), overrides)
    return {f"{section}.{name}": value for section, part in tree.values.items() for name, value in part.items()}  # fmt: skip


def _paths(profile: Profile, source: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the profile's paths as they were resolved: a file elsewhere must still find them."""
    found: dict[str, Any] = {}
    for key, value in (("data.train", profile.data.train), ("data.eval", profile.data.eval), ("model.path", profile.model.path)):  # fmt: skip
        if value:
            found[key] = value
    return found
