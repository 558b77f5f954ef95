"""A part's rows tokenised by several processes, in order, with its progress told; broken off, it goes on from there.

Peak memory does not depend on how many rows there are: only so many chunks are under way at a time.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import msgspec

from runner.data import PartFacts
from runner.encoded import Chunk, Encoded, RowEncoder
from runner.parent_end import get_at_parents_end
from runner.rows import Row
from runner.signals import ignore_in_worker
from runner.store import Position, StoreWriter

CHUNK_ROWS = 512
CHUNKS_AHEAD = 2
"""Under way for each worker: one in work, one waiting."""
WORTH_A_POOL = 8 * CHUNK_ROWS
"""Fewer rows are done before the workers have started."""
MOST_WORKERS = 32
"""Beyond these the one process that reads the rows is what all wait for."""
TOLD_EVERY_S = 2.0
KEPT_EVERY_S = 5.0

Tell = Callable[[dict[str, Any]], None]
"""Takes the data of a ``preparing`` event."""


class Progress(msgspec.Struct, kw_only=True):
    """``progress.json`` beside half-written files: what they are made of, and how far they are."""

    key: str
    done: dict[str, PartFacts] = {}
    part: str = ""
    position: Position | None = None

    def save(self, folder: Path) -> None:
        making = folder / "progress.making"
        making.write_bytes(msgspec.json.encode(self))
        making.replace(folder / "progress.json")


def read_progress(folder: Path, key: str) -> Progress | None:
    """Return what was done of just this data; None: nothing, or what is there cannot be gone on with."""
    try:
        found = msgspec.json.decode((folder / "progress.json").read_bytes(), type=Progress)
    except (OSError, msgspec.MsgspecError):
        return None
    if found.key != key:
        return None
    sizes = found.position.sizes if found.position is not None else {}
    files = {f"{found.part}.{name}.bin": size for name, size in sizes.items()}
    whole = {name for facts in found.done.values() for name in facts.sha256}
    try:
        long_enough = all((folder / name).stat().st_size >= size for name, size in files.items())
    except OSError:
        return None
    return found if long_enough and all((folder / name).is_file() for name in whole) else None


def write_rows(
    rows: Iterable[tuple[int, Row]],
    total: int,
    encoder: RowEncoder,
    writer: StoreWriter,
    workers: int,
    tell: Tell,
    keep: Callable[[Position], None],
) -> PartFacts:
    """Tokenise ``rows`` that ``writer`` has not yet, and return what the part holds.

    ``keep`` is given a position to go on from every few seconds; so it is when something interrupts the work.
    """
    left = itertools.islice(rows, writer.taken, None)
    count = workers if total - writer.taken >= WORTH_A_POOL else 1
    pace = Pace(writer, total)
    kept_at, between_chunks = time.monotonic(), True
    try:
        for encoded in encoded_chunks(encoder, chunks_of(left), min(count, MOST_WORKERS)):
            between_chunks = False
            writer.add(encoded)
            between_chunks = True
            pace.tell(tell)
            if time.monotonic() - kept_at > KEPT_EVERY_S:
                keep(writer.position())
                kept_at = time.monotonic()
    except BaseException:
        with contextlib.suppress(OSError):  # the disk may be what is full: the position kept before stands
            if between_chunks:
                keep(writer.position())
            writer.abandon()
        raise
    pace.tell(tell, last=True)
    return writer.close()


class Pace:
    """How fast one part goes, told every few seconds."""

    def __init__(self, writer: StoreWriter, total: int) -> None:
        self._writer, self._total = writer, total
        self._begun = self._told = time.monotonic()
        self._before = writer.taken, writer.characters

    def tell(self, tell: Tell, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._told < TOLD_EVERY_S:
            return
        self._told, seconds = now, max(now - self._begun, 1e-9)
        rows, characters = self._writer.taken - self._before[0], self._writer.characters - self._before[1]
        per_s = rows / seconds
        left = self._total - self._writer.taken
        tell({
            "rows": self._writer.taken, "rows_total": self._total, "tokens": self._writer.facts.tokens,
            "seconds": seconds, "rows_per_s": per_s, "characters_per_s": characters / seconds,
            "eta_seconds": left / per_s if per_s else None,
        })  # fmt: skip


def chunks_of(rows: Iterator[tuple[int, Row]]) -> Iterator[Chunk]:
    while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
        yield chunk


def encoded_chunks(encoder: RowEncoder, chunks: Iterator[Chunk], workers: int) -> Iterator[Encoded]:
    """Yield each chunk encoded, in order; a worker that dies (memory) leaves the rest to this process."""
    if workers < 2:
        yield from map(encoder, chunks)
        return
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("fork"), _start_worker, (encoder, os.getpid())
    )
    chunks_out: deque[Chunk] = deque()
    answers: deque[Future[Encoded]] = deque()

    def oldest() -> Iterator[Encoded]:
        yield answers[0].result()
        answers.popleft()
        chunks_out.popleft()

    try:
        for chunk in chunks:
            chunks_out.append(chunk)
            answers.append(pool.submit(_encode, chunk))
            if len(answers) >= CHUNKS_AHEAD * workers:
                yield from oldest()
        while answers:
            yield from oldest()
    except BrokenProcessPool:
        yield from map(encoder, itertools.chain(list(chunks_out), chunks))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_encoder: RowEncoder | None = None


def _start_worker(encoder: RowEncoder, parent: int) -> None:
    """Runs in each worker: it takes the encoder over by fork, and does not outlive a parent that was killed."""
    global _encoder
    _encoder = encoder
    ignore_in_worker()
    with contextlib.suppress(AttributeError, OSError):  # a C library without it
        get_at_parents_end(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _encode(chunk: Chunk) -> Encoded:
    assert _encoder is not None, "workers are started by encoded_chunks"
    return _encoder(chunk)
