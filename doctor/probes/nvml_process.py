"""The child that asks NVML, seen from our side: started, read with a deadline, abandoned when it hangs.

A hung driver leaves its callers in uninterruptible sleep, where no signal reaches them. So the child is never waited
for, runs in its own session, and holds none of our caller's files: its stdin and stdout are pipes of ours and its
stderr is /dev/null, so that ``doctor check | cat`` ends when we do.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from doctor.model import Text, t

CHILD = Path(__file__).with_name("nvml_child.py")
# Loads the program through its cached bytecode: compiling it anew would cost a third of its run time.
_START = (
    "import sys; from importlib.machinery import SourceFileLoader as Loader; module = type(sys)('nvml_child'); "
    "Loader('nvml_child', sys.argv[1]).exec_module(module); module.main(sys.argv[2])"
)
_abandoned: list[subprocess.Popen[bytes]] = []
"""Kept, since a Popen that is collected while its child lives complains; reaped when they end after all."""


class NvmlSilent(Exception):  # noqa: N818 - it is what it says
    """The child gave no answer in time, or died. ``text`` says which."""

    def __init__(self, text: Text, *, hung: bool) -> None:
        super().__init__(str(text))
        self.text = text
        self.hung = hung


def find_binding() -> Path | None:
    """Return NVIDIA's pynvml.py: the one beside nvidia-ml-py's metadata, else the first on our path.

    The folder of an old ``pynvml`` package beside it, or a user's own pynvml.py in the working directory, would win
    an import; the file that belongs to nvidia-ml-py is taken instead.
    """
    folders = [Path(entry) for entry in sys.path if entry]
    files = [folder / "pynvml.py" for folder in folders if (folder / "pynvml.py").is_file()]
    owned = (file for file in files if any(file.parent.glob("nvidia_ml_py-*.dist-info")))
    return next(owned, files[0] if files else None)


class NvmlProcessHandle:
    """One child. Not thread-safe.

    Raises:
        OSError: it could not be started (no memory, process limit).
    """

    def __init__(self, environ: Mapping[str, str], binding: Path) -> None:
        _abandoned[:] = [process for process in _abandoned if process.poll() is None]
        argv = [sys.executable, "-I", "-S", "-c", _START, str(CHILD), str(binding)]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env=dict(environ), cwd="/", start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._buffer = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Mapping[str, object]) -> None:
        """Send one request.

        Raises:
            NvmlSilent: the child is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        except OSError:
            raise NvmlSilent(self._death(), hung=False) from None

    def steps(self, silence_s: float, limit_s: float) -> Iterator[tuple[str, Any]]:
        """Yield ``(kind, value)`` of the answer's lines up to its end.

        Waits at most ``silence_s`` for the next line and ``limit_s`` for all of them.

        Raises:
            NvmlSilent: a line did not come in time, or the child died.
        """
        end = time.monotonic() + limit_s
        while True:
            wait_s = max(0.0, min(silence_s, end - time.monotonic()))
            line = self._line(time.monotonic() + wait_s, min(silence_s, limit_s))
            ((kind, value),) = msgspec.json.decode(line, type=dict[str, Any]).items()
            if kind == "end":
                return
            yield kind, value

    def _line(self, until: float, silence_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._output, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._buffer:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise NvmlSilent(self._silence(silence_s), hung=True)
            piece = self._output.read(1 << 16)
            if not piece:
                raise NvmlSilent(self._death(), hung=False)
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _silence(self, silence_s: float) -> Text:
        return t(
            "NVML gave no answer within {seconds} s (its process {pid} is in state {state}): the driver hangs, or takes long to wake the cards",
            seconds=round(silence_s, 1),
            pid=self.pid,
            state=self._state(),
        )

    def _state(self) -> str:
        # 4121 (python3) D 1 4121 ...
        try:
            return Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return "?"

    def _death(self) -> Text:
        try:
            code = self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            return t("the process that asks NVML closed its output")
        if code < 0:
            return t("the process that asks NVML was killed by {signal}", signal=_signal_name(-code))
        return t("the process that asks NVML ended with {code}", code=code)

    def alive(self) -> bool:
        return self._process.poll() is None

    def abandon(self) -> None:
        """Close our ends and leave the child to itself: told to die, never waited for."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        if self._process.poll() is None:
            self._process.kill()
            _abandoned.append(self._process)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
