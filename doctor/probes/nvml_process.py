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


WATCH_EVERY_S = 0.25
STUCK_FOR_S = 1.0


class NvmlSilent(Exception):  # noqa: N818 - it is what it says
    """The child gave no answer in time, or died. ``text`` says which.

    ``hung`` only where that is proven: the child lay in uninterruptible sleep and used no CPU. Waking idle cards of a
    machine without persistence mode takes seconds too, and is no hang.
    """

    def __init__(self, text: Text, *, died: bool = False, hung: bool = False) -> None:
        super().__init__(str(text))
        self.text = text
        self.died = died
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
            raise NvmlSilent(self._death(), died=True) from None

    def steps(self, silence_s: float, limit_s: float) -> Iterator[tuple[str, Any]]:
        """Yield ``(kind, value)`` of the answer's lines up to its end.

        Waits ``limit_s`` for all of them, and for the next line no longer than ``silence_s`` once the child is seen to
        hang.

        Raises:
            NvmlSilent: a line did not come in time, or the child died.
        """
        end = time.monotonic() + limit_s
        while True:
            line = self._line(silence_s, end)
            ((kind, value),) = msgspec.json.decode(line, type=dict[str, Any]).items()
            if kind == "end":
                return
            yield kind, value

    def _line(self, silence_s: float, end: float) -> bytes:
        poll = select.poll()
        poll.register(self._output, select.POLLIN | select.POLLHUP)
        begun = time.monotonic()
        watch: list[tuple[float, str]] = []
        while b"\n" not in self._buffer:
            if poll.poll(max(0.0, min(WATCH_EVERY_S, end - time.monotonic())) * 1000):
                piece = self._output.read(1 << 16)
                if not piece:
                    raise NvmlSilent(self._death(), died=True)
                self._buffer += piece
                continue
            now = time.monotonic()
            watch.append((now, self._sleeping_with()))
            hung = now - begun >= silence_s and _never_moved(watch, now)
            if hung or now >= end:
                raise NvmlSilent(self._silence(now - begun, hung), hung=hung)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _silence(self, waited_s: float, hung: bool) -> Text:
        if hung:
            return t(
                "NVML gave no answer within {seconds} s: the process that asked it ({pid}) is stuck in the driver (state D)",
                seconds=round(waited_s, 1),
                pid=self.pid,
            )
        return t(
            "NVML gave no answer within {seconds} s (asked by process {pid}): the driver hangs, or takes long to wake the cards",
            seconds=round(waited_s, 1),
            pid=self.pid,
        )

    def _sleeping_with(self) -> str:
        """Return the CPU ticks that the child has used, if it lies in uninterruptible sleep; "" otherwise."""
        # 4121 (python3) D 1 4121 4121 0 -1 4194560 1000 0 0 0 5 2 ...    the 12th and 13th after the name: user, system
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            return f"{fields[11]}+{fields[12]}" if fields[0] == "D" else ""
        except (OSError, IndexError):
            return ""

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


def _never_moved(watch: list[tuple[float, str]], now: float) -> bool:
    """Return whether the child slept uninterruptibly at every look of the last second, without using the CPU."""
    recent = {ticks for at, ticks in watch if at >= now - STUCK_FOR_S}
    return len(recent) == 1 and "" not in recent and watch[0][0] <= now - STUCK_FOR_S / 2


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
