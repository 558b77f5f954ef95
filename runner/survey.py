"""The first pass over the rows: which count, what their labels are, which are held out. Texts are not kept.

Rows with equal texts count once, *before* the split: a held-out text that was trained on would make the
accuracy a lie. What was dropped, and why, is counted and said.
"""

from __future__ import annotations

import random
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator

import msgspec

from runner.inputs import InputError
from runner.labels import DROPPED, EVAL, TRAIN, find_classes
from runner.order import stratified_split
from runner.profile import DataSection, Profile
from runner.rows import Label, ReadingNotes, Row, as_tagged
from runner.seeds import seed_for
from runner.seen import RowDigest, SeenTexts, text_key
from runner.sources import verify_data
from runner.text import t

Source = Callable[[DataSection, str, ReadingNotes], Iterator[Row]]
"""Yields the rows of a part (``train`` or ``eval``): :func:`runner.sources.source_rows`."""


class Counts(msgspec.Struct, kw_only=True):
    """What became of the rows of one source."""

    rows: int = 0
    empty: int = 0
    unlabelled: int = 0
    misaligned: int = 0
    """Rows whose tags are not as many as their words (token-classification)."""
    duplicates: int = 0
    contradictions: int = 0
    """Duplicates whose label differs from that of the row kept."""
    held_out_also_trained: int = 0
    """Rows of separate held-out files whose text stands in the training files as well."""


class Survey:
    """The rows' fate: ``fate[i]`` is DROPPED, TRAIN or EVAL for source row i of a part, ``labels`` those of
    all rows."""

    def __init__(self, tagged: bool = False) -> None:
        self.tagged = tagged
        """Every word has its own label."""
        self.notes = ReadingNotes()
        self.counts = {"train": Counts(), "eval": Counts()}
        self.fate: dict[str, bytearray] = {"train": bytearray(), "eval": bytearray()}
        self.labels: dict[str, list[Label]] = {"train": [], "eval": []}
        self.classes: list[str] = []
        self._seen = SeenTexts()
        """Each text to the number of its label."""
        self._same: dict[tuple[str, ...], list[str]] = {}
        """One list for all rows with the same set of labels."""
        self.digests = {"train": RowDigest(), "eval": RowDigest()}

    def count(self, fate: int) -> int:
        return sum(its.count(fate) for its in self.fate.values())

    def rows_with(self, fate: int) -> Iterator[tuple[str, int]]:
        """Yield ``(part, source row)`` of all rows of that fate, in order."""
        for part in ("train", "eval"):
            for row, its in enumerate(self.fate[part]):
                if its == fate:
                    yield part, row

    def read(self, part: str, data: DataSection, source: Source, wanted: int) -> None:
        """Take in one source; every row that counts gets the fate ``wanted``."""
        counts, fate, labels = self.counts[part], self.fate[part], self.labels[part]
        for row in source(data, part, self.notes):
            counts.rows += 1
            self.digests[part].add(repr(row))
            if self.tagged:
                row = as_tagged(row)
            counted = self._counts(row, counts, data, part)
            labels.append(self._small(row.label))
            fate.append(wanted if counted else DROPPED)

    def _small(self, label: Label) -> Label:
        """Return a label as it is kept for every row: a set of names is enough, and most sets repeat."""
        if isinstance(label, str):
            return sys.intern(label)
        if label is None:
            return None
        names = tuple(sorted(set(label)))
        return self._same.setdefault(names, list(names))

    def _counts(self, row: Row, counts: Counts, data: DataSection, part: str) -> bool:
        if not row.text.strip():
            counts.empty += 1
            return False
        if row.label is None and data.label:
            counts.unlabelled += 1
            return False
        if self.tagged and len(row.words) != len(row.label or ()):
            counts.misaligned += 1
            return False
        key = text_key(row.text, row.pair)
        before = self._seen.get(key)
        label = zlib.crc32(repr(row.label).encode("utf-8", "surrogatepass")) >> 1
        if part == "eval":
            counts.held_out_also_trained += before is not None
            return True
        if before is None:
            self._seen.add(key, label)
            return True
        counts.duplicates += 1
        counts.contradictions += before != label
        return not data.deduplicate


def survey_rows(profile: Profile, source: Source) -> Survey:
    """Read all rows once and decide which are trained on and which are held out.

    Raises:
        InputError: files missing or not those pinned, labels that cannot be learnt from.
    """
    verify_data(profile.data)
    survey = Survey(profile.model.task == "token-classification")
    survey.read("train", profile.data, source, TRAIN)
    if profile.data.eval or profile.data.eval_split:
        survey.read("eval", profile.data, source, EVAL)
    _refuse_unusable(survey)
    survey.classes = find_classes(
        profile, survey, lambda part, row: place_of(profile.data, source, part, row)
    )
    if not survey.counts["eval"].rows:
        _hold_out(profile, survey)
    _limit(profile, survey, TRAIN, profile.data.train_limit)
    _limit(profile, survey, EVAL, profile.data.eval_limit)
    for fate, name in ((TRAIN, "train"), (EVAL, "eval")):
        if not survey.count(fate):
            raise InputError(t("data.{part}: no usable row is left", part=name))
    return survey


def _refuse_unusable(survey: Survey) -> None:
    """Raise InputError where there are no rows, or hardly one fits: what is left is not what the file was meant to hold."""
    rows = sum(counts.rows for counts in survey.counts.values())
    misshapen, first = survey.notes.misshapen_rows, survey.notes.misshapen_at
    if misshapen > rows:
        raise InputError(t("{count} {count:row does|rows do} not have the columns of their header and {rows} {rows:has|have} (the first that does not: "
                           "{place}): is it another separator, or a quote too many?", count=misshapen, rows=rows, place=first))  # fmt: skip
    if not survey.counts["train"].rows:
        raise InputError(t("data.train: there are no rows in it"))


def place_of(data: DataSection, source: Source, part: str, row: int) -> str:
    """Return where a source row stands (file and line), by reading up to it once more."""
    notes = ReadingNotes()
    for number, _ in enumerate(source(data, part, notes)):
        if number == row:
            return notes.place
    return ""


def _hold_out(profile: Profile, survey: Survey) -> None:
    rows = array("q", (row for _, row in survey.rows_with(TRAIN)))
    ids = {name: index for index, name in enumerate(survey.classes)}
    classes: array[int] | None = None
    if profile.model.task == "classification":
        classes = array("q", (ids[str(survey.labels["train"][row])] for row in rows))
    for index in stratified_split(classes, len(rows), profile.data.eval_share, profile.run.seed):
        survey.fate["train"][rows[index]] = EVAL


def _limit(profile: Profile, survey: Survey, fate: int, limit: int | None) -> None:
    """Keep a seeded sample of at most ``limit`` rows."""
    count = survey.count(fate)
    if limit is None or count <= limit:
        return
    kept = set(random.Random(seed_for(profile.run.seed, "split", -fate)).sample(range(count), limit))
    for index, (part, row) in enumerate(survey.rows_with(fate)):
        if index not in kept:
            survey.fate[part][row] = DROPPED
