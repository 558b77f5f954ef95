"""Real training steps measured in a child: asked one batch size at a time, with a limit on memory and on time.

The child takes no weights and touches no run. One that is killed for memory is an answer, and another takes its place.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import runner.child
import runner.oom
from doctor.exact_memory import REQUEST_FIELDS
from doctor.memory_troubles import CannotMeasure, OutOfTime
from doctor.probes.deep_child import signal_name
from runner.child.memory_guard import EXIT_OVER_LIMIT
from runner.estimate import MemoryRequest
from runner.text import Text, t

_PROGRAM = Path(next(iter(runner.child.__path__))) / "measure_memory.py"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One batch size, really run."""

    batch: int
    fits: bool
    """Within the limit; the device or the fence said no otherwise."""
    peak_bytes: int = 0
    """Tensors on a GPU; on a CPU what the process took beyond what it held before the model was made."""
    process_bytes: int = 0
    """Reserved by torch's allocator on a GPU; the whole process on a CPU."""
    seconds: float = 0.0
    """Of one update."""
    why: str = ""
    """Where it does not fit: the words of whoever said so."""


class Bench:
    """Answers for one request; a child is started when it is asked, and again where one died of it."""

    def __init__(
        self, request: MemoryRequest, python: str, environ: Mapping[str, str], cwd: Path, limit_bytes: int, limit_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.limit_bytes = limit_bytes
        """Of the whole process; 0: what the device has. Once a child is ready: what holds."""
        self.device, self.torch = "", ""
        """As the child called them."""
        self._clock, self._end = clock, clock() + limit_s
        question = {name: getattr(request, name) for name in REQUEST_FIELDS}
        question |= {"limit_bytes": limit_bytes, "oom_code": runner.oom.__file__}
        self._argv = [python, "-B", str(_PROGRAM), msgspec.json.encode(question).decode()]
        self._environ = {
            **environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_WAIT_POLICY": "PASSIVE",
        }  # fmt: skip
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - what children say on stderr, until close

    def measure(self, batch: int) -> Measured:
        """Run two updates with micro-batches of ``batch`` samples.

        Raises:
            OutOfTime: the time given is used up.
            CannotMeasure: a library failed, in its own words.
        """
        if self._process is None:
            died = self._start()
            if died:
                return Measured(batch=batch, fits=False, why=died)
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(b"%d\n" % batch)
            process.stdin.flush()
        except BrokenPipeError:
            return Measured(batch=batch, fits=False, why=self._died())
        told = self._line()
        if told is None:
            return Measured(batch=batch, fits=False, why=self._died())
        return msgspec.convert(told, Measured)

    def _start(self) -> str:
        """Start a child and wait until its model stands; return why it was killed for memory, if it was."""
        try:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, env=self._environ, cwd=self._cwd,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise CannotMeasure(_failed(self._argv[0], error.strerror or str(error))) from None
        told = self._line()
        if told is None:
            return self._died()
        self.device, self.torch = str(told["device"]), str(told["torch"])
        self.limit_bytes = int(told["limit_bytes"])
        return ""

    def _line(self) -> dict[str, Any] | None:
        """Return the child's next line; None: it ended without one.

        Raises:
            OutOfTime: it did not answer in time, and was ended.
            CannotMeasure: it says what failed; an out-of-memory before the model stood is an end like a kill.
        """
        process = self._process
        assert process is not None and process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, self._end - self._clock()))
        if not ready:
            self._stop()
            raise OutOfTime
        raw = process.stdout.readline()
        if not raw:
            return None
        told: dict[str, Any] = msgspec.json.decode(raw)
        if "error" not in told:
            return told
        self._stop()
        if told["short"]:
            return None
        raise CannotMeasure(_failed(self._argv[0], str(told["error"])))

    def _died(self) -> str:
        """Return how the child ended, where that was for memory.

        Raises:
            CannotMeasure: it ended for another reason.
        """
        process, self._process = self._process, None
        if process is None:
            return "out of memory while the model was made"
        code = process.wait()
        _close(process)
        if code == EXIT_OVER_LIMIT:
            return "it held more than the limit"
        if code == -signal.SIGKILL:
            return "killed by the kernel (SIGKILL)"
        how = signal_name(-code) if code < 0 else f"exit status {code}"
        raise CannotMeasure(_failed(self._argv[0], f"{how}: {self._last_words()}"))

    def _last_words(self) -> str:
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - 4096))
        lines = self._words.read().decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "-")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _close(process)

    def close(self) -> None:
        self._stop()
        self._words.close()


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:
                continue  # what was still to be written has no reader


def _failed(python: str, why: str) -> Text:
    return t("no training step could be run in {python}: {why}", python=python, why=why)


def refusal(request: MemoryRequest) -> Text | None:
    """Return why a request cannot be measured on one device here; None: it can."""
    if request.cards > 1 or request.spread > 1 or request.offload or request.offload_parameters:
        return t(
            "one device is measured: several cards, and what lies in the host's memory, are foretold only"
        )
    if request.optimizer == "adamw-8bit":
        return t("8-bit AdamW is bitsandbytes' own: its memory is foretold, not measured here")
    return None
