"""What watching costs: the full-screen view on a run that writes once a second, in a terminal that counts its bytes.

``python -m benchmarks.tui [--seconds 30]`` prints a JSON object a screen size: CPU-seconds as a share of one core
at 1 Hz, peak memory, bytes a second to the terminal, and seconds until the first screen stood.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

from runner.events import EventWriter
from runner.rundir import RunDir

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROGRAM = "from doctor.tui.app import run_app; raise SystemExit(run_app({run!r}))"
WARM_UP_S = 4.0


class BusyRun(threading.Thread):
    """A run directory with ``steps`` steps behind it that grows by one second's worth of events a second."""

    def __init__(self, path: Path, steps: int, gpus: int) -> None:
        super().__init__(daemon=True)
        self.run_dir = RunDir(path)
        self.run_dir.make()
        self.run_dir.plan.write_text("{}", "utf-8")
        self.trainer = EventWriter(self.run_dir.events / "trainer-0.jsonl", "trainer-0")
        self.sampler = EventWriter(self.run_dir.events / "sampler.jsonl", "sampler")
        self.gpus = gpus
        self.step = 0
        self.stopping = threading.Event()
        self.trainer.write(
            "run-started", steps_total=steps * 2, model="bench", device="cuda:0", precision="bf16"
        )
        for _ in range(steps):
            self.write_step()

    def write_step(self) -> None:
        self.step += 1
        wave = math.sin(self.step / 7)
        self.trainer.write(
            "step", self.step, loss=2 / (1 + self.step / 100) + wave / 10, lr=5e-5, grad_norm=1 + wave / 3,
            samples=32, tokens=3000, padded_tokens=4000, epoch=self.step / 100, seconds=0.25 + wave / 50,
            split={"data": 0.02, "forward": 0.08, "backward": 0.12, "optimizer": 0.03},
        )  # fmt: skip

    def write_samples(self) -> None:
        wave = math.sin(time.time())
        self.sampler.write("sample-host", cpu_pct=150 + 40 * wave, rss_bytes=int(2e9 + 1e8 * wave), processes=3,
                           threads=30, memory_used_bytes=int(9e9), memory_limit_bytes=int(24e9))  # fmt: skip
        cards = [
            {"index": n, "name": "NVIDIA H100 80GB HBM3", "utilization_pct": 90 + 9 * wave,
             "memory_used_bytes": int(6e10 + 1e9 * wave), "memory_total_bytes": 85520809984,
             "temperature_c": 60 + 5 * wave, "power_w": 600 + 50 * wave, "power_limit_w": 700.0,
             "sm_clock_mhz": 1755.0}
            for n in range(self.gpus)
        ]  # fmt: skip
        self.sampler.write("sample-gpu", gpus=cards)
        frames = [
            {"function": f"function_{n}", "file": f"/venv/lib/python3.11/site-packages/torch/file_{n}.py",
             "line": 10 + n, "self_share": 0.2 / (n + 1) + 0.01 * wave, "total_share": 0.5 / (n + 1),
             "process": "trainer" if n < 10 else "worker"}
            for n in range(20)
        ]  # fmt: skip
        self.sampler.write("sample-stacks", samples=100, errors=0, frames=frames)

    def run(self) -> None:
        while not self.stopping.wait(1.0):
            for _ in range(4):
                self.write_step()
            self.write_samples()


class Terminal:
    """A pseudo-terminal of one size with the view on ``run`` in it; counts what it is sent."""

    def __init__(self, run: Path, columns: int, rows: int) -> None:
        self.begun = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the child: it becomes the view
            os.execvp(sys.executable, [sys.executable, "-c", PROGRAM.format(run=str(run))])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.sent = b""
        self.bytes = 0

    def read_for(self, seconds: float, until: bytes = b"") -> bool:
        """Read what is sent for ``seconds``, or until ``until`` was among it; return whether it was."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                chunk = os.read(self.fd, 65536)
                self.bytes += len(chunk)
                self.sent = (self.sent + chunk)[-65536:]
                if until and until in self.sent:
                    return True
        return False

    def cpu_s(self) -> float:
        """CPU-seconds of the view so far (``ps -o time``), its children included."""
        # 4242 (python) R 1 ... utime stime cutime cstime ...
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return sum(int(fields[index]) for index in (11, 12, 13, 14)) / TICKS_PER_S

    def peak_rss_bytes(self) -> int:
        # VmHWM:     51232 kB
        status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def leave(self) -> int:
        os.write(self.fd, b"q")
        self.read_until_closed()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def read_until_closed(self) -> None:
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:  # EIO: the other side is gone
            return


def measure(columns: int, rows: int, seconds: float, steps: int, gpus: int) -> dict[str, Any]:
    """Watch a busy run for ``seconds`` at one terminal size."""
    with tempfile.TemporaryDirectory() as folder:
        run = BusyRun(Path(folder) / "bench", steps, gpus)
        terminal = Terminal(run.run_dir.path, columns, rows)
        painted = terminal.read_for(60, b"bench")
        first_paint_s, first_paint_cpu_s = time.perf_counter() - terminal.begun, terminal.cpu_s()
        drawn = painted and terminal.read_for(60, "⠂".encode())
        first_curve_s = time.perf_counter() - terminal.begun
        run.start()
        terminal.read_for(WARM_UP_S)
        cpu_before, bytes_before, begun = terminal.cpu_s(), terminal.bytes, time.perf_counter()
        terminal.read_for(seconds)
        watched_s = time.perf_counter() - begun
        result = {
            "terminal": f"{columns}x{rows}",
            "cpu_share": round((terminal.cpu_s() - cpu_before) / watched_s, 4),
            "bytes_per_s": round((terminal.bytes - bytes_before) / watched_s),
            "peak_rss_bytes": terminal.peak_rss_bytes(),
            "first_paint_s": round(first_paint_s, 3) if painted else None,
            "first_paint_cpu_s": round(first_paint_cpu_s, 2),
            "first_curve_s": round(first_curve_s, 3) if drawn else None,
            "steps_replayed": steps,
            "gpus": gpus,
            "watched_s": round(watched_s, 1),
        }
        run.stopping.set()
        result["exit_code"] = terminal.leave()
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--steps", type=int, default=1000, help="steps that the run has behind it")
    parser.add_argument("--gpus", type=int, default=1)
    options = parser.parse_args()
    for columns, rows in ((80, 24), (160, 48)):
        print(json.dumps(measure(columns, rows, options.seconds, options.steps, options.gpus)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
