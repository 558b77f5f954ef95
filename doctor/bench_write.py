"""The profile with what is to be changed, as a file of its own: what is written is read back and means what was measured."""

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


def write_changed(source: Path, overrides: Sequence[str], change: dict[str, Any], target: Path) -> None:
    """Write ``source`` with ``overrides`` and ``change`` laid over it; every other line stays as it is.

    Raises:
        LaunchError: the file is there already, or the profile is written in a way that cannot be changed line by line.
        OSError: it cannot be written.
    """
    if target.exists():
        raise LaunchError(t("{path} is there already: give --write another name", path=str(target)))
    wanted = with_settings(load_profile(source, overrides), change)
    text = with_keys(source.read_text("utf-8"), {**_given(overrides), **_paths(wanted, source, target), **change})  # fmt: skip
    beside = target.with_name(target.name + ".checked.toml")
    write_whole(beside, text.encode(), 0o644)
    try:
        same = load_profile(beside) == wanted
    except ValueError:
        same = False
    if not same:
        beside.unlink()
        raise LaunchError(t("{path} cannot be changed line by line; set these yourself: {settings}", path=str(source),
                            settings=", ".join(f"{key} = {value}" for key, value in change.items())))  # fmt: skip
    beside.rename(target)


def _given(overrides: Sequence[str]) -> dict[str, Any]:
    """Return ``--set`` as keys and values."""
    from runner.tomltree import TomlTree, apply_overrides

    tree, _ = apply_overrides(TomlTree(values={}, lines={}, overridden=frozenset()), overrides)
    return {f"{section}.{name}": value for section, part in tree.values.items() for name, value in part.items()}  # fmt: skip


def _paths(profile: Profile, source: Path, target: Path) -> dict[str, Any]:
    """Return the profile's paths as they were resolved: a file elsewhere must still find them."""
    if source.resolve().parent == target.resolve().parent:
        return {}
    paths = {
        "data.train": profile.data.train,
        "data.eval": profile.data.eval,
        "model.path": profile.model.path,
    }
    return {key: value for key, value in paths.items() if value}
