"""Somebody at a prompt: commands of the user's own under ``doctor run``, with every process begun ended afterwards."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.events import RunEvent, read_events
from runner.rundir import RunDir

ROOT = Path(__file__).parent.parent.parent
TRAINS = """
import os, sys, time
for step in range(1, 6):
    print(f"step={step} loss={1 / step:.4f} lr=0.001")
print("step=5 val_loss=0.5 val_accuracy=0.75")
"""
WAITS = """
import signal, sys, time
{handler}
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


class Shell:
    """Somebody at a prompt in ``folder``; every process begun here is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if name not in ("OMP_NUM_THREADS", "PYTHONHASHSEED")
        }
        self.environ |= {"PYTHONPATH": str(ROOT), "DOCTOR_LANG": "en", "NO_COLOR": "1"}
        self.begun: list[subprocess.Popen[bytes]] = []

    def script(self, code: str, name: str = "train.py") -> Path:
        path = self.folder / name
        path.write_text(code)
        return path

    def begin(self, *words: str, **popen: Any) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "doctor", "run", "--run-dir", "one", *words]
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen(argv, cwd=self.folder, env=self.environ, **popen)
        self.begun.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.begin(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out.decode(), err.decode()

    def doctor(self, *words: str) -> str:
        """Return what another session is told."""
        argv = [sys.executable, "-m", "doctor", *words]
        return subprocess.run(
            argv, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=60, check=True
        ).stdout  # fmt: skip

    def delay_supervisor(self, seconds: float) -> None:
        """Let the supervisor's interpreter start only after so long, as from a dead disk."""
        (self.folder / "site").mkdir()
        (self.folder / "site" / "sitecustomize.py").write_text(
            f"import os, time\nif os.getcwd().endswith('stacks'):\n    time.sleep({seconds})\n"
        )
        self.environ["PYTHONPATH"] = f"{self.folder / 'site'}:{self.environ['PYTHONPATH']}"

    @property
    def one(self) -> RunDir:
        return RunDir(self.folder / "one")

    def events(self, kind: str) -> list[RunEvent]:
        return [
            event for event, _ in read_events(self.one.events / "trainer-log.jsonl") if event.kind == kind
        ]

    def notes(self) -> list[str]:
        return [event.data["text"]["msgid"] for event in self.events("note")]

    def close(self) -> None:
        for pid_file in (self.one.supervisor_pid, self.one.trainer_pid):
            if pid_file.exists():
                end(int(pid_file.read_text().split()[0]))
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            process.wait(10)


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_until(true: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def has_said(shell: Shell, words: str) -> Callable[[], bool]:
    return lambda: shell.one.trainer_log.exists() and words in shell.one.trainer_log.read_text()


SAVES = "signal.signal(signal.{name}, lambda *_: (print('saved', flush=True), sys.exit(7)))"


def read_until(terminal: int, words: str, seconds: float = 30.0) -> str:
    """Return what a terminal shows up to ``words``."""
    seen = b""
    limit = time.monotonic() + seconds
    while words.encode() not in seen:
        assert time.monotonic() < limit, seen.decode("utf-8", "replace")
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    return seen.decode("utf-8", "replace")
