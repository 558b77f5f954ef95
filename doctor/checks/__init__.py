"""The registry of checks. One subject a file, one question a function; pure functions of facts.

A check's parameters name the sections of :class:`doctor.model.Facts` it needs::

    @check("driver-too-old-for-torch-cuda")
    def driver_runs_torch(driver: Driver, torch: Torch) -> Iterator[Finding]:
        \"\"\"Can the installed driver run the CUDA that torch was built for?\"\"\"

``driver: Driver`` means "I need it": absent makes the answer not applicable, failed makes it unknown with the reading's
reason, skipped leaves it silent. ``driver: Reading[Driver]`` means "show me even its absence". A check may give only
findings with the ids it declared. An unknown parameter or a taken id fails at import.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import get_origin, get_type_hints

import msgspec

from doctor.model import SECTIONS, Evidence, Facts, Finding, Reading

CheckFunction = Callable[..., Iterator[Finding]]


class Check(msgspec.Struct, frozen=True):
    """A registered check: the ids it may give, its question, and which sections it wants."""

    name: str
    ids: tuple[str, ...]
    question: str
    needs: tuple[str, ...]
    """Sections that must be ok."""
    looks_at: tuple[str, ...]
    """Sections it takes as readings, whatever their status."""
    function: CheckFunction


_CHECKS: dict[str, Check] = {}
_TAKEN_IDS: dict[str, str] = {}

# Explicit, so that a broken module is an error and not a silent gap.
MODULES = (
    "machine", "driver", "cuda_start", "card_support", "gpu", "visible_devices", "peer_copies", "gpu_faults", "gpu_health", "gpu_memory", "vram_needs", "torch_build", "libraries",
    "nvidia_wheels", "torch_install", "packages", "unmet", "project", "shadowing", "interpreters", "needs", "interfaces", "hugging_face", "companions",
    "torch_mates", "extensions", "cuda_packages", "onnx_runtime", "storage", "run_storage", "writing", "lasting",
    "data_reading", "memory", "cpu", "platforms", "environment", "distributed", "training", "data", "checkpoints",
    "monitoring", "deep",
)  # fmt: skip


def check(*ids: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check that may give findings with ``ids``.

    Raises:
        TypeError: a parameter is not a section, or its annotation is neither the section's type nor a Reading of it.
        ValueError: an id or the function's name is already taken, or the docstring (its question) is missing.
    """

    def register(function: CheckFunction) -> CheckFunction:
        name = function.__name__
        if name in _CHECKS:
            raise ValueError(f"there is already a check called {name}")
        if not ids or not function.__doc__:
            raise ValueError(f"check {name} needs an id and a docstring that asks its question")
        for finding_id in ids:
            if finding_id in _TAKEN_IDS:
                raise ValueError(f"{finding_id} is already given by {_TAKEN_IDS[finding_id]}")
            _TAKEN_IDS[finding_id] = name
        needs, looks_at = _parameters(function)
        question = function.__doc__.strip().splitlines()[0]
        _CHECKS[name] = Check(name, ids, question, needs, looks_at, function)
        return function

    return register


def _parameters(function: CheckFunction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    code = function.__code__
    needs, looks_at = [], []
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        section = SECTIONS.get(name)
        if section is None:
            raise TypeError(f"check {function.__name__}: there is no section {name!r}")
        # Annotations are strings, and a hundred checks spell them plainly: evaluating them all takes 10 ms.
        hint = function.__annotations__.get(name)
        if hint not in (section.__name__, f"Reading[{section.__name__}]"):
            hint = get_type_hints(function).get(name)
        if hint in (section, section.__name__):
            needs.append(name)
        elif hint == f"Reading[{section.__name__}]" or (
            get_origin(hint) is Reading and hint.__args__ == (section,)  # type: ignore[union-attr]
        ):
            looks_at.append(name)
        else:
            raise TypeError(
                f"check {function.__name__}: {name} must be {section.__name__} or Reading[{section.__name__}]"
            )
    return tuple(needs), tuple(looks_at)


def all_checks() -> tuple[Check, ...]:
    """Import every module of :data:`MODULES` and return the checks in the order they stand there."""
    for module in MODULES:
        importlib.import_module(f"doctor.checks.{module}")
    place = {f"doctor.checks.{module}": index for index, module in enumerate(MODULES)}
    return tuple(sorted(_CHECKS.values(), key=lambda one: place.get(one.function.__module__, len(place))))


def evidence(**values: object) -> tuple[Evidence, ...]:
    """Return evidence rows; ``driver__version=`` means the fact ``driver.version``. None values are left out."""
    return tuple(
        Evidence(fact=name.replace("__", "."), value=str(value))
        for name, value in values.items()
        if value is not None
    )


def facts_at(facts: Facts, path: str) -> object:
    """Return the value at an evidence path such as ``gpus.items[0].name``.

    Raises:
        LookupError: the path does not exist in these facts.
    """
    section, _, rest = path.partition(".")
    reading = getattr(facts, section, None)
    if not isinstance(reading, Reading) or reading.value is None:
        raise LookupError(path)
    value: object = reading.value
    for part in filter(None, rest.replace("[", ".[").split(".")):
        try:
            if part.startswith("["):
                value = value[int(part[1:-1])]  # type: ignore[index]
            elif isinstance(value, dict):
                value = value[part]
            else:
                value = getattr(value, part)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise LookupError(path) from None
    return value
