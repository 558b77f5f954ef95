"""Words and their tags: labels stand on first tokens, spans count whole, windows divide by the words."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from runner.spans import is_span_tagging, spans
from tests.runner.test_trainer import StopAfter, final_weights
from tests.runner.tiny import events, final_hash, last_losses, make_run, outcome, train


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O B-PER I-PER O", {("PER", 1, 2)}),
        ("B-PER B-PER", {("PER", 0, 0), ("PER", 1, 1)}),
        ("I-PER I-PER O I-LOC", {("PER", 0, 1), ("LOC", 3, 3)}),
        ("B-PER I-LOC", {("PER", 0, 0), ("LOC", 1, 1)}),
        ("B-PER I-PER E-PER S-LOC S-LOC", {("PER", 0, 2), ("LOC", 3, 3), ("LOC", 4, 4)}),
        ("O O", set()),
        ("", set()),
    ],
    ids=["BIO", "two beside each other", "IOB1", "the type changes", "BIOES", "nothing", "no words"],
)
def test_spans_begin_and_end_as_conlleval_reads_them(tags: str, found: set[tuple[str, int, int]]) -> None:
    assert spans(tags.split()) == found


def test_parts_of_speech_are_no_spans() -> None:
    assert is_span_tagging(["B-PER", "I-PER", "O"]) and not is_span_tagging(["NOUN", "O"])


pytest_train = pytest.mark.train


@pytest_train
def test_labels_stand_on_the_first_token_of_each_word() -> None:
    from runner.token_task import on_first_tokens

    # [CLS] wal ##king in ber ##lin [SEP]
    assert on_first_tokens([3, 0, 5], [None, 0, 0, 1, 2, 2, None]) == [-100, 3, -100, 0, 5, -100, -100]


@pytest_train
def test_a_window_is_divided_by_its_words_or_by_the_sum_of_their_weights() -> None:
    import torch
    import torch.nn.functional as F  # noqa: N812

    from runner.token_task import TokenClassification

    labels = torch.tensor([[-100, 1, -100, 0], [0, -100, -100, -100]])
    logits = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(1))
    plain, weighted = (
        TokenClassification(["O", "X"]),
        TokenClassification(["O", "X"], 0.1, torch.tensor([1.0, 3.0])),
    )
    assert plain.denominator(labels) == 3.0 and weighted.denominator(labels) == 5.0
    flat, wanted = logits.flatten(0, 1), labels.flatten()
    mean = float(F.cross_entropy(flat, wanted))
    assert float(plain.loss_sum(logits, labels)) / 3 == pytest.approx(mean)
    mean = float(F.cross_entropy(flat, wanted, weight=torch.tensor([1.0, 3.0]), label_smoothing=0.1))
    assert float(weighted.loss_sum(logits, labels)) / 5 == pytest.approx(mean)


@pytest_train
def test_span_scores_are_of_whole_spans_and_do_not_depend_on_the_batch() -> None:
    import torch

    from runner.token_task import TagMetrics

    names = ["O", "B-X", "I-X"]
    truth = torch.tensor([[-100, 1, 2, 0, -100], [-100, 1, 0, 1, 2]])
    answer = torch.tensor(
        [[0, 1, 0, 0, 1], [0, 1, 0, 1, 2]]
    )  # the first span is cut short; what is ignored is wrong
    logits = torch.nn.functional.one_hot(answer, 3).float()
    whole, parts = TagMetrics(names), TagMetrics(names)
    whole.update(logits, truth)
    parts.update(logits[:1], truth[:1])
    parts.update(logits[1:, :], truth[1:, :])
    assert whole.result() == parts.result()
    assert whole.result() == pytest.approx(
        {"f1": 2 / 3, "precision": 2 / 3, "recall": 2 / 3, "token_accuracy": 6 / 7}
    )


PEOPLE, PLACES = ["anna", "bertram", "chloe"], ["lima", "oslo", "quito"]


def write_sentences(path: Path, rows: int = 120) -> None:
    """Write sentences in which a person's name has two words, a place's one, wherever they stand."""
    draw = random.Random(3)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(rows):
            person, place = draw.choice(PEOPLE), draw.choice(PLACES)
            lead = draw.choices(["and", "back", "soon"], k=draw.randint(0, 4))
            words = [*lead, person, "smithson", "went", "to", place, f"w{number}"]
            tags = [*["O"] * len(lead), "B-PER", "I-PER", "O", "O", "B-LOC", "O"]
            file.write(json.dumps({"tokens": words, "tags": tags}) + "\n")


TAGGED = ["model.task=token-classification", "data.text=tokens", "data.label=tags"]


def tagged(folder: Path, *overrides: str) -> list[str]:
    if not (folder / "people.jsonl").exists():
        write_sentences(folder / "people.jsonl")
    return [*TAGGED, f"data.train={folder / 'people.jsonl'}", *overrides]


@pytest_train
def test_names_are_learnt_and_the_model_knows_its_tags(tmp_path: Path) -> None:
    import transformers

    run = make_run(tmp_path, tagged(tmp_path, "train.epochs=4"))
    assert train(run) == 0
    last = events(run, "evaluation")[-1].data
    assert last["f1"] > 0.9 and last["token_accuracy"] > 0.9
    model = transformers.AutoModelForTokenClassification.from_pretrained(str(run.final))
    assert set(model.config.id2label.values()) == {"B-LOC", "B-PER", "I-PER", "O"}


@pytest_train
def test_accumulation_equals_one_big_batch_by_words(tmp_path: Path) -> None:
    common = tagged(tmp_path, "model.dropout=0.0", "train.epochs=1", "train.batch_size=15", "train.lr=1e-4")
    whole = make_run(tmp_path, [*common, "train.micro_batch_size=15"], "whole")
    parts = make_run(tmp_path, [*common, "train.micro_batch_size=3"], "parts")
    assert train(whole) == train(parts) == 0
    for one, many in zip(events(whole, "step"), events(parts, "step"), strict=True):
        assert many.data["loss"] == pytest.approx(one.data["loss"], rel=1e-5, abs=1e-6)
    big, small = final_weights(whole), final_weights(parts)
    assert max(float((big[name] - small[name]).abs().max()) for name in big) < 2e-6


@pytest_train
def test_a_tagging_run_resumes_exactly(tmp_path: Path) -> None:
    overrides = tagged(tmp_path, "train.workers=2", "train.epochs=1")
    whole, parts = (make_run(tmp_path, overrides, name) for name in ("whole", "parts"))
    assert train(whole) == 0
    assert train(parts, stop=StopAfter(8)) == 143
    assert train(parts, resume=True) == 0
    assert final_hash(parts) == final_hash(whole) and last_losses(parts) == last_losses(whole)


@pytest_train
def test_a_row_with_too_few_tags_is_left_out_and_said(tmp_path: Path) -> None:
    overrides = tagged(tmp_path, "train.steps=2")
    with open(tmp_path / "people.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"tokens": ["one", "two"], "tags": ["O"]}) + "\n")
    run = make_run(tmp_path, overrides)
    assert train(run) == 0
    counts = [
        event.data["text"]["params"].get("count")
        for event in events(run, "note")
        if "as many tags" in event.data["text"]["msgid"]
    ]
    assert counts == [1]


@pytest_train
def test_words_with_blanks_between_are_as_good_as_lists(tmp_path: Path) -> None:
    overrides = tagged(tmp_path, "train.steps=4")
    records = [json.loads(line) for line in (tmp_path / "people.jsonl").read_text().splitlines()]
    lines = [f"{' '.join(one['tokens'])},{' '.join(one['tags'])}\n" for one in records]
    (tmp_path / "people.csv").write_text("tokens,tags\n" + "".join(lines))
    listed = make_run(tmp_path, overrides, "listed")
    plain = make_run(tmp_path, [*overrides, f"data.train={tmp_path / 'people.csv'}"], "plain")
    assert train(listed) == train(plain) == 0
    assert outcome(listed)["outcome"] == "completed" and final_hash(listed) == final_hash(plain)
