"""How a supervised command ended, as notes: killed for memory, by a signal, or by an error that its log shows. Pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from doctor.explain import Explained, explain, extract_last_error
from doctor.model import Snapshot
from runner.strings import printable
from runner.text import Text, t

EXPLAINED = 2
"""So many recognised failures are told, the last in the log first: what came before is often only its echo."""
KILLED_KINDS = ("exit-137",)
SAID_BETTER_HERE = ("nobody-to-answer",)
"""Kinds that are said below, of a command that is supervised."""
OLD_KILLS = "process-killed-for-memory"
"""A finding of the machine as it was before the start: whoever was killed then was not of this command."""


@dataclass(frozen=True)
class Ended:
    """What is known of an end without reading the log."""

    returncode: int
    """As the kernel gave it: negative for a signal."""
    oom_kills_before: int | None = None
    """The container's count of processes killed for memory; None: nobody counts."""
    oom_kills_after: int | None = None
    started: bool = True
    """False: there was no such program, or it may not be run."""
    memory_limit: str = ""
    """The container's, in words; empty: none is set or it cannot be read."""

    @property
    def code(self) -> int:
        """The exit status as a shell has it."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def was_killed(self) -> bool:
        """Ended by SIGKILL, itself or (under a shell) what it ran."""
        return self.code == 128 + signal.SIGKILL

    @property
    def killed_for_memory(self) -> int | None:
        """How many processes the kernel killed for memory meanwhile; None: cannot be known."""
        if self.oom_kills_before is None or self.oom_kills_after is None:
            return None
        return max(0, self.oom_kills_after - self.oom_kills_before)


@dataclass(frozen=True)
class Note:
    level: str
    text: Text
    data: dict[str, Any] = field(default_factory=dict)
    """``line`` and ``line_number`` of the log, ``explains`` the kind of failure, ``finding`` an id."""


def notes_of(ended: Ended, log_tail: str, lines_before: int, snapshot: Snapshot | None) -> Iterator[Note]:
    """Yield what to tell of a failed end, most telling first.

    Args:
        log_tail: the end of what the command wrote in this start.
        lines_before: lines of the log before ``log_tail``.
        snapshot: the machine; each cause is held against it.
    """
    by_signal = list(_by_signal(ended))
    yield from by_signal
    explanation = explain(log_tail + _shell_word(ended), snapshot)
    passed_over = SAID_BETTER_HERE + (KILLED_KINDS if by_signal else ())
    told = [item for item in explanation.known if item.match.id not in passed_over]
    for item in told[:EXPLAINED]:
        yield from _explained(item, lines_before, ended.killed_for_memory)
    if not told and not by_signal:
        last_error = last_exception(log_tail) or extract_last_error(log_tail)
        yield _unknown(ended, last_error)
        # EOFError: EOF when reading a line
        if last_error.startswith("EOFError: EOF when reading a line"):
            yield Note("info", t("It asked a question, and nobody can answer one: a supervised command has no keyboard. Give the answer "
                                 "as an option or from a file: doctor run -- bash -c 'COMMAND < FILE'."), {"advice": True})  # fmt: skip


def _by_signal(ended: Ended) -> Iterator[Note]:
    count = ended.killed_for_memory
    if count:
        limit = ended.memory_limit or "?"
        yield Note(
            "fail",
            t("The kernel killed {count} process(es) of this container for memory while the command ran: RAM, not VRAM. "
              "The container's limit is {limit}.", count=count, limit=limit),
            {"explains": "process-killed-for-memory"},
        )  # fmt: skip
    elif ended.was_killed and count is None:
        yield Note(
            "fail",
            t(
                "Ended by SIGKILL. Whether for memory cannot be seen here: no counter of such kills can be read."
            ),
        )
    elif ended.was_killed and ended.returncode > 0:
        yield Note(
            "fail",
            t("Ended with status 137: what it ran was ended by SIGKILL from outside (a person, a scheduler, the platform), "
              "unless it chose that status itself. The kernel's counter of kills for memory did not move."),
        )  # fmt: skip
    elif ended.was_killed:
        yield Note(
            "fail",
            t("Ended by SIGKILL from outside: a person, a scheduler or the platform. The kernel's counter of kills for "
              "memory did not move."),
        )  # fmt: skip
    elif ended.returncode < 0:
        yield Note("fail", t("Ended by the signal {name}.", name=signal_name(-ended.returncode)))


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _shell_word(ended: Ended) -> str:
    """Return what a shell would have written under the log: the explanations know that line."""
    words = {signal.SIGBUS: "Bus error (core dumped)", signal.SIGSEGV: "Segmentation fault (core dumped)"}
    return next((f"\n{word}\n" for number, word in words.items() if ended.code == 128 + number), "")


def _explained(item: Explained, lines_before: int, killed_for_memory: int | None) -> Iterator[Note]:
    match = item.match
    place = {"line": printable(match.line), "line_number": lines_before + match.line_number}
    yield Note("fail", match.meaning, {"explains": match.id, **place})
    if match.id in KILLED_KINDS and killed_for_memory == 0:
        yield Note("warn", t("Not for memory of this container: the kernel's counter of such kills did not move while the command ran."))  # fmt: skip
        return
    for finding in [one for one in item.confirmed if one.id != OLD_KILLS][:2]:
        yield Note("warn", finding.title, {"finding": finding.id})
    if match.advice is not None:
        yield Note("info", match.advice, {"advice": True})


def last_exception(log: str) -> str:
    """Return the line under the last traceback, whatever the exception is called; empty: there is no traceback."""
    _, headline, rest = log.rpartition("Traceback (most recent call last):")
    lines = rest.splitlines() if headline else []
    # [rank1]: ValueError: the moon is full        the frames between are indented
    bare = (re.sub(r"^\[rank\d+\]:\s?", "", line) for line in lines)
    return next((line.strip() for line in bare if line[:1].strip() and not line.startswith(("[", "^"))), "")[
        :500
    ]


def _unknown(ended: Ended, last_error: str) -> Note:
    if last_error:
        return Note(
            "fail", t("Ended with status {code}: {line}", code=ended.code, line=printable(last_error))
        )
    return Note("fail", t("Ended with status {code}; no error is in its output.", code=ended.code))
