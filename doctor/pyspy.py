"""Runs py-spy beside a process, without ever stopping it, in short windows that are read when they end.

Always ``--nonblocking``: blocking mode stops every OS thread on every look, which costs a torch process up
to two thirds of its speed. The output goes to memory files, so a full disk costs no stacks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from doctor.pyspy_errors import Trouble, classify, missing
from doctor.stacks import Stack, drop_torn, parse_errors, parse_raw
from runner.text import t

STOP_WAIT_S = 2.0
GRACE_S = 20.0
"""Beyond three times its duration a window that has not ended is killed: on busy cores py-spy takes its time to start."""
MOST_BYTES = 32 << 20
"""Of what one window gives; a tree of hundreds of processes gives one or two."""


@dataclass(frozen=True)
class Sample:
    """What one window gave."""

    stacks: tuple[Stack, ...] = ()
    errors: int = 0
    """Looks that failed, and stacks that were caught torn."""
    trouble: Trouble | None = None
    cpu_s: float = 0.0
    """What py-spy itself used, user and system."""
    wall_s: float = 0.0
    rate: int = 1
    """Looks a second that were asked for."""

    @property
    def samples(self) -> int:
        return sum(stack.count for stack in self.stacks)


def find_pyspy() -> str | None:
    """Return the py-spy beside our interpreter, else the one on PATH, else None."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def install_command() -> str:
    return f"{sys.executable} -m pip install py-spy"


def child_environment() -> dict[str, str]:
    """Return our environment without RUST_BACKTRACE, which makes py-spy bury its error under a backtrace."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RUST_")}


def yama_scope(pid: int) -> int | None:
    """Return ``kernel.yama.ptrace_scope`` where it could be what forbids a look at ``pid``.

    None: no Yama in this kernel, or the process is another user's (which is reason enough), or it is gone.
    """
    try:
        if os.getuid() not in (0, os.stat(f"/proc/{pid}").st_uid):  # noqa: PTH116
            return None
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


class Window:
    """One recording of a process and its children, under way."""

    def __init__(
        self, pid: int, seconds: int = 5, rate: int = 10, binary: str | None = None, gil_only: bool = False
    ) -> None:
        """``gil_only``: each look keeps a process's thread that holds its GIL, and nothing where none does."""
        self.pid = pid
        self.gil_only = gil_only
        self.rate = rate
        self.seconds = max(1, seconds)  # py-spy takes whole seconds, and panics on a fraction
        self._begun = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._sample: Sample | None = None
        self._out, self._err = _memory_file("stacks"), _memory_file("errors")
        binary = binary or find_pyspy()
        if binary is None:
            self._finish(Sample(trouble=missing(install_command())))
            return
        argv = [
            binary, "record", "--format", "raw", "--subprocesses", "--gil" if gil_only else "--idle", "--threads",
            "--nonblocking", "--rate", str(rate), "--duration", str(self.seconds), "--output", f"/proc/self/fd/{self._out}",
            "--pid", str(pid),
        ]  # fmt: skip
        try:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=self._err, stderr=self._err,
                pass_fds=[self._out], env=child_environment(), cwd="/",
            )  # fmt: skip
        except OSError as error:
            why = t("py-spy could not be started: {error}", error=f"{error.strerror} ({binary})")
            self._finish(Sample(trouble=Trouble("OTHER", why, True)))

    def poll(self) -> Sample | None:
        """Return the sample when the window has ended, None while it runs. Never blocks."""
        if self._sample is None and self._process is not None:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._reap(status, usage.ru_utime + usage.ru_stime)
            elif time.monotonic() - self._begun > 3 * self.seconds + GRACE_S:
                os.kill(self._process.pid, signal.SIGKILL)  # reaped by the next poll
        return self._sample

    def stop(self) -> Sample:
        """End the window now and return what it has (SIGINT: on SIGTERM py-spy loses everything)."""
        process = self._process
        if process is not None and self._sample is None:
            # Popen.send_signal would reap a process that has just ended, and lose what it cost.
            os.kill(process.pid, signal.SIGINT)
            end = time.monotonic() + STOP_WAIT_S
            while self.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            if self.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                self._reap(status, usage.ru_utime + usage.ru_stime)
        assert self._sample is not None
        return self._sample

    def wait(self) -> Sample:
        """Wait for the window's own end."""
        while (sample := self.poll()) is None:
            time.sleep(0.05)
        return sample

    def _reap(self, status: int, cpu_s: float) -> None:
        assert self._process is not None
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        raw, stderr = _content(self._out), _content(self._err)
        stacks, torn = drop_torn(parse_raw(raw))
        trouble = self._trouble(stderr) if code != 0 and not stacks else None
        self._finish(
            Sample(
                stacks=tuple(stacks),
                errors=parse_errors(stderr) + torn,
                trouble=trouble,
                cpu_s=cpu_s,
                wall_s=time.monotonic() - self._begun,
                rate=self.rate,
            )
        )

    def _trouble(self, stderr: str) -> Trouble:
        # Error: No python processes found in process 4242 or any of its subprocesses
        # That is all that --subprocesses says of a process that is gone, forbidden or not Python; dump says which.
        if "No python processes found" in stderr:
            _, trouble = dump(self.pid, timeout_s=3.0, with_children=False)
            if trouble is not None:
                return trouble
        return classify(stderr, yama_scope(self.pid))

    def _finish(self, sample: Sample) -> None:
        self._sample = sample
        os.close(self._out)
        os.close(self._err)


def _memory_file(name: str) -> int:
    try:
        return os.memfd_create(name)
    except OSError:  # an old kernel or a sandbox without it
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _content(fd: int) -> str:
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def record(pid: int, seconds: int, rate: int = 10, binary: str | None = None) -> Sample:
    """Watch ``pid`` and its children for ``seconds`` and return their stacks."""
    return Window(pid, seconds, rate, binary).wait()


def dump(
    pid: int, timeout_s: float = 20.0, with_children: bool = True, native: bool = False
) -> tuple[str, Trouble | None]:
    """Return where every thread of ``pid`` (and its children) stands right now, as text.

    ``native``: with the frames of C and C++ among them. That stops the process for a moment, so it is for one that stands anyway.
    """
    binary = find_pyspy()
    if binary is None:
        return "", missing(install_command())
    children = ["--subprocesses"] if with_children else []
    argv = [binary, "dump", "--native" if native else "--nonblocking", *children, "--pid", str(pid)]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=child_environment(),
            timeout=timeout_s,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return "", Trouble("OTHER", t("py-spy gave no answer within {seconds} s", seconds=timeout_s), False)
    except OSError as error:
        return "", Trouble("OTHER", t("py-spy could not be started: {error}", error=str(error)), True)
    if done.returncode != 0 and not done.stdout:
        return "", classify(done.stderr.decode("utf-8", "replace"), yama_scope(pid))
    return done.stdout.decode("utf-8", "replace"), None
