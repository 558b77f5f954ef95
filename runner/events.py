"""What happened in a run, one JSON object a line: the only thing a trainer tells the world.

One writer a file (``events/trainer-0.jsonl``, ``events/sampler.jsonl``), one ``write`` a line, ``O_APPEND``, a sequence
number in each line. Readers start from a byte offset, skip what they do not know, and wait for a torn last line.
Non-finite numbers are written as the strings ``"nan"``, ``"inf"``, ``"-inf"``: JSON has no word for them, and a
writer's ``null`` would hide a NaN.
"""

from __future__ import annotations

import errno
import heapq
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

# Kinds and what their ``data`` holds. Readers must not fail on a kind or key they do not know.
#
# run-started    device, precision, steps_total, epochs, samples_total, resumed_from_step (absent: fresh), model, torch,
#                parameters, pid, hostname, world_size (processes that train together; absent: one, or not told)
#                Of several processes each writes trainer-RANK.jsonl; its samples and tokens are its own.
#                rank, local_rank, strategy ("ddp" "fsdp" "deepspeed"), threads; in step's split also wait: for the slowest one's passes
# preparing      what ("tokenising"), part ("train" "eval"), rows, rows_total, tokens, seconds, rows_per_s, characters_per_s,
#                eta_seconds (of this part; absent or null: not known)
# step           loss, lr, grad_norm, samples, tokens, padded_tokens, epoch, seconds, split {data, forward, backward, optimizer}
#                non_finite: losses that were no numbers since the event before, counted one by one (a callback's)
#                (step = optimizer updates done, counted from 1; seconds since the previous step event's update)
# evaluation     accuracy (or the task's metric names), loss, samples, seconds, best (bool)
# checkpoint     path, seconds, bytes, reason ("interval" "best" "signal" "end")
# memory         the peak of the first steps, foretold and measured: device ("cuda" "cpu"), samples, length (the largest
#                micro-batch so far), measured_bytes and predicted_bytes (of tensors, at that shape; predicted absent: the
#                arithmetic does not know the model, why says so), worst_bytes (foretold for the longest samples allowed),
#                process_bytes (peak RSS on a CPU, reserved by the allocator on a GPU), parted (bool: by more than 15 %)
# evaluating     done, total (batches of the evaluation under way), now and then
# note           level ("info" "warn" "fail"), text (a Text as {"msgid", "params"}), file (a path inside the run directory)
# run-finished   outcome ("completed" "stopped" "interrupted" (a command stopped by hand) "failed" "non-finite"), steps, seconds, exit_code, error, final_dir, metrics
#                gil_share, gil_main_share (of gil_looks: how often any thread, and the main one, held the GIL)
# on-finish      state ("waiting" "cancelled" "running" "done"), command, at (epoch seconds when it will run), exit_code
#                (a supervised command only; so are command and attempt in run-started, and steps_total in step)
# output         bytes: how far a supervised command's log has grown
# sample-host    cpu_pct, rss_bytes, memory_used_bytes, memory_limit_bytes, memory_scope ("container" "machine"), processes,
#                threads, disk_free_bytes, cpu_cores_usable, cpu_throttled_pct (of the scheduler's periods since the sample
#                before, where the container has a CPU limit), disk_read_bytes_per_s, disk_write_bytes_per_s (of the run's
#                processes, from storage), network_rx_bytes_per_s, network_tx_bytes_per_s, shm_used_bytes, shm_size_bytes,
#                unread {field: why}
#                blocked, paused (processes of the run in state D and T)
# sample-gpu     gpus [{index, name, utilization_pct, memory_activity_pct, memory_used_bytes, memory_total_bytes, temperature_c,
#                temperature_slowdown_c, power_w, power_limit_w, sm_clock_mhz, throttle_reasons [str], pcie_rx_bytes_per_s, pcie_tx_bytes_per_s, nvlink_rx_bytes_per_s,
#                nvlink_tx_bytes_per_s, nvlink_errors (since the driver was loaded), sm_active_pct, tensor_active_pct (GPM),
#                unread {field: why}}], why (when none could be read)
# xid            number, fault ("hardware" "link" "recoverable" "application" "unknown"), meaning, pci, gpu_index (absent: not
#                known), is_ours (false: of a card that is not this container's), at (epoch seconds), line (of the kernel log)
# sample-xids    source ("kernel log" "NVML"): where xid events come from from now on; why: nowhere, and so their absence says nothing
# sample-stacks  distributed (true: its stacks go through data parallel training), exchange (share of looks in a collective, of
#                the thread that is oftenest in one), samples, errors, frames [{function, file, line, self_share, total_share, process, thread (a side thread's)}],
#                looks (at the trainer's main thread), phases {name: share of looks}, places [{phase, function, file, line,
#                share}] in the user's own code, trees [{process, nodes [[depth, function, file, line, share]]}], why and trouble (its class, see doctor/pyspy_errors.py) where there are none
# standing       where a silent trainer stands: file (inside the run directory), waits [{pid, state, call}] of its processes, place
#                (of its own dumps), dumps (how many of them)
KINDS = (
    "run-started", "preparing", "step", "evaluation", "checkpoint", "memory", "note", "run-finished",
    "sample-host", "sample-gpu", "sample-stacks", "sample-xids", "xid", "on-finish", "output",
    "standing", "evaluating",
)  # fmt: skip


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an events file."""

    seq: int
    """Counts up from 0 in each file; a gap means lost lines."""
    t: float
    """Seconds since the epoch (UTC), wall clock of the writer."""
    source: str
    """The writer: ``trainer-0``, ``sampler``, ``log`` (a supervised command's output, in trainer-log.jsonl)."""
    kind: str
    step: int | None = None
    data: dict[str, Any] = {}


def finite_or_name(value: Any) -> Any:
    """Return ``value`` with every non-finite float inside it replaced by its name (``"nan"``, ``"inf"``, ``"-inf"``)."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite_or_name(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_name(item) for item in value]
    return value


def number(value: Any) -> float | None:
    """Return a number as written by :func:`finite_or_name`, or None if ``value`` is none."""
    if type(value) is float:  # nearly always: a million steps ask ten million times
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:  # an integer beyond all floats
            return None
    return float(value) if value in ("nan", "inf", "-inf") else None


LARGEST_COUNT = 1 << 53
"""Up to here a float counts one by one; nothing that a run counts comes near."""


def amount(value: Any) -> float | None:
    """Return how many or how much: a finite number from 0 up to :data:`LARGEST_COUNT`; None for anything else."""
    found = number(value)
    return found if found is not None and 0 <= found <= LARGEST_COUNT else None


def whole(value: Any, otherwise: int | None) -> int | None:
    """Return a count as an integer; ``otherwise`` for what is none."""
    found = amount(value)
    return otherwise if found is None else int(found)


def table(value: Any) -> dict[str, Any]:
    """Return an object of an event; an empty one where something else stands in its place."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list in an event; none where something else stands in its place."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, (list, tuple)) else []


def words(value: Any) -> list[str]:
    """Return the strings of a list in an event; none where something else stands in its place."""
    return [word for word in value if isinstance(word, str)] if isinstance(value, (list, tuple)) else []


class EventWriter:
    """Appends events to one file; safe to kill at any instant (at worst the last line is torn).

    A writer that opens a file with a torn last line ends that line first, so that the next event stands alone.

    Raises:
        OSError: from :meth:`write`, when the line could not be written whole (disk full, directory gone).
    """

    def __init__(self, path: Path, source: str, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.source = source
        self._clock = clock
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._seq = self._resume()

    def _resume(self) -> int:
        size = os.fstat(self._fd).st_size
        if size == 0:
            return 0
        if os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")
        last = 0
        for event, _ in read_events(self.path):
            last = event.seq
        return last + 1

    def write(self, kind: str, step: int | None = None, **data: Any) -> RunEvent:
        """Append one event and return it."""
        event = RunEvent(
            seq=self._seq,
            t=self._clock(),
            source=self.source,
            kind=kind,
            step=step,
            data=finite_or_name(data),
        )
        line = msgspec.json.encode(event) + b"\n"
        written = os.write(self._fd, line)
        if written != len(line):
            os.write(self._fd, b"\n")
            raise OSError(28, "the event was cut short: no space left", str(self.path))
        self._seq += 1
        return event

    @property
    def is_deleted(self) -> bool:
        """Has somebody removed the file under the writer's hands?"""
        return os.fstat(self._fd).st_nlink == 0

    def close(self) -> None:
        os.close(self._fd)


_DECODER = msgspec.json.Decoder(RunEvent)


LONGEST_LINE = 4 << 20
"""No event comes near; what is longer is no line of ours (a hole in the file, foreign bytes) and never held in memory."""
_SKIP_BYTES = 1 << 20


def read_events(path: Path, offset: int = 0) -> Iterator[tuple[RunEvent, int]]:
    """Yield ``(event, offset after its line)`` from byte ``offset`` on; a torn last line is left for the next call.

    Lines that are not events (torn by a kill and then ended, or foreign) are skipped; their bytes are passed over.
    A file that does not exist yet has no events.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - the with below closes it
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        while line := file.readline(LONGEST_LINE):
            if not line.endswith(b"\n"):
                if len(line) < LONGEST_LINE or not pass_over(file):
                    return
                offset = file.tell()
                continue
            offset += len(line)
            try:
                event = _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            yield event, offset


def pass_over(file: BinaryIO) -> bool:
    """Go behind the next line end, over holes at once; return whether there is one."""
    while block := file.read(_SKIP_BYTES):
        end = block.find(b"\n")
        if end >= 0:
            file.seek(end + 1 - len(block), os.SEEK_CUR)
            return True
        if not block.strip(b"\0"):
            try:
                file.seek(os.lseek(file.fileno(), file.tell(), os.SEEK_DATA))
            except OSError as error:
                if (
                    error.errno == errno.ENXIO
                ):  # nothing but a hole to the end; else a file system that does not tell
                    return False
    return False


class EventFollower:
    """Reads every ``events/*.jsonl`` of a run directory from where it last stopped; works the same live and replayed."""

    def __init__(self, events_dir: Path) -> None:
        self.events_dir = events_dir
        self._offsets: dict[Path, int] = {}

    def read_new(self) -> list[RunEvent]:
        """Return the events that came since the last call, merged over the files by time."""
        return list(self.each_new())

    def each_new(self) -> Iterator[RunEvent]:
        """Yield what :meth:`read_new` returns one by one: a run of a million steps is never in memory as a whole."""
        files = [self._new_in(path) for path in sorted(self.events_dir.glob("*.jsonl"))]
        yield from heapq.merge(*files, key=lambda event: event.t)

    def _new_in(self, path: Path) -> Iterator[RunEvent]:
        for event, offset in read_events(path, self._offsets.get(path, 0)):
            self._offsets[path] = offset
            yield event
