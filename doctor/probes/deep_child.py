"""A child of the examined interpreter, seen from our side: its JSON lines, its end, what it said when it died.

It runs in its own session and is ended with everything it started; one that not even that reaches (stuck in a driver
or on a dead mount) is left behind. A crash, a hang and a signal are answers.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

STDERR_TAIL_BYTES = 16 << 10
LINE_LIMIT_BYTES = 1 << 20
AFTER_DEADLINE_S = 1.5
"""What the child gets beyond its own limit, to say where it hangs."""

_abandoned: list[subprocess.Popen[bytes]] = []
"""Kept, since a Popen that is collected while its child lives complains."""


class Ended(msgspec.Struct, frozen=True):
    """How a child ended, and all it told."""

    told: tuple[dict[str, Any], ...]
    code: int | None
    """Exit status; negative: the signal. None: it had to be ended, or outlived that."""
    stderr: str


def run_child(argv: Sequence[str], environ: Mapping[str, str], cwd: Path, limit_s: float) -> Ended:
    """Run ``argv`` for at most ``limit_s`` seconds and return what it told.

    Raises:
        OSError: it could not be started.
    """
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        env=dict(environ), cwd=cwd, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    streams = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    try:
        _listen(process, streams, time.monotonic() + limit_s)
        code = process.poll()
    finally:
        _end(process)
    out, err = streams.values()
    stderr = bytes(err[-STDERR_TAIL_BYTES:]).decode("utf-8", "replace")
    process.stdout.close()
    process.stderr.close()
    return Ended(told=tuple(_lines(bytes(out))), code=code, stderr=stderr)


def _listen(process: subprocess.Popen[bytes], streams: dict[int, bytearray], end: float) -> None:
    """Collect both streams until the child ended or the time is up. A grandchild may keep a pipe open for ever."""
    poll = select.poll()
    for descriptor in streams:
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    open_streams = len(streams)
    while open_streams and (left := end - time.monotonic()) > 0:
        gone = process.poll() is not None
        ready = poll.poll(0 if gone else min(left, 0.1) * 1000)
        for descriptor, _ in ready:
            piece = _read(descriptor)
            if piece == b"":
                poll.unregister(descriptor)
                open_streams -= 1
            streams[descriptor] += piece or b""
            if len(streams[descriptor]) > 2 * LINE_LIMIT_BYTES:
                del streams[descriptor][:-LINE_LIMIT_BYTES]
        if gone and not ready:
            return
    try:
        process.wait(max(0.0, min(0.5, end - time.monotonic())))
    except subprocess.TimeoutExpired:
        return


def _read(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def _lines(raw: bytes) -> list[dict[str, Any]]:
    """Return the complete lines that are ours; a torn one is the end of a process that died while it wrote."""
    told = []
    for line in raw.splitlines():
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(value, dict):
            told.append(value)
    return told


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started; its session is its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        _abandoned.append(process)


# Fatal Python error: Segmentation fault / Current thread 0x00007f (most recent call first): /   File "/env/x.py", line 7 in f
_THREAD = re.compile(r"[Tt]hread 0x\w+[^\n]*\(most recent call first\):\n((?: +File [^\n]*\n?)+)")


def where_it_was(stderr: str) -> str:
    """Return the innermost Python line of the main thread in what faulthandler wrote; empty when it wrote nothing.

    The thread that crashed is called the current one; else the main thread is the oldest, and stands last.
    """
    threads = list(_THREAD.finditer(stderr))
    if not threads:
        return ""
    current = [one for one in threads if stderr[max(0, one.start() - 8) : one.end()].startswith("Current")]
    return (current or threads)[-1][1].splitlines()[0].strip()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
