"""Texts packed into rows: nothing lost, nothing predicted across a boundary, and the model asked whether it parts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from runner.data import Collate, part_texts
from runner.language_tasks import IGNORED, CausalLM
from runner.packing import Packed, Packer, positions_of
from runner.profile import ProfileError, load_profile
from tests.runner.tiny import PROFILE, events, make_run, outcome, train

END = 9


def packed_all(texts: list[list[int]], length: int, chunk: int, end: int | None = END) -> list[Packed]:
    packer = Packer(length, end)
    found = []
    for start in range(0, len(texts), chunk):
        part = texts[start : start + chunk]
        lengths = numpy.asarray([len(text) for text in part], "int64")
        ids = numpy.asarray([one for text in part for one in text], "int32")
        found.append(packer.add(numpy.arange(start, start + len(part)), lengths, ids))
    return [*found, packer.rest()]


def joined(parts: list[Packed], name: str) -> list[int]:
    return [int(one) for part in parts for one in getattr(part, name)]


TEXTS = [[1, 2, 3], [4], [5, 6, 7, 8, END], [1, 1, 1, 1, 1, 1, 1], [2, 2]]


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_every_token_stands_once_in_order_with_an_end_after_each_text_however_it_came_in_chunks(
    chunk: int,
) -> None:
    parts = packed_all(TEXTS, 4, chunk)
    with_ends = [[*text] if text[-1] == END else [*text, END] for text in TEXTS]
    assert joined(parts, "ids") == [one for text in with_ends for one in text]
    assert joined(parts, "starts") == [int(not at) for text in with_ends for at in range(len(text))]
    assert joined(parts, "lengths") == [4, 4, 4, 4, 4, 2]
    # 1 2 3 E | 4 E 5 6 | 7 8 E 1 | 1 1 1 1 | 1 1 E 2 | 2 E
    assert joined(parts, "rows") == [0, 1, 2, 3, 3, 4]


def test_without_an_end_token_texts_are_joined_as_they_are() -> None:
    assert joined(packed_all([[1, 2], [3]], 2, 2, end=None), "ids") == [1, 2, 3]


def test_what_waits_can_be_put_back_into_another_packer() -> None:
    first = Packer(8, END)
    first.add(numpy.asarray([0]), numpy.asarray([3]), numpy.asarray([1, 2, 3], "int32"))
    second = Packer(8, END)
    second.put_back(first.waiting())
    assert second.rest().ids.tolist() == [1, 2, 3, END]


def test_positions_count_from_each_start_and_from_the_rows_first() -> None:
    assert positions_of(numpy.asarray([0, 0, 1, 0, 0, 1], "int8")).tolist() == [0, 1, 0, 1, 2, 0]


def test_no_first_token_is_a_label_and_padding_is_apart() -> None:
    ids = torch.tensor([[5, 6, 7, 8, 0, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0, 0, 0]])
    batch = {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORED)}
    part_texts(batch, [numpy.asarray([0, 0, 1, 0], "int8")])
    assert batch["labels"].tolist() == [[5, 6, IGNORED, 8, *[IGNORED] * 4]]
    assert batch["position_ids"].tolist() == [[0, 1, 0, 1, 0, 1, 2, 3]]


def test_the_loss_of_packed_texts_counts_what_the_texts_alone_count() -> None:
    def sample(ids: list[int], starts: list[int]) -> dict[str, Any]:
        return {"ids": numpy.asarray(ids, "int32"), "types": None, "starts": numpy.asarray(starts, "int8"),
                "label": 0.0, "row": 0, "index": 0}  # fmt: skip

    task: Any = CausalLM()
    packed = Collate(0, task)([sample([1, 2, 3, 4, 5, 6, 7, 8], [1, 0, 0, 1, 0, 0, 0, 0])])
    assert task.denominator(packed["labels"]) == 2 + 4


def test_packing_is_for_language_modelling_only(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    with pytest.raises(ProfileError, match="causal-lm"):
        load_profile(tmp_path / "tiny.toml", ["train.packing=true"])


GPT2 = '{ model_type = "gpt2", n_embd = 32, n_layer = 2, n_head = 2, n_positions = 64 }'
LLAMA = (
    '{ model_type = "llama", hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 2, '
    "intermediate_size = 64, max_position_embeddings = 64 }"
)


@pytest.mark.train
@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["GPT-2", "Llama-like"])
def test_a_packed_run_has_full_rows_keeps_texts_apart_and_learns(tmp_path: Path, config: str) -> None:
    run = make_run(
        tmp_path,
        [f"model.config={config}", "model.task=causal-lm", "train.packing=true", "train.epochs=3"],
    )
    assert train(run) == 0
    steps = events(run, "step")
    assert sum(step.data["tokens"] == step.data["padded_tokens"] for step in steps) >= len(steps) - 3, (
        "only an epoch's last row may be shorter"
    )
    notes = [str(note.data["text"]["msgid"]) for note in events(run, "note")]
    assert any("do not see each other" in note for note in notes)
    assert steps[-1].data["loss"] < steps[0].data["loss"]
    assert outcome(run)["outcome"] == "completed"
