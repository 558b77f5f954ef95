"""What opening a long run costs: ``python -m benchmarks.replay [--steps 1000000]``.

Makes a run of so many steps with evaluations, checkpoints and a week of samples, and prints a JSON object a way to open it:
wall and CPU seconds, peak memory, each in fresh processes with the files in the page cache. ``first paint`` of the
full-screen view is until the run's curves stand on an 80x24 terminal.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.measure import Command, measure
from benchmarks.tui import Terminal
from runner.events import RunEvent
from runner.rundir import RunDir

WEEK_S = 7 * 86400.0


def write_run(path: Path, steps: int) -> RunDir:
    """Write a run of ``steps`` steps over a week, with a sample every five seconds."""
    run = RunDir(path)
    run.make()
    run.plan.write_text("{}", "utf-8")
    for name, events in (("trainer-0", trainer_events(steps)), ("sampler", sampler_events())):
        with open(run.events / f"{name}.jsonl", "wb") as file:
            for seq, (t, kind, step, data) in enumerate(events):
                event = RunEvent(seq=seq, t=t, source=name, kind=kind, step=step, data=data)
                file.write(msgspec.json.encode(event) + b"\n")
    return run


Row = tuple[float, str, int | None, dict[str, object]]


def trainer_events(steps: int) -> Iterator[Row]:
    every = WEEK_S / steps
    begun = time.time() - WEEK_S
    yield (
        begun,
        "run-started",
        0,
        {"steps_total": steps, "model": "bench", "device": "cuda:0", "precision": "bf16"},
    )
    for step in range(1, steps + 1):
        t, wave = begun + step * every, math.sin(step / 7)
        split = {"data": 0.02, "forward": 0.08, "backward": 0.12, "optimizer": 0.03}
        yield t, "step", step, {
            "loss": 2 / (1 + step / 1000) + wave / 10, "lr": 5e-5, "grad_norm": 1 + wave / 3, "samples": 32, "tokens": 3000,
            "padded_tokens": 4000, "epoch": step / 1000, "seconds": 0.25 + wave / 50, "split": split,
        }  # fmt: skip
        if step % (steps // 100) == 0:
            yield (
                t,
                "evaluation",
                step,
                {"accuracy": step / steps, "loss": 1.0, "samples": 300, "seconds": 2.0},
            )
            yield (
                t,
                "checkpoint",
                step,
                {"path": f"step-{step}", "seconds": 1.0, "bytes": 10**8, "reason": "interval"},
            )
    yield (
        begun + WEEK_S,
        "run-finished",
        steps,
        {"outcome": "completed", "steps": steps, "metrics": {"accuracy": 1.0}},
    )


def sampler_events() -> Iterator[Row]:
    begun = time.time() - WEEK_S
    for second in range(0, int(WEEK_S), 5):
        t = begun + second
        yield t, "sample-host", None, {"cpu_pct": 187.0, "rss_bytes": 1 << 30, "memory_used_bytes": 1 << 33,
                                       "memory_limit_bytes": 1 << 34, "processes": 3, "threads": 21}  # fmt: skip
        if second % 30 == 0:
            frames = [{"function": f"f{n}", "file": "train.py", "line": n, "self_share": 0.1, "total_share": 0.5,
                       "process": "trainer"} for n in range(12)]  # fmt: skip
            yield t, "sample-stacks", None, {"samples": 50, "looks": 50, "errors": 0, "frames": frames}


def first_paint(run: RunDir) -> dict[str, object]:
    """Return when the curves stand, when the whole is read, and the view's peak memory then."""
    terminal = Terminal(run.path, 80, 24)
    drawn = terminal.read_for(120, "⠂".encode())
    seconds, peak, paint_cpu_s = (
        time.perf_counter() - terminal.begun,
        terminal.peak_rss_bytes(),
        terminal.cpu_s(),
    )
    terminal.read_for(60, b"\x00never")
    cpu_s, later = terminal.cpu_s(), terminal.peak_rss_bytes()
    code = terminal.leave()
    return {"way": "full-screen view", "first_paint_s": round(seconds, 3) if drawn else None,
            "first_paint_cpu_s": round(paint_cpu_s, 2), "peak_bytes": peak,
            "peak_after_a_minute_bytes": later, "cpu_s_after_a_minute": round(cpu_s, 2), "exit_code": code}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "bench", options.steps)
        size = sum(path.stat().st_size for path in run.events.iterdir())
        print(json.dumps({"steps": options.steps, "events_bytes": size}), flush=True)
        argv = [sys.executable, "-m", "doctor", "watch", str(run.path), "--once"]
        samples = measure([Command("doctor watch --once", argv)], options.runs)["doctor watch --once"]
        print(json.dumps({"way": "doctor watch --once", "wall_s": round(samples.wall, 3), "cpu_s": round(samples.cpu, 3),
                          "peak_bytes": samples.peak, "exit_codes": sorted(samples.exit_codes)}), flush=True)  # fmt: skip
        print(json.dumps(first_paint(run)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
