"""Starts ``doctor --web`` as a user does and reads the link it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PATIENCE_S = 60.0


@dataclass
class Served:
    """A server under way."""

    process: subprocess.Popen[str]
    link: str

    @property
    def home(self) -> str:
        parts = urlsplit(self.link)
        return f"{parts.scheme}://{parts.netloc}"

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit status and what stderr held."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err

    def views(self) -> list[int]:
        """Return the processes of its visitors."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_view(entry, self.process.pid):
                found.append(int(entry.name))
        return found

    def wait_for_views(self, count: int) -> list[int]:
        end = time.monotonic() + PATIENCE_S
        while len(views := self.views()) != count and time.monotonic() < end:
            time.sleep(0.05)
        return views


def _is_view(entry: Path, parent: int) -> bool:
    try:
        status = (entry / "stat").read_text().rpartition(")")[2].split()
        return int(status[1]) == parent and status[0] != "Z"
    except (OSError, IndexError):
        return False


@contextmanager
def served(folder: Path, *words: str, **variables: str) -> Iterator[Served]:
    """Serve with ``doctor WORDS --web`` in ``folder`` on a free port, with nothing of the user's own around it."""
    root = str(Path(__file__).parent.parent.parent)
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SSH_CONNECTION", "DOCTOR_LANG", "LANG")
    }
    environ |= {"DOCTOR_CONFIG_DIR": str(folder / "config"), "DOCTOR_STATE_DIR": str(folder / "state"), "DOCTOR_RUNS": str(folder / "runs"),
                "PYTHONPATH": root, "LC_ALL": "C.UTF-8", **variables}  # fmt: skip
    port = () if "--port" in words else ("--port", "0")
    argv = [sys.executable, "-m", "doctor", *words, "--web", *port]
    process = subprocess.Popen(
        argv, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        if not link:
            _, err = process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"no link: {err}")
        yield Served(process, link)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
