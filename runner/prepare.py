"""Rows made into token ids, once a run, in ``RUN_DIR/data``; a resumed run reads the same ids back, with
proof.

Rows stream through: texts are not kept, ids go to flat files, so memory does not grow with the data.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch

from runner.build import load_tokenizer
from runner.data import DataFacts, PartFacts, Prepared
from runner.inputs import InputError, file_sha256
from runner.labels import EVAL, TRAIN
from runner.language_tasks import CausalLM, MaskedLM
from runner.plan import Plan
from runner.profile import COUNTED
from runner.rows import ReadingNotes, Row, as_tagged
from runner.rundir import RunDir
from runner.seen import RowDigest
from runner.signals import StopRequest
from runner.sources import source_rows
from runner.store import StoreWriter, token_notes
from runner.survey import Survey, survey_rows
from runner.survey_notes import survey_notes
from runner.tasks import Task, WithOwnLoss, balanced_weights, make_task
from runner.text import Text, t
from runner.user_code import import_function

TOKENISE_ROWS = 512

Note = Callable[[str, Text], None]
"""``note(level, sentence)``"""


class Stopped(Exception):  # noqa: N818 (not an error)
    """Somebody asked the run to stop before there was anything to save."""


def prepare_data(plan: Plan, run: RunDir, note: Note, stop: StopRequest) -> Prepared:
    """Return the run's data, made now or, for a resumed run, read back and compared with its hashes.

    Raises:
        InputError: data that cannot be used, or prepared data that was changed since.
        Stopped: when asked to stop meanwhile.
    """
    facts = _read_back(plan, run)
    if facts is None:
        facts = _make(plan, run, note, stop)
    tokenizer = load_tokenizer(plan, run)
    task = task_of(plan, facts.classes, facts.train.class_counts, tokenizer)
    width = facts.max_length if plan.profile.train.pad_to == "max_length" else 0
    return Prepared(run.data, facts, task, tokenizer, width)


def task_of(plan: Plan, classes: list[str], class_counts: list[int], tokenizer: Any) -> Task:
    """Return the plan's task; class weights are settled by the counts of the training rows."""
    train, name = plan.profile.train, plan.profile.model.task
    if name == "causal-lm":
        return CausalLM()
    if name == "masked-lm":
        return MaskedLM(tokenizer, plan.profile.run.seed, train.mask_share)
    if train.loss:
        return WithOwnLoss(make_task(name, classes), import_function("train.loss", train.loss))
    if name not in COUNTED:
        return make_task(name, classes)
    wanted = balanced_weights(class_counts) if train.class_weights == "balanced" else train.class_weights
    if isinstance(wanted, list) and len(wanted) != len(classes):
        raise InputError(
            t(
                "train.class_weights: {given} weights for {classes} classes",
                given=len(wanted),
                classes=len(classes),
            )
        )
    weights = torch.tensor(wanted) if isinstance(wanted, list) else None
    return make_task(name, classes, smoothing=train.label_smoothing, weights=weights)


def _read_back(plan: Plan, run: RunDir) -> DataFacts | None:
    path = run.data / "data.json"
    if not path.exists():
        return None
    facts = msgspec.json.decode(path.read_bytes(), type=DataFacts)
    for part in (facts.train, facts.eval):
        for name, wanted in part.sha256.items():
            if not (run.data / name).is_file() or file_sha256(run.data / name) != wanted:
                raise InputError(
                    t("{path} was changed since the run began; start a new run", path=str(run.data / name))
                )
    if facts.plan_digest != plan.digest:
        raise InputError(t("{path} belongs to another plan; start a new run", path=str(run.data)))
    return facts


def _make(plan: Plan, run: RunDir, note: Note, stop: StopRequest) -> DataFacts:
    survey = survey_rows(plan.profile, source_rows)
    for level, sentence in survey_notes(survey):
        note(level, sentence)
    tokenizer = load_tokenizer(plan, run, lambda: _training_texts(plan, survey, stop))
    max_length = usable_length(plan, tokenizer, note)
    making = run.path / "data.making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    task = task_of(plan, survey.classes, [1] * len(survey.classes), tokenizer)
    parts = {
        name: _write_part(making, name, fate, plan, survey, tokenizer, task, max_length, stop)
        for name, fate in (("train", TRAIN), ("eval", EVAL))
    }
    facts = DataFacts(
        plan_digest=plan.digest,
        classes=survey.classes,
        has_types=has_types(plan, tokenizer),
        max_length=max_length,
        train=parts["train"],
        eval=parts["eval"],
    )
    (making / "data.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1))
    making.rename(run.data)
    for level, sentence in token_notes(facts):
        note(level, sentence)
    return facts


def chosen_rows(plan: Plan, survey: Survey, fate: int, stop: StopRequest) -> Iterator[tuple[int, Row]]:
    """Yield ``(source row, row)`` of one fate; source rows of separate held-out files count from 0 again."""
    for part in ("train", "eval"):
        if fate not in survey.fate[part]:
            continue
        digest, number = RowDigest(), -1
        for number, row in enumerate(source_rows(plan.profile.data, part, ReadingNotes())):
            if number % TOKENISE_ROWS == 0 and stop:
                raise Stopped
            digest.add(repr(row))
            if number < len(survey.fate[part]) and survey.fate[part][number] == fate:
                yield number, as_tagged(row) if survey.tagged else row
        if digest != survey.digests[part]:
            raise InputError(t("data.{part}: the rows were not the same when they were read again; "
                               "they must come in one order, without chance", part=part))  # fmt: skip


def _training_texts(plan: Plan, survey: Survey, stop: StopRequest) -> Iterator[str]:
    for _, row in chosen_rows(plan, survey, TRAIN, stop):
        yield row.text
        if row.pair:
            yield row.pair


def usable_length(plan: Plan, tokenizer: Any, note: Note) -> int:
    """Return the profile's max_length, or less where the model has fewer positions."""
    wanted, possible = plan.profile.train.max_length, int(tokenizer.model_max_length)
    if wanted > possible:
        note("warn", t("train.max_length {wanted} is more than the model's {possible} positions: {possible} is used",
                       wanted=wanted, possible=possible))  # fmt: skip
    return min(wanted, possible)


def has_types(plan: Plan, tokenizer: Any) -> bool:
    """Do the model's inputs tell the first text of a pair from the second?"""
    return bool(plan.profile.data.text_pair) and "token_type_ids" in tokenizer.model_input_names


def _write_part(
    folder: Path,
    name: str,
    fate: int,
    plan: Plan,
    survey: Survey,
    tokenizer: Any,
    task: Task,
    max_length: int,
    stop: StopRequest,
) -> PartFacts:
    paired = bool(plan.profile.data.text_pair)
    writer = StoreWriter(folder, name, task, tokenizer, max_length, paired, has_types(plan, tokenizer))
    held: list[tuple[int, Row]] = []
    for item in chosen_rows(plan, survey, fate, stop):
        held.append(item)
        if len(held) == TOKENISE_ROWS:
            writer.add(held)
            held = []
    if held:
        writer.add(held)
    return writer.close()
