"""A DeepSpeed configuration file's mistakes: what raises before the first step, and what DeepSpeed never reads. Pure.

What is said of DeepSpeed was read off its sources (doctor/tables/deepspeed_keys.toml names the releases).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from doctor.model import Evidence, Finding, Level, Text, t
from doctor.tables import load

ZERO = "zero_optimization"
FINDING = "deepspeed-config-wrong"
MARKS = (ZERO, "train_micro_batch_size_per_gpu")
"""A JSON file with one of these is DeepSpeed's."""
NEAR = 0.85
"""As alike as a slip of the fingers: what is further off may be a key of another release."""
Problem = tuple[str, Level, Text]
"""The key it stands at, how bad it is, and what it is."""


def config_findings(source: str, path: str) -> list[Finding]:
    """Return what is wrong in a JSON file, if it is DeepSpeed's; worst first."""
    try:
        values = json.loads(source, object_pairs_hook=_noting_twice)
    except ValueError as error:
        title = t("{place} could not be read as JSON: {error}", place=f"{path}:1", error=str(error)[:200])
        return [Finding(id=FINDING, level="unknown", subject=path, title=title)]
    if not isinstance(values, dict) or not any(mark in values for mark in MARKS):
        return []
    found = [_finding(source, path, *one) for one in problems(values)]
    return sorted(found, key=lambda one: one.level != "fail")


class Twice(dict[str, Any]):
    """A JSON object in which keys came more than once."""

    keys_twice: tuple[str, ...] = ()


def _noting_twice(pairs: list[tuple[str, Any]]) -> Twice:
    found = Twice(pairs)
    keys = [key for key, _ in pairs]
    found.keys_twice = tuple(sorted({key for key in keys if keys.count(key) > 1}))
    return found


def problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong in a configuration."""
    for part in (values, *(one for one in values.values() if isinstance(one, dict))):
        for key in getattr(part, "keys_twice", ()):
            yield key, "fail", t("{key} stands there twice: DeepSpeed refuses the file", key=key)
    yield from _batch(values)
    if _is_on(values, "fp16") and (_is_on(values, "bf16") or _is_on(values, "bfloat16")):
        yield "fp16", "fail", t("fp16 and bf16 are both enabled: DeepSpeed refuses that")
    known = load("deepspeed_keys")["beside"]
    for key in values:
        if key not in known and (near := _near(key, known)):
            yield key, "warn", t("{key} is not a key of DeepSpeed's, and is passed over without a word: is {near} meant?", key=key, near=near)  # fmt: skip
    zero = values.get(ZERO)
    if isinstance(zero, dict):
        yield from _zero(zero)


def _batch(values: Mapping[str, Any]) -> Iterator[Problem]:
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    whole, micro, times = (values.get(key) for key in keys)
    if not (isinstance(whole, int) and isinstance(micro, int) and isinstance(times, int)):
        return
    if min(whole, micro, times) < 1 or whole % (micro * times):
        yield keys[0], "fail", t(
            "train_batch_size {whole} is not train_micro_batch_size_per_gpu {micro} x gradient_accumulation_steps {times} x any number of "
            "processes: DeepSpeed asserts that it is", whole=whole, micro=micro, times=times,
        )  # fmt: skip


def _zero(zero: Mapping[str, Any]) -> Iterator[Problem]:
    stage = zero.get("stage", 0)
    if isinstance(stage, int) and stage not in (0, 1, 2, 3):
        yield "stage", "fail", t("ZeRO has no stage {stage}: 0 to 3", stage=stage)
    known = load("deepspeed_keys")["zero"]
    for key in zero:
        if key not in known and (near := _near(key, known)):
            yield key, "fail", t("{key} is not a key of zero_optimization, and DeepSpeed refuses the file: is {near} meant?", key=key, near=near)  # fmt: skip
    for name in ("offload_param", "offload_optimizer"):
        part = zero[name] if isinstance(zero.get(name), dict) else {}
        device = part.get("device")
        if device in ("cpu", "nvme") and name == "offload_param" and stage in (0, 1, 2):
            yield (
                name,
                "warn",
                t(
                    "offload_param has no effect at stage {stage}: only stage 3 moves weights away",
                    stage=stage,
                ),
            )
        elif device == "nvme" and stage == 3 and not part.get("nvme_path"):
            yield (
                name,
                "fail",
                t(
                    "{name} goes to nvme without nvme_path: DeepSpeed fails when it makes its folder there",
                    name=name,
                ),
            )


def _is_on(values: Mapping[str, Any], name: str) -> bool:
    part = values.get(name)
    return isinstance(part, dict) and part.get("enabled") is True


def _near(key: str, known: list[str]) -> str:
    return next(iter(difflib.get_close_matches(key, known, n=1, cutoff=NEAR)), "")


def _finding(source: str, path: str, key: str, level: Level, title: Text) -> Finding:
    lines = source.splitlines()
    number = next((n for n, line in enumerate(lines, 1) if re.search(rf'"{re.escape(key)}"\s*:', line)), 1)
    place = f"{path}:{number}"
    text = lines[number - 1].strip()[:200] if lines else ""
    return Finding(
        id=FINDING, level=level, subject=f"{place} {key}", title=title, evidence=(Evidence(fact=place, value=text),)
    )  # fmt: skip
