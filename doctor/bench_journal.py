"""Pairs kept on disk as they are measured: a comparison that was broken off goes on where it was, one that is whole is shown again.

One file for one question: the same profile, data, machine, packages and runner.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from doctor.bench_records import Measured
from doctor.model import Record
from doctor.proofs import Place
from doctor.state_dir import state_dir
from runner.profile import Profile
from runner.text import Text, t

KEPT_S = 24 * 3600.0
"""Older pairs are measured anew: who else works on the machine has changed."""


class KeptPair(Record, frozen=True, kw_only=True):
    """One line of the file."""

    at: float
    """Seconds since the epoch."""
    steps: int
    """Of each run."""
    name: str
    settings: dict[str, Any] = {}
    before: Measured
    after: Measured


def journal_path(profile: Profile, place: Place, environ: Mapping[str, str]) -> Path:
    """Return where the pairs of this question are kept. A data file that changed is another question."""
    question = [
        msgspec.to_builtins(profile),
        msgspec.to_builtins(place),
        *map(_stamp, profile.data.train),
    ]
    digest = hashlib.sha256(msgspec.json.encode(question, order="sorted")).hexdigest()[:16]
    return state_dir(environ) / "bench" / f"{digest}.jsonl"


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


class Journal:
    """Reads and adds to one file. Where that cannot be written a sentence says so, once, and nothing is kept."""

    def __init__(
        self, path: Path, tell: Callable[[Text], None], now: Callable[[], float] = time.time
    ) -> None:
        self.path, self._tell, self._now = path, tell, now
        self._broken = False

    def read(self) -> list[KeptPair]:
        """Return what is young enough; a line that was cut off is left out."""
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=KeptPair))
            except msgspec.MsgspecError:
                continue
        return [one for one in found if 0 <= self._now() - one.at < KEPT_S]

    def keep(
        self, steps: int, name: str, settings: dict[str, Any], before: Measured, after: Measured
    ) -> None:
        pair = KeptPair(at=self._now(), steps=steps, name=name, settings=settings, before=before, after=after)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                file.write(b"\n" + msgspec.json.encode(pair))
        except OSError as error:
            if not self._broken:
                self._tell(t("what is measured cannot be kept for going on later: {path}: {why}", path=str(self.path), why=error.strerror or str(error)))  # fmt: skip
            self._broken = True

    @property
    def keeps(self) -> bool:
        """Pairs are on disk: the same command takes them over."""
        return not self._broken and self.path.exists()

    def forget(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._tell(t("{path} could not be removed: {why}", path=str(self.path), why=error.strerror or str(error)))  # fmt: skip
