"""A run as a person writes it: ``profiles/*.toml`` read into a :class:`Profile`, every mistake named at once.

Sections are ``[run] [model] [data] [train] [parallel]``. Paths in the file are relative to the file, paths given with
``--set`` to the working directory; a loaded profile holds absolute paths only. Whether they exist is another
question: :func:`runner.inputs.missing_inputs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from runner.config_files import with_config_files
from runner.cross import cross_problems
from runner.sections import (
    COUNTED,
    TEXT_ONLY,
    DataSection,
    FreezeRule,
    LoraSection,
    ModelSection,
    ParallelSection,
    Profile,
    RunSection,
    TrainSection,
)
from runner.text import Text
from runner.tomltree import TomlTree, apply_overrides, field_problems, read_toml

__all__ = [
    "COUNTED",
    "TEXT_ONLY",
    "DataSection",
    "FreezeRule",
    "LoraSection",
    "ModelSection",
    "ParallelSection",
    "Profile",
    "ProfileError",
    "RunSection",
    "TrainSection",
    "apply_overrides",
    "load_profile",
    "profile_from_tree",
]


class ProfileError(ValueError):
    """A profile that cannot be used; ``problems`` holds every mistake found, one sentence each."""

    def __init__(self, source: str, problems: list[Text]) -> None:
        self.source = source
        self.problems = problems
        lines = [f"{source}: {len(problems)} problem(s)", *(f"  {problem}" for problem in problems)]
        super().__init__("\n".join(lines))


def load_profile(path: Path, overrides: Sequence[str] = ()) -> Profile:
    """Read a profile and lay ``section.key=value`` overrides over it.

    Raises:
        ProfileError: with all problems of the file and of the overrides.
    """
    tree, problems = read_toml(path)
    if problems:
        raise ProfileError(str(path), problems)
    tree, problems = apply_overrides(tree, overrides)
    return profile_from_tree(tree, str(path), path.absolute().parent, problems)


def profile_from_tree(tree: TomlTree, source: str, base: Path, known: Sequence[Text] = ()) -> Profile:
    """Validate a tree of sections; relative paths are taken from ``base`` (overrides: from the cwd).

    Raises:
        ProfileError: with all problems, those already ``known`` first.
    """
    tree, in_files = with_config_files(tree, base)
    known = [*known, *in_files]
    wrong = field_problems(tree, Profile)
    profile = _lenient(tree, {key for key, _ in wrong})
    keys_in_doubt = {key for key, _ in wrong} | {key.split(".")[0] for key, _ in wrong}
    crossed = [problem for key, problem in cross_problems(profile, tree) if key not in keys_in_doubt]
    problems = [*known, *(problem for _, problem in wrong), *crossed]
    if problems:
        raise ProfileError(source, problems)
    if profile.model.task in TEXT_ONLY:
        profile = msgspec.structs.replace(profile, data=msgspec.structs.replace(profile.data, label=""))
    return with_absolute_paths(profile, tree, base)


def _lenient(tree: TomlTree, wrong: set[str]) -> Profile:
    """Return the profile that the good keys make, so that what is wrong between them is named too."""
    good: dict[str, dict[str, Any]] = {"run": {"name": "unnamed"}, "model": {}, "data": {}}
    for section, part in tree.values.items():
        if isinstance(part, dict) and section not in wrong:
            kept = {name: value for name, value in part.items() if f"{section}.{name}" not in wrong}
            good[section] = good.get(section, {}) | kept
    return msgspec.convert(good, Profile, str_keys=True)


def with_absolute_paths(profile: Profile, tree: TomlTree, base: Path) -> Profile:
    """Return ``profile`` with its file paths made absolute."""

    def absolute(key: str, value: str) -> str:
        start = Path.cwd() if key in tree.overridden else base
        return str(start / Path(value).expanduser()) if value else ""

    def each(key: str, value: str | list[str]) -> list[str]:
        return [absolute(key, item) for item in ([value] if isinstance(value, str) else value)]

    replace = msgspec.structs.replace
    train, held_out = each("data.train", profile.data.train), each("data.eval", profile.data.eval)
    data = replace(profile.data, train=train, eval=held_out)
    model = replace(profile.model, path=absolute("model.path", profile.model.path))
    files = {
        key: absolute(f"parallel.{key}", getattr(profile.parallel, key))
        for key in ("deepspeed_config", "accelerate_config")
    }
    return replace(profile, data=data, model=model, parallel=replace(profile.parallel, **files))
