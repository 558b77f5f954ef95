"""Running commands and timing them: wall and CPU seconds, peak memory, interleaved so that a busy moment hits
all alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Samples:
    """What the runs of one command took."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    """Largest resident set of the command or of any child that it waited for."""
    exit_codes: set[int] = field(default_factory=set)

    @property
    def wall(self) -> float:
        return statistics.median(self.wall_s)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_s)

    @property
    def peak(self) -> float:
        return statistics.median(self.peak_bytes)


@dataclass(frozen=True)
class Command:
    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] | None = None


def run_once(command: Command, samples: Samples) -> None:
    """Run ``command`` with its output thrown away and add what it took."""
    begun = time.perf_counter()
    child = subprocess.Popen(
        command.argv,
        env=command.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _pid, status, usage = os.wait4(child.pid, 0)
    samples.wall_s.append(time.perf_counter() - begun)
    child.returncode = os.waitstatus_to_exitcode(status)
    samples.exit_codes.add(child.returncode)
    samples.cpu_s.append(usage.ru_utime + usage.ru_stime)
    samples.peak_bytes.append(usage.ru_maxrss * 1024)


def measure(commands: Sequence[Command], runs: int) -> dict[str, Samples]:
    """Run each command once to warm the caches, then ``runs`` times, taking turns."""
    found = {command.name: Samples() for command in commands}
    for command in commands:
        run_once(command, Samples())
    for _ in range(runs):
        for command in commands:
            run_once(command, found[command.name])
    return found


def table(found: Mapping[str, Samples]) -> str:
    """Return the medians as lines."""
    lines = [f"{'':34} {'wall s':>8} {'cpu s':>8} {'peak MB':>8}  exit"]
    for name, one in found.items():
        codes = ",".join(map(str, sorted(one.exit_codes)))
        lines.append(f"{name:34} {one.wall:8.3f} {one.cpu:8.3f} {one.peak / 2**20:8.1f}  {codes}")
    return "\n".join(lines)


def verdict(what: str, ratio: float, limit: float, at_least: bool) -> str:
    """Return one line that holds a ratio against its aim."""
    met = ratio >= limit if at_least else ratio <= limit
    word = "at least" if at_least else "at most"
    return f"{'met   ' if met else 'MISSED'}  {what}: {ratio:.2f} (aim: {word} {limit:g})"
