"""Stacks in the forms that other tools read: collapsed lines (flamegraph.pl, inferno) and speedscope's JSON. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from doctor.stack_groups import Group
from doctor.stacks import Frame, Stack

# Source: https://www.speedscope.app/file-format-schema.json, read 2026-11-30.
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def collapsed(groups: Sequence[Group]) -> str:
    """Return a line a stack, ``process;thread;outermost;...;innermost COUNT``."""
    lines = Counter[str]()
    for group in groups:
        for stack in group.stacks:
            names = [*owner_of(group, stack), *(frame_name(frame) for frame in stack.frames)]
            lines[";".join(name.replace(";", ":") for name in names)] += stack.count
    return "".join(f"{line} {count}\n" for line, count in lines.items())


def speedscope(groups: Sequence[Group], rate: int, name: str) -> str:
    """Return a file of speedscope's, a profile for each thread that was seen; weights are seconds at ``rate`` looks a second."""
    frames: dict[Frame, int] = {}
    threads: dict[tuple[str, ...], list[Stack]] = {}
    for group in groups:
        for stack in group.stacks:
            threads.setdefault(owner_of(group, stack), []).append(stack)
    profiles = [_profile(" / ".join(owner), stacks, frames, rate) for owner, stacks in threads.items()]
    shared = [{"name": frame.function, "file": frame.file, "line": frame.line} for frame in frames]
    tree = {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "rundoctor",
        "shared": {"frames": shared},
        "profiles": profiles,
    }
    return json.dumps(tree) + "\n"


def _profile(name: str, stacks: Sequence[Stack], frames: dict[Frame, int], rate: int) -> dict[str, Any]:
    samples = [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in stacks]
    weights = [stack.count / rate for stack in stacks]
    return {"type": "sampled", "name": name, "unit": "seconds", "startValue": 0, "endValue": sum(weights),
            "samples": samples, "weights": weights}  # fmt: skip


def owner_of(group: Group, stack: Stack) -> tuple[str, ...]:
    """Return whose stack it is, from the whole to the part: rank, process, thread."""
    process = [group.name] if group.name else []
    role = "trainer" if stack.pid == group.pid else "child"
    thread = "main thread" if stack.is_main else stack.thread or f"thread {stack.thread_id}"
    return (*process, f"{role} {stack.pid}", thread)


def frame_name(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})"
