"""A TOML file as sections of keys, with the line of each, so that every mistake can be named by its place."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from runner.text import Text, printable, t

_HEADER = re.compile(r"^\s*\[\s*([A-Za-z0-9_-]+)\s*\]")  # [train]
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+)(?:\.[A-Za-z0-9_.-]+)?\s*=")  # batch_size = 16


OTHER_NAMES = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "max_grad_norm": "clip_norm",
    "gradient_accumulation_steps": "accumulation",
    "per_device_train_batch_size": "micro_batch_size",
    "per_device_eval_batch_size": "eval_batch_size",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "warmup",
    "warmup_ratio": "warmup",
    "dataloader_num_workers": "workers",
    "max_seq_length": "max_length",
    "early_stopping_patience": "patience",
    "load_best_model_at_end": "restore_best",
    "save_total_limit": "keep_last",
    "label_smoothing_factor": "label_smoothing",
    "fp16": "precision",
    "bf16": "precision",
}
"""What Trainer and others call it."""


class TomlTree(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a profile file and where they stand."""

    values: dict[str, Any]
    lines: dict[str, int] = {}
    """``section`` and ``section.key`` to the line number, counted from 1."""
    overridden: frozenset[str] = frozenset()

    def place(self, key: str) -> str:
        """Return how a mistake at ``key`` is named: ``train.lr (line 14)``."""
        if key in self.overridden:
            return f"{key} (--set)"
        line = self.lines.get(key) or self.lines.get(key.split(".")[0])
        return f"{key} (line {line})" if line else key


def read_toml(path: Path) -> tuple[TomlTree, list[Text]]:
    """Return the file's tree, or an empty one and why."""
    empty = TomlTree(values={})
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        return empty, [t("cannot be read: {why}", why=error.strerror or str(error))]
    except UnicodeDecodeError as error:
        return empty, [t("is not UTF-8 text (byte {position}); save it as UTF-8", position=error.start)]
    toml = _toml_module()
    try:
        values = toml.loads(text)
    except toml.TOMLDecodeError as error:
        return empty, [t("is not valid TOML: {why}", why=printable(str(error)))]
    return TomlTree(values=values, lines=_line_numbers(text)), []


def _toml_module() -> Any:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    import tomli  # type: ignore[unreachable,unused-ignore]

    return tomli


def _line_numbers(text: str) -> dict[str, int]:
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            section = header[1]
            lines.setdefault(section, number)
        elif section and (key := _KEY.match(line)):
            lines.setdefault(f"{section}.{key[1]}", number)
    return lines


def apply_overrides(tree: TomlTree, overrides: Sequence[str]) -> tuple[TomlTree, list[Text]]:
    """Lay ``section.key=value`` over ``tree``; a value is read as TOML, else as a plain string."""
    values = {name: dict(part) if isinstance(part, dict) else part for name, part in tree.values.items()}
    problems: list[Text] = []
    done: set[str] = set(tree.overridden)
    for override in overrides:
        key, equals, value = override.partition("=")
        section, dot, name = key.strip().partition(".")
        shown = printable(override)
        if not (equals and dot and section and name):
            problems.append(
                t("--set {override}: write section.key=value, as in train.lr=1e-4", override=shown)
            )
            continue
        target = values.setdefault(section, {})
        if not isinstance(target, dict):
            problems.append(
                t("--set {override}: {section} is not a section", override=shown, section=section)
            )
            continue
        target[name] = _override_value(value.strip())
        done.add(f"{section}.{name}")
    return TomlTree(values=values, lines=tree.lines, overridden=frozenset(done)), problems


def _override_value(text: str) -> Any:
    toml = _toml_module()
    try:
        parsed = toml.loads(f"value = {text}")
    except toml.TOMLDecodeError:
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


ELSEWHERE = ("alerts",)
"""Sections of a profile that no trainer reads: who is told of what (:mod:`runner.alert_settings`)."""
Problems = Iterator[tuple[str, Text]]


def field_problems(tree: TomlTree, record: type[msgspec.Struct]) -> list[tuple[str, Text]]:
    """Return ``(key, problem)`` for every unknown, missing and wrong field of the sections of ``record``."""
    sections = get_type_hints(record, include_extras=True)
    problems = [*_unknown(tree, tree.values, [*sections, *ELSEWHERE], "")]
    for field in msgspec.structs.fields(record):
        name, part = field.name, tree.values.get(field.name)
        if part is None and field.required:
            problems.append((name, t("{place}: this section is missing", place=f"[{name}]")))
        elif part is not None and not isinstance(part, dict):
            problems.append((name, t("{place}: must be a section", place=tree.place(name))))
        elif part is not None:
            problems += _section_problems(tree, name, part, sections[name])
    return problems


def _section_problems(
    tree: TomlTree, section: str, part: dict[str, Any], record: type[msgspec.Struct]
) -> Problems:
    hints = get_type_hints(record, include_extras=True)
    yield from _unknown(tree, part, list(hints), f"{section}.")
    for field in msgspec.structs.fields(record):
        key = f"{section}.{field.name}"
        if field.name not in part:
            if field.required:
                yield key, t("{place}: this key is missing", place=tree.place(key))
            continue
        value = part[field.name]
        try:
            msgspec.convert(value, hints[field.name], str_keys=True)
        except msgspec.ValidationError as error:
            yield key, _wrong_value(tree.place(key), hints[field.name], value, error)


def _wrong_value(place: str, hint: Any, value: Any, error: Exception) -> Text:
    shown = printable(repr(value))[:80]
    if get_origin(hint) is Literal:
        choices = ", ".join(str(choice) for choice in get_args(hint))
        return t(
            "{place}: must be one of {choices} (it says {value})", place=place, choices=choices, value=shown
        )
    return t("{place}: {why} (it says {value})", place=place, why=_plain(error), value=shown)


def _plain(error: Exception) -> str:
    """Return msgspec's message as the end of a sentence."""
    why = str(error)
    return why[:1].lower() + why[1:]


def _unknown(tree: TomlTree, part: dict[str, Any], known: list[str], prefix: str) -> Problems:
    for name in part:
        if name in known:
            continue
        key = prefix + name
        near = (
            [OTHER_NAMES[name]]
            if OTHER_NAMES.get(name) in known
            else difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        )
        if near:
            yield key, t("{place}: unknown; did you mean {near}?", place=tree.place(key), near=near[0])
        else:
            yield key, t("{place}: unknown; known are {known}", place=tree.place(key), known=", ".join(known))
