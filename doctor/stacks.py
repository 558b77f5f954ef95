"""py-spy's raw stacks folded into hottest functions. Pure: text in, records out.

A share is of *instants*: of the times a process was looked at, how often was this function on (total) or on
top of (self) the stack of that thread. Waiting counts, since waiting for data is what one looks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.phases import is_data_parallel, is_exchange, own_place, phase_of, waits_for_work
from runner.strings import printable

# process 7649:"python t.py";process 7653:"python t.py";thread (7653): MainThread;<module> (t.py:14) 47
# The command line in quotes is as long as it is, line ends and all (python -c).
_LINE = re.compile(
    r'^((?:process \d+:".*?";)+?)thread \((\d+)\)(?:: ([^;\n]*))?;([^\n]*) (\d+)$', re.DOTALL | re.MULTILINE
)
_PROCESS = re.compile(r'process (\d+):"')
# DataLoader.__iter__ (torch/utils/data/dataloader.py:505)
_FRAME = re.compile(r"^(.*?) \((.*):(\d+)\)$")
# py-spy> Wrote raw flamegraph data to 'out.raw'. Samples: 864 Errors: 9
_TOTALS = re.compile(r"Samples: (\d+) Errors: (\d+)")

_WAITING = (
    "threading.py", "queue.py", "selectors.py", "socket.py", "multiprocessing/queues.py",
    "multiprocessing/connection.py",
)  # fmt: skip
"""Files whose functions on top of a side thread's stack mean that it only waits."""


@dataclass(frozen=True)
class Frame:
    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Stack:
    """One line of py-spy's raw output: outermost frame first."""

    pids: tuple[int, ...]
    """The root process, its child ..., the process itself last."""
    thread_id: int
    thread: str
    frames: tuple[Frame, ...]
    count: int

    @property
    def pid(self) -> int:
        return self.pids[-1]

    @property
    def is_main(self) -> bool:
        return self.thread_id == self.pid


def parse_raw(text: str) -> list[Stack]:
    """Return the stacks in py-spy's ``record -f raw --threads`` output; other lines are passed over."""
    stacks = []
    for match in _LINE.finditer(text):
        frames = tuple(frame for frame in map(_frame, match[4].split(";")) if frame)
        pids = tuple(int(pid) for pid in _PROCESS.findall(match[1]))
        stacks.append(Stack(pids, int(match[2]), printable(match[3] or ""), frames, int(match[5])))
    return stacks


def _frame(text: str) -> Frame | None:
    match = _FRAME.match(text)
    return Frame(printable(match[1]), printable(match[2]), int(match[3])) if match else None


def parse_errors(stderr: str) -> int:
    """Return how many looks failed, as py-spy counts them at the end of a recording."""
    match = _TOTALS.search(stderr)
    return int(match[2]) if match else 0


def drop_torn(stacks: Sequence[Stack]) -> tuple[list[Stack], int]:
    """Return the whole stacks and how many samples were torn: whose root is not their thread's usual one.

    Looking without stopping the process can catch a stack in the middle of a change; it then lacks its root.
    """
    roots: dict[tuple[int, int], Counter[str]] = {}
    for stack in stacks:
        if stack.frames:
            roots.setdefault((stack.pid, stack.thread_id), Counter())[stack.frames[0].function] += stack.count
    usual = {thread: counts.most_common(1)[0][0] for thread, counts in roots.items()}
    whole = [s for s in stacks if s.frames and s.frames[0].function == usual[(s.pid, s.thread_id)]]
    return whole, sum(s.count for s in stacks) - sum(s.count for s in whole)


@dataclass
class _Tally:
    self_count: int = 0
    total_count: int = 0
    lines: Counter[int] = field(default_factory=Counter)


def hottest(stacks: Sequence[Stack], limit: int = 12) -> list[dict[str, Any]]:
    """Return the hottest functions, the root process first, each as ``sample-stacks`` lists them.

    The root's main thread gives up to ``limit`` entries; the other processes and the side threads share half
    of that again, side threads that only wait are left out.
    """
    if not stacks:
        return []
    root = stacks[0].pids[0]
    instants = _instants(stacks)
    main = [s for s in stacks if s.pid == root and s.is_main]
    entries = _entries(main, instants, root)[:limit]
    groups: dict[tuple[int, int], list[Stack]] = {}
    for stack in stacks:
        if not (stack.pid == root and stack.is_main):
            groups.setdefault((stack.pid, stack.thread_id), []).append(stack)
    others = [
        entry
        for group in groups.values()
        if not only_waits(group)
        for entry in _entries(group, instants, root)[:3]
    ]
    others.sort(key=lambda entry: -entry["self_share"])
    return entries + others[: max(1, limit // 2)]


def _instants(stacks: Iterable[Stack]) -> dict[int, int]:
    """Return how often each process was looked at: the samples of its busiest-sampled thread."""
    per_thread: Counter[tuple[int, int]] = Counter()
    for stack in stacks:
        per_thread[(stack.pid, stack.thread_id)] += stack.count
    instants: dict[int, int] = {}
    for (pid, _), count in per_thread.items():
        instants[pid] = max(instants.get(pid, 0), count)
    return instants


def only_waits(group: Sequence[Stack]) -> bool:
    """Return whether a side thread does nothing but wait, of all looks at it."""
    if group[0].is_main:
        return False
    waiting = sum(s.count for s in group if s.frames[-1].file.endswith(_WAITING))
    return waiting * 10 >= 9 * sum(s.count for s in group)


def _entries(group: Sequence[Stack], instants: dict[int, int], root: int) -> list[dict[str, Any]]:
    tallies: dict[tuple[str, str], _Tally] = {}
    for stack in group:
        for key, frame in {(frame.function, frame.file): frame for frame in stack.frames}.items():
            tally = tallies.setdefault(key, _Tally())
            tally.total_count += stack.count
            tally.lines[frame.line] += stack.count
        top = stack.frames[-1]
        tallies[(top.function, top.file)].self_count += stack.count
    if not group:
        return []
    first = group[0]
    process = "trainer" if first.pid == root else _child_name(group)
    entries = [
        {
            "function": function,
            "file": file,
            "line": tally.lines.most_common(1)[0][0],
            "self_share": round(min(1.0, tally.self_count / instants[first.pid]), 4),
            "total_share": round(min(1.0, tally.total_count / instants[first.pid]), 4),
            "process": process,
            "thread": "" if first.is_main else (first.thread or str(first.thread_id)),
        }
        for (function, file), tally in tallies.items()
    ]
    return sorted(entries, key=lambda entry: (-entry["self_share"], -entry["total_share"]))


def where_time_goes(stacks: Sequence[Stack], limit: int = 6) -> dict[str, Any]:
    """Return ``looks`` at the root's main thread, the share of each of its ``phases``, and ``places`` in the user's code.

    A place of phase ``worker`` is where a loader's workers load; its share is of looks at a worker.
    """
    if not stacks:
        return {}
    root, instants = stacks[0].pids[0], _instants(stacks)
    if root not in instants:  # it is no Python (a shell that started one), or was caught torn at every look
        return {}
    phases, places = Counter[str](), Counter[tuple[str, str, str, int]]()
    workers = [pid for pid in instants if pid != root and _is_worker(pid, stacks)]
    for stack in stacks:
        frames = [(frame.function, frame.file, frame.line) for frame in stack.frames]
        if stack.pid == root and stack.is_main:
            phase = phase_of(frames) or "other"
            phases[phase] += stack.count
        elif stack.pid in workers and stack.is_main and not waits_for_work(frames):
            phase = "worker"
        else:
            continue
        if own := own_place(frames):
            places[(phase, own[0], own[1], own[2])] += stack.count
    looks = {"worker": sum(instants[pid] for pid in workers)}
    return _exchange(stacks, root, instants[root]) | {
        "looks": instants.get(root, 0),
        "phases": {phase: round(count / instants[root], 4) for phase, count in phases.most_common()},
        "places": [
            {"phase": phase, "function": function, "file": file, "line": line,
             "share": round(min(1.0, count / max(1, looks.get(phase, instants[root]))), 4)}
            for (phase, function, file, line), count in places.most_common(limit)
        ],
    }  # fmt: skip


def _exchange(stacks: Sequence[Stack], root: int, looks: int) -> dict[str, Any]:
    """Return the share of looks at which a thread of the root was in a collective; empty: it trains by itself."""
    threads = Counter[int]()
    is_several = False
    for stack in stacks:
        frames = [(frame.function, frame.file, frame.line) for frame in stack.frames]
        if stack.pid == root and (is_data_parallel(frames) or is_exchange(frames)):
            is_several = True
            threads[stack.thread_id] += stack.count if is_exchange(frames) else 0
    busiest = max(threads.values(), default=0)
    return {"distributed": True, "exchange": round(min(1.0, busiest / looks), 4)} if is_several else {}


def _is_worker(pid: int, stacks: Sequence[Stack]) -> bool:
    return any(
        stack.pid == pid and any(frame.function == "_worker_loop" for frame in stack.frames)
        for stack in stacks
    )


def _child_name(group: Sequence[Stack]) -> str:
    is_worker = any(frame.function == "_worker_loop" for stack in group for frame in stack.frames)
    return f"{'worker' if is_worker else 'child'} {group[0].pid}"
