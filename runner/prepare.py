"""Rows made into token ids, in ``RUN_DIR/data``; a resumed run reads the same ids back, with proof, and another run of
the same data, tokenizer and settings takes them from the cache.

Rows stream through: texts are not kept, ids go to flat files, so memory does not grow with the data.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from runner.chosen import chosen_rows, heeding, training_texts
from runner.data import DataFacts, PartFacts, Prepared
from runner.durable import is_full, publish_files
from runner.encoded import RowEncoder
from runner.inputs import InputError, file_sha256
from runner.labels import EVAL, TRAIN
from runner.language_tasks import CausalLM, MaskedLM
from runner.packing import Packer
from runner.plan import Plan
from runner.profile import COUNTED
from runner.rundir import RunDir
from runner.signals import StopRequest
from runner.store import Position, StoreWriter, token_notes
from runner.survey import Survey, survey_rows
from runner.survey_notes import survey_notes
from runner.tasks import Task, WithOwnLoss, balanced_weights, make_task
from runner.text import Text, t
from runner.token_cache import TokenCache, cache_folder
from runner.token_key import key_of
from runner.tokenising import Progress, Tell, read_progress, write_rows
from runner.tokenizer import is_made_here, load_tokenizer
from runner.user_code import import_function

Note = Callable[[str, Text], None]
"""``note(level, sentence)``"""


def prepare_data(
    plan: Plan, run: RunDir, note: Note, stop: StopRequest, tell: Tell = lambda data: None
) -> Prepared:
    """Return the run's data, made now or, for a resumed run, read back and compared with its hashes.

    ``tell`` takes the data of ``preparing`` events: how far and how fast it goes.

    Raises:
        InputError: data that cannot be used, or prepared data that was changed since.
        Stopped: when asked to stop meanwhile.
    """
    facts = _read_back(plan, run, note)
    if facts is None:
        facts = _make(plan, run, note, stop, tell)
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


def _read_back(plan: Plan, run: RunDir, note: Note) -> DataFacts | None:
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
    for source, was in facts.source_bytes.items():
        now = source_bytes(plan).get(source, was)
        if now != was:
            note("warn", t("{path} was changed since the run began ({was} bytes then, {now} now): the run goes on with the rows "
                           "it began with", path=source, was=was, now=now))  # fmt: skip
    return facts


def _make(plan: Plan, run: RunDir, note: Note, stop: StopRequest, tell: Tell) -> DataFacts:
    survey = survey_rows(plan.profile, heeding(stop))
    for level, sentence in survey_notes(survey):
        note(level, sentence)
    if is_made_here(plan.profile.model):
        # An earlier start may have made it from other texts, and broken off before it had any ids.
        shutil.rmtree(run.tokenizer, ignore_errors=True)
    tokenizer = load_tokenizer(plan, run, lambda: training_texts(plan, survey, stop))
    max_length = usable_length(plan, tokenizer, note)
    task = task_of(plan, survey.classes, [1] * len(survey.classes), tokenizer)
    making = run.path / "data.making"
    cache, key = TokenCache(cache_folder(os.environ)), key_of(plan, run, survey, max_length)
    found = cache.take(key, making)
    for level, sentence in cache.said:
        note(level, sentence)
    try:
        parts = found or _tokenise(
            plan, making, key, survey, _encoders(plan, tokenizer, task, max_length), stop, tell
        )
        facts = DataFacts(
            plan_digest=plan.digest, classes=survey.classes, has_types=has_types(plan, tokenizer),
            max_length=max_length, train=parts["train"], eval=parts["eval"], source_bytes=source_bytes(plan),
        )  # fmt: skip
        (making / "data.json").write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1))
    except OSError as error:
        if not is_full(error):
            raise
        raise InputError(t("{path}: no room for the prepared rows ({free} MB free); put the run on a larger disk with "
                           "--run-dir", path=str(run.path), free=shutil.disk_usage(run.path).free >> 20)) from error  # fmt: skip
    (making / "progress.json").unlink(missing_ok=True)
    publish_files(making, run.data)
    if found is None and (why := cache.keep(key, parts, run.data)) is not None:
        note("info", why)
    for level, sentence in token_notes(facts):
        note(level, sentence)
    return facts


def source_bytes(plan: Plan) -> dict[str, int]:
    """Return the sizes of the files that the rows come from, where they are files of their own."""
    data = plan.profile.data
    return {path: Path(path).stat().st_size for path in [*data.train, *data.eval] if Path(path).is_file()}


def _encoders(plan: Plan, tokenizer: Any, task: Task, max_length: int) -> dict[str, RowEncoder]:
    """Return who tokenises each part; texts that will be packed are not cut."""
    paired = bool(plan.profile.data.text_pair)
    return {
        name: RowEncoder(task, tokenizer, max_length, paired, has_types(plan, tokenizer), whole)
        for name, whole in (("train", plan.profile.train.packing), ("eval", False))
    }


def _tokenise(
    plan: Plan, making: Path, key: str, survey: Survey, encoders: dict[str, RowEncoder], stop: StopRequest, tell: Tell
) -> dict[str, PartFacts]:  # fmt: skip
    """Write the files of both parts into ``making``, going on where an earlier start of just this broke off."""
    progress = read_progress(making, key)
    if progress is None:
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        progress = Progress(key=key)
    for name, fate in (("train", TRAIN), ("eval", EVAL)):
        if name in progress.done:
            continue
        position = progress.position if progress.part == name else None
        encoder = encoders[name]
        packer = Packer(encoder.max_length, end_token(encoder.tokenizer)) if encoder.whole else None
        writer = StoreWriter(making, name, encoder.task, encoder.has_types, packer, position)

        def keep(at: Position, name: str = name, progress: Progress = progress) -> None:
            progress.part, progress.position = name, at
            progress.save(making)

        def told(data: dict[str, Any], name: str = name) -> None:
            tell({"what": "tokenising", "part": name, **data})

        rows = chosen_rows(plan, survey, fate, stop)
        progress.done[name] = write_rows(
            rows, survey.count(fate), encoder, writer, plan.settings.threads, told, keep
        )
        progress.part, progress.position = "", None
    return progress.done


def end_token(tokenizer: Any) -> int | None:
    """Return what ends a text in this tokenizer's words; None: it has no such token."""
    for token in (tokenizer.eos_token_id, tokenizer.sep_token_id):
        if token is not None:
            return int(token)
    return None


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
