"""The first pass over the rows: which count, what their labels are, which are held out. Texts are not kept.

Rows with equal texts count once, *before* the split: a held-out text that was trained on would make the
accuracy a lie. What was dropped, and why, is counted and said.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from runner.inputs import InputError, PackageInput, package_folder, tree_sha256, verify_files
from runner.order import stratified_split
from runner.profile import TEXT_ONLY, DataSection, Profile
from runner.rows import Label, ReadingNotes, Row, as_tagged, rows_of
from runner.seeds import seed_for
from runner.seen import RowDigest, SeenTexts, text_key
from runner.text import Text, printable, t

DROPPED, TRAIN, EVAL = 0, 1, 2

Source = Callable[[DataSection, str, ReadingNotes], Iterator[Row]]
"""Yields the rows of a part (``train`` or ``eval``): :func:`local_rows`, or one that asks the hub."""


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
    survey.classes = find_classes(profile, survey)
    if not survey.counts["eval"].rows:
        _hold_out(profile, survey)
    _limit(profile, survey, TRAIN, profile.data.train_limit)
    _limit(profile, survey, EVAL, profile.data.eval_limit)
    for fate, name in ((TRAIN, "train"), (EVAL, "eval")):
        if not survey.count(fate):
            raise InputError(t("data.{part}: no usable row is left", part=name))
    return survey


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


def find_classes(profile: Profile, survey: Survey) -> list[str]:
    """Return the classes in the order of their ids (numbers by value, else by name); none for regression.

    Raises:
        InputError: one class only, or a label outside the profile's list, or a held-out class never trained
        on.
    """
    if profile.model.task in TEXT_ONLY:
        return []
    if profile.model.task == "regression":
        _check_numbers(survey)
        return []
    seen: dict[str, Counter[str]] = {part: Counter() for part in ("train", "eval")}
    for part in seen:
        for row, fate in enumerate(survey.fate[part]):
            if fate != DROPPED:
                seen[part].update(label_names(survey.labels[part][row]))
    classes = profile.data.labels or sorted(seen["train"], key=_class_order)
    for part, names in seen.items():
        unknown = sorted(set(names) - set(classes))
        if unknown:
            shown = ", ".join(printable(name) for name in unknown[:5])
            known = ", ".join(printable(name) for name in classes[:20])
            raise InputError(
                t(
                    "data.{part}: unknown label(s) {labels}; known are {known}",
                    part=part,
                    labels=shown,
                    known=known,
                )
            )
    if len(classes) < 2 and profile.model.task == "classification":
        only = printable(classes[0]) if classes else "-"
        raise InputError(t("data.label: every row has the label {label}: nothing to learn", label=only))
    return classes


def _check_numbers(survey: Survey) -> None:
    for part, row in itertools.chain(survey.rows_with(TRAIN), survey.rows_with(EVAL)):
        label = survey.labels[part][row]
        try:
            good = math.isfinite(float(str(label)))
        except ValueError:
            good = False
        if not good:
            shown = printable(str(label))[:40]
            raise InputError(
                t("data.{part}, row {row}: the label {label} is not a number, as regression wants",
                  part=part, row=row, label=shown)
            )  # fmt: skip


def label_names(label: Label) -> list[str]:
    """Return the class names of a label; ``a|b`` and a JSON list are two of them."""
    if label is None:
        return []
    return list(label) if isinstance(label, list) else [label]


def _class_order(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def verify_data(data: DataSection) -> None:
    """Compare pinned data with its hash."""
    if data.package:
        folder = data_folder(data)
        if data.sha256 and tree_sha256(folder) != data.sha256:
            raise InputError(
                t(
                    "{path} is not the data that the profile pins (its hash differs): not used",
                    path=str(folder),
                )
            )
    elif data.sha256 and len(data.train) == 1:
        path = Path(data.train[0])
        verify_files(path.parent, {path.name: data.sha256})


def data_folder(data: DataSection) -> Path:
    return package_folder(PackageInput(data.package, data.folder))


def local_rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
    """Yield every row of the ``train`` or ``eval`` files, or of the package, each time in the same order."""
    if data.package:
        yield from rows_of([data_folder(data)], data, notes)
    else:
        paths = data.train if part == "train" else data.eval
        yield from rows_of([Path(path) for path in paths], data, notes)


def survey_notes(survey: Survey) -> Iterator[tuple[str, Text]]:
    """Yield ``(level, sentence)`` for what a person should know of the rows."""
    for part, counts in survey.counts.items():
        if counts.empty or counts.unlabelled:
            yield (
                "warn",
                t(
                    "data.{part}: {empty} {empty:row|rows} without text and {unlabelled} without label are left out",
                    part=part,
                    empty=counts.empty,
                    unlabelled=counts.unlabelled,
                ),
            )
        if counts.misaligned:
            yield (
                "warn",
                t(
                    "data.{part}: {count} {count:row has|rows have} not as many tags as words and are left out",
                    part=part,
                    count=counts.misaligned,
                ),
            )
        if counts.duplicates:
            yield (
                "info",
                t(
                    "data.{part}: {count} {count:row repeats|rows repeat} an earlier text",
                    part=part,
                    count=counts.duplicates,
                ),
            )
        if counts.contradictions:
            yield (
                "warn",
                t(
                    "data.{part}: {count} of the repeated texts have another label than the first",
                    part=part,
                    count=counts.contradictions,
                ),
            )
        if counts.held_out_also_trained:
            yield (
                "warn",
                t(
                    "{count} of {rows} held-out texts are also trained on: the accuracy will be too good",
                    count=counts.held_out_also_trained,
                    rows=counts.rows,
                ),
            )
    if survey.notes.misshapen_rows:
        yield (
            "warn",
            t(
                "{count} {count:row|rows} did not have the columns of their header and {count:is|are} left out",
                count=survey.notes.misshapen_rows,
            ),
        )
    others = {name: count for name, count in survey.notes.encodings.items() if name != "utf-8"}
    if others:
        shown = ", ".join(f"{name}: {count}" for name, count in sorted(others.items()))
        yield "info", t("not every file is UTF-8; read as {encodings}", encodings=shown)
