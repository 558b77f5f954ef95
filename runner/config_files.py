"""Reads the configuration files of DeepSpeed and accelerate that a profile names, and lays them under it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.accelerate_file import accelerate_file
from runner.deepspeed_file import deepspeed_file
from runner.said_elsewhere import Elsewhere, laid_under, part_of
from runner.text import Text, t
from runner.tomltree import TomlTree


def with_config_files(tree: TomlTree, base: Path) -> tuple[TomlTree, list[Text]]:
    """Return the profile with what its ``deepspeed_config`` and ``accelerate_config`` say, and what is wrong with them.

    ``base``: the profile's folder, where relative paths begin (those given with ``--set``: in the working directory).
    """
    section = part_of(tree.values, "parallel")
    files = {key: section.get(key) for key in ("accelerate_config", "deepspeed_config")}
    paths = {
        key: (Path.cwd() if f"parallel.{key}" in tree.overridden else base) / Path(name).expanduser()
        for key, name in files.items()
        if isinstance(name, str) and name
    }
    problems: list[Text] = []
    if path := paths.get("accelerate_config"):
        values, problems = read_file(path, _yaml)
        found, other = accelerate_file(values, path.name) if not problems else (Elsewhere(path.name), "")
        tree, more = _laid(tree, found)
        problems += more
        if other and "deepspeed_config" not in paths:
            # accelerate takes it from the working directory; most people keep it beside the file that names it.
            beside, here = path.parent / other, Path.cwd() / other
            paths["deepspeed_config"] = here if here.is_file() and not beside.is_file() else beside
    if path := paths.get("deepspeed_config"):
        values, wrong = read_file(path, json.loads)
        problems += wrong
        if not wrong:
            tree, more = _laid(tree, deepspeed_file(values, path.name))
            problems += more
    return tree, problems


def _laid(tree: TomlTree, found: Elsewhere) -> tuple[TomlTree, list[Text]]:
    tree, problems = laid_under(tree, found)
    section = tree.values.get("parallel")
    if not isinstance(section, dict):
        return tree, problems
    unused, tuning = section.setdefault("unused", []), section.setdefault("deepspeed", {})
    if isinstance(unused, list) and isinstance(tuning, dict):  # else told of as a mistake of the profile
        told = [*unused, *(f"{found.file}: {name}" for name in found.unused)]
        section["unused"], section["deepspeed"] = list(dict.fromkeys(told)), {**found.tuning, **tuning}
    return tree, problems


def read_file(path: Path, parse: Callable[[str], Any]) -> tuple[dict[str, Any], list[Text]]:
    """Return the mapping that a file holds, or why there is none."""
    try:
        values = parse(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        return {}, [t("{file}: cannot be read: {why}", file=str(path), why=error.strerror or str(error))]
    except ImportError as error:
        return {}, [
            t(
                "{file}: reading it needs PyYAML, which comes with accelerate ({why})",
                file=str(path),
                why=str(error),
            )
        ]
    except Exception as error:  # JSON's and YAML's errors have no kind in common
        return {}, [t("{file}: cannot be understood: {why}", file=str(path), why=str(error)[:300])]
    if not isinstance(values, dict):
        return {}, [t("{file}: holds no settings", file=str(path))]
    return {str(key): value for key, value in values.items()}, []


def _yaml(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)
