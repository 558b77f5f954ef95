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
import numpy
import torch

from runner.build import load_tokenizer
from runner.data import DataFacts, PartFacts, Prepared
from runner.inputs import InputError, file_sha256
from runner.language_tasks import CausalLM, MaskedLM
from runner.plan import Plan
from runner.profile import DataSection
from runner.rows import ReadingNotes, Row, record_row
from runner.rundir import RunDir
from runner.signals import StopRequest
from runner.survey import EVAL, TRAIN, Survey, local_rows, survey_notes, survey_rows
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
    return Prepared(
        run.data, facts, task_of(plan, facts.classes, facts.train.class_counts, tokenizer), tokenizer
    )


def task_of(plan: Plan, classes: list[str], class_counts: list[int], tokenizer: Any) -> Task:
    """Return the plan's task; class weights are settled by the counts of the training rows."""
    train, name = plan.profile.train, plan.profile.model.task
    if name == "causal-lm":
        return CausalLM()
    if name == "masked-lm":
        return MaskedLM(tokenizer, plan.profile.run.seed, train.mask_share)
    if train.loss:
        return WithOwnLoss(make_task(name, classes), import_function("train.loss", train.loss))
    if name != "classification":
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


def source_rows(data: DataSection, part: str, notes: ReadingNotes) -> Iterator[Row]:
    """Yield every row of a part, from the hub or from local files, each time in the same order."""
    if not data.hub:
        yield from local_rows(data, part, notes)
        return
    import datasets

    split = data.train_split if part == "train" else data.eval_split
    loaded = datasets.load_dataset(data.hub, data.hub_config or None, split=split)
    names = getattr(loaded.features.get(data.label), "names", None)
    for record in loaded:
        value = record.get(data.label)
        if names and isinstance(value, int) and value >= 0:
            record = {**record, data.label: names[value]}
        yield record_row(record, data)


def chosen_rows(plan: Plan, survey: Survey, fate: int, stop: StopRequest) -> Iterator[tuple[int, Row]]:
    """Yield ``(source row, row)`` of one fate; source rows of separate held-out files count from 0 again."""
    for part in ("train", "eval"):
        if fate not in survey.fate[part]:
            continue
        for number, row in enumerate(source_rows(plan.profile.data, part, ReadingNotes())):
            if number % TOKENISE_ROWS == 0 and stop:
                raise Stopped
            if survey.fate[part][number] == fate:
                yield number, row


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


class StoreWriter:
    """Appends tokenised rows to the flat files of one part."""

    def __init__(
        self,
        folder: Path,
        part: str,
        task: Task,
        tokenizer: Any,
        max_length: int,
        paired: bool,
        has_types: bool,
    ) -> None:
        self.folder, self.task, self.tokenizer, self.max_length = folder, task, tokenizer, max_length
        self.paired = paired
        self.names = {name: f"{part}.{name}.bin" for name in ("ids", "offsets", "rows", "labels")}
        if has_types:
            self.names["types"] = f"{part}.types.bin"
        self.files = {name: open(folder / file, "wb") for name, file in self.names.items()}  # noqa: SIM115
        self.files["offsets"].write(numpy.int64(0).tobytes())
        self.facts = PartFacts(
            samples=0, tokens=0, truncated=0, unknown_tokens=0, longest=0,
            class_counts=[0] * len(task.classes), sha256={},
        )  # fmt: skip

    def add(self, rows: list[tuple[int, Row]]) -> None:
        pairs = [row.pair for _, row in rows] if self.paired else None
        encoded = self.tokenizer(
            [row.text for _, row in rows], pairs, truncation=True, max_length=self.max_length,
            return_attention_mask=False, return_token_type_ids="types" in self.files,
        )  # fmt: skip
        if self.tokenizer.is_fast:
            self.facts.truncated += sum(bool(encoding.overflowing) for encoding in encoded.encodings)
        for index, (number, row) in enumerate(rows):
            self._add_one(number, row, encoded["input_ids"][index])
            if "types" in self.files:
                self.files["types"].write(numpy.asarray(encoded["token_type_ids"][index], "int8").tobytes())

    def _add_one(self, number: int, row: Row, ids: list[int]) -> None:
        facts = self.facts
        label = self.task.encode(row.label)
        facts.samples += 1
        facts.tokens += len(ids)
        facts.longest = max(facts.longest, len(ids))
        facts.unknown_tokens += (
            ids.count(self.tokenizer.unk_token_id) if self.tokenizer.unk_token_id is not None else 0
        )
        if isinstance(label, int):
            facts.class_counts[label] += 1
        self.files["ids"].write(numpy.asarray(ids, "int32").tobytes())
        self.files["offsets"].write(numpy.int64(facts.tokens).tobytes())
        self.files["rows"].write(numpy.int64(number).tobytes())
        self.files["labels"].write(numpy.asarray(label, self.task.label_dtype).tobytes())

    def close(self) -> PartFacts:
        for file in self.files.values():
            file.close()
        self.facts.sha256 = {name: file_sha256(self.folder / name) for name in self.names.values()}
        return self.facts


def token_notes(facts: DataFacts) -> Iterator[tuple[str, Text]]:
    """Yield ``(level, sentence)`` for what the tokens say."""
    train = facts.train
    yield "info", t("{train} rows to train on, {held_out} held out, {classes} classes",
                    train=train.samples, held_out=facts.eval.samples, classes=len(facts.classes))  # fmt: skip
    share = train.truncated / train.samples
    if share > 0.01:
        yield "info", t("{percent}% of the texts are longer than {length} tokens and are cut",
                        percent=f"{share:.0%}"[:-1], length=facts.max_length)  # fmt: skip
    unknown = train.unknown_tokens / max(1, train.tokens)
    if unknown > 0.01:
        yield "warn", t("{percent}% of the tokens are unknown to the tokenizer ([UNK]): is it made for this language?",
                        percent=f"{unknown:.1%}"[:-1])  # fmt: skip
