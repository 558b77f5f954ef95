"""Who calls whom, as a tree of shares: what an icicle is drawn from. Pure: stacks in, a short list out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from doctor.stacks import Frame, Stack

SMALLEST_SHARE = 0.02
"""What takes less of a process's time is too narrow to be drawn."""
NODES = 48
"""Of one process, the widest first."""
PROCESSES = 3
DEEPEST = 120
"""Calls below are not told apart: a recursion without end would make a tree without end."""

Place = tuple[str, str]


@dataclass
class _Node:
    frame: Frame
    count: int = 0
    children: dict[Place, _Node] = field(default_factory=dict)


def call_trees(stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """Return the trees of the main threads, the trainer's first: ``process`` and ``nodes``.

    A node is ``[depth, function, file, line, share]``, its children right behind it; shares are of looks at that process.
    """
    if not stacks:
        return []
    root = stacks[0].pids[0]
    groups: dict[int, list[Stack]] = {}
    for stack in stacks:
        if stack.is_main and stack.frames:
            groups.setdefault(stack.pid, []).append(stack)
    ordered = sorted(
        groups.items(), key=lambda pair: (pair[0] != root, -sum(stack.count for stack in pair[1]))
    )
    return [_tree("trainer" if pid == root else f"child {pid}", group) for pid, group in ordered[:PROCESSES]]


def widths_of(stacks: Sequence[Stack], deepest: int = DEEPEST) -> Iterator[tuple[int, float, float, Frame]]:
    """Yield (depth, begin, width, frame) of every call of one thread, begin and width as shares of its looks."""
    top = _merged(stacks, deepest)
    waiting = [(-1, 0.0, top)]
    while waiting:
        depth, begin, node = waiting.pop()
        if depth >= 0:
            yield depth, begin, node.count / top.count, node.frame
        for child in sorted(node.children.values(), key=lambda child: -child.count):
            waiting.append((depth + 1, begin, child))
            begin += child.count / top.count


def _merged(stacks: Sequence[Stack], deepest: int) -> _Node:
    """Return the stacks laid over each other below a node of no function."""
    top = _Node(Frame("", "", 0))
    for stack in stacks:
        node = top
        node.count += stack.count
        for frame in stack.frames[:deepest]:
            node = node.children.setdefault((frame.function, frame.file), _Node(frame))
            node.count += stack.count
    return top


def _tree(process: str, group: Sequence[Stack]) -> dict[str, Any]:
    top = _merged(group, DEEPEST)
    widest = sorted((node.count for node in _below(top)), reverse=True)[:NODES]
    least = max(widest[-1] if widest else 0, SMALLEST_SHARE * top.count)
    return {"process": process, "nodes": list(_rows(top, 0, least, top.count))[:NODES]}


def _below(node: _Node) -> list[_Node]:
    return [one for child in node.children.values() for one in (child, *_below(child))]


def _rows(node: _Node, depth: int, least: float, total: int) -> list[list[Any]]:
    rows = []
    for child in sorted(node.children.values(), key=lambda child: -child.count):
        if child.count >= least:
            frame = child.frame
            rows.append([depth, frame.function, frame.file, frame.line, round(child.count / total, 4)])
            rows += _rows(child, depth + 1, least, total)
    return rows
