"""The process beside a trainer: host, GPUs and Python stacks into ``events/sampler.jsonl``.

``python -m doctor.sampler RUN_DIR --pid PID``. It only looks, gives way to everything else on the machine, lives in a session
of its own, and ends when the trainer does. Nothing it meets (no GPU, no py-spy, a full disk) ends it sooner.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from doctor.giving_way import give_way
from doctor.probes.process_tree import here, read_stat
from doctor.sampling import Sampler
from runner.rundir import RunDir

WAIT_FOR_OTHER_S = 15.0
"""Beside a run that is resumed the sampler of the start before may still be on its way out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Sample until the trainer ends (it may have ended before we began); 1 when there is no such run."""
    options = _parser().parse_args(argv)
    run = RunDir(options.run_dir.absolute())
    if not run.events.is_dir():
        return _leave(f"no run at {run.path}", 1)
    give_way()
    if not take_lock(run.path):
        return _leave(f"another sampler is at work in {run.path}", 0)
    try:
        sampler = Sampler(
            run, options.pid, options.silence_s, not options.no_stacks, options.supervised, options.ranks
        )
    except OSError as error:
        return _leave(f"{run.events}: {error}", 1)
    _write_pid(run)

    def stop(number: int, frame: object) -> None:
        sampler.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sampler.watch()
    return 0


def take_lock(path: Path, wait_s: float = WAIT_FOR_OTHER_S) -> bool:
    """Hold the run for this process alone, to its end; False: another sampler holds it. Where nothing can be locked, it is free."""
    try:
        descriptor = os.open(path / "sampler.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return True
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                os.close(descriptor)
                return False
        except OSError:  # a network disk without locks
            return True
        time.sleep(0.2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m doctor.sampler", description="Samples beside a trainer.")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--silence-s", type=float, default=60.0)
    parser.add_argument("--no-stacks", action="store_true")
    parser.add_argument("--supervised", action="store_true")
    parser.add_argument(
        "--ranks", action="store_true", help="the process starts others, which train together"
    )
    return parser


def _leave(why: str, code: int) -> int:
    print(f"sampler: {why}", file=sys.stderr)  # noqa: T201
    return code


def _write_pid(run: RunDir) -> None:
    stat = read_stat(os.getpid())
    with contextlib.suppress(OSError):
        run.sampler_pid.write_text(f"{os.getpid()} {stat.start_ticks if stat else -1} {' '.join(here())}\n")


if __name__ == "__main__":
    sys.exit(main())
