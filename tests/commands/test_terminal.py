"""``doctor run`` and ``doctor watch`` on a real terminal: one line that is rewritten, Ctrl-C as the keyboard sends it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.trainer_pid import trainer_alive
from runner.rundir import RunDir
from tests.commands.test_run import folder  # noqa: F401 - the project with the fake trainer

ROOT = Path(__file__).parent.parent.parent


class Terminal:
    """A program on a pseudo-terminal of 80 columns, and all it wrote there."""

    def __init__(self, cwd: Path, *arguments: str, how: str = "complete") -> None:
        self.master, slave = pty.openpty()
        environ = {
            **os.environ, "FAKE_TRAINER": how, "DOCTOR_LANG": "en", "DOCTOR_RUNS": str(cwd / "runs"), "TERM": "xterm",
            "PYTHONPATH": f"{cwd / 'path'}:{ROOT}", "PYTHONUTF8": "1",
        }  # fmt: skip
        self.output = b""
        # A session of its own whose controlling terminal this is: what Ctrl-C needs to become a signal.
        start = "import os,sys,fcntl,termios; fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execv(sys.argv[1],sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, sys.executable, "-m", "doctor", *arguments],
            cwd=cwd, env=environ, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def read_until(self, words: bytes, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while words not in self.output:
            assert time.monotonic() < end, self.output
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self.master, 65536)
                except OSError:  # EIO: the program has closed the terminal
                    assert words in self.output, self.output
                    return

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def close(self) -> int:
        code = self.process.wait(20)
        os.close(self.master)
        return code


@pytest.fixture
def run_arguments() -> Iterator[tuple[str, ...]]:
    yield ("run", "tiny.toml", "--run-dir", "runs/one", "--python", sys.executable, "--anyway")


def test_progress_is_one_line_that_is_rewritten(folder: Path, run_arguments: tuple[str, ...]) -> None:  # noqa: F811
    terminal = Terminal(folder, *run_arguments)
    terminal.read_until(b"report.html")
    assert terminal.close() == 0
    progress = [part for part in terminal.output.split(b"\r") if part.startswith(b"step ")]
    assert progress
    assert all(part.endswith((b"\x1b[K", b"completed\x1b[K")) for part in progress)


def test_ctrl_c_on_the_keyboard_saves_the_run(folder: Path, run_arguments: tuple[str, ...]) -> None:  # noqa: F811
    terminal = Terminal(folder, *run_arguments, how="slow")
    terminal.read_until(b"step 3/10")
    terminal.press(b"\x03")
    terminal.read_until(b"--resume")
    assert b"\ndoctor: saving and stopping" in terminal.output  # not behind the progress line
    assert terminal.close() == 143


def test_closing_the_terminal_leaves_the_run_alone(folder: Path, run_arguments: tuple[str, ...]) -> None:  # noqa: F811
    terminal = Terminal(folder, *run_arguments, how="slow")
    terminal.read_until(b"step 3/10")
    os.close(terminal.master)  # the kernel sends SIGHUP, as when SSH drops
    terminal.process.wait(20)
    run = RunDir(folder / "runs" / "one")
    assert trainer_alive(run) is True
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"from doctor.running import stop; from runner.rundir import RunDir; stop(RunDir({str(run.path)!r}))",
        ],
        check=True,
    )
    end = time.monotonic() + 10
    while trainer_alive(run) and time.monotonic() < end:
        time.sleep(0.05)
    assert trainer_alive(run) is False


def test_the_text_screen_sends_only_what_changed(folder: Path, run_arguments: tuple[str, ...]) -> None:  # noqa: F811
    first = Terminal(folder, *run_arguments, "--detach", how="slow")
    first.read_until(b"doctor watch")
    first.close()
    terminal = Terminal(folder, "watch", "runs/one", "--text", "--seconds", "0.2")
    terminal.read_until(b"step 3/10")
    time.sleep(1.5)
    pid = int((folder / "runs" / "one" / "trainer.pid").read_text().split()[0])
    os.kill(pid, 15)
    terminal.read_until(b"mstopped\x1b")
    assert terminal.close() == 0
    assert terminal.output.count(b"\x1b[2J") == 1
