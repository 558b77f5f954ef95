"""What counts as the same answer, and what is found when it is not: without an exporter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from msgspec.structs import replace

from doctor.render.export_text import export_lines
from runner.deploy.onnx_card import onnx_card
from runner.deploy.opening import open_trained
from runner.deploy.parity import AgreementCount, compare_shapes, made_up_batch, shapes_for
from runner.deploy.records import Agreement, Variant
from runner.deploy.session import Batch, ask
from runner.deploy.trained import Trained, encode
from tests.deploy.test_cards import EXPORTED
from tests.deploy.tiny import save_model

SHAPES = [(1, 7), (2, 16), (3, 33), (5, 64), (8, 64)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("bert")
    return open_trained(save_model(folder, "AutoModelForSequenceClassification"))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("tagger")
    return open_trained(save_model(folder, "AutoModelForTokenClassification"))


class Echo:
    """Stands where onnxruntime's session does: torch's own answer, changed by ``change``."""

    def __init__(self, trained: Trained, change: Any = lambda output: output) -> None:
        self.trained, self.change = trained, change

    def get_inputs(self) -> list[Any]:
        return [type("Input", (), {"name": name}) for name in self.trained.input_names]

    def run(self, names: None, given: dict[str, Any]) -> list[Any]:
        batch = {name: torch.from_numpy(value) for name, value in given.items()}
        return [self.change(self.trained.answer(batch).numpy().copy())]


def compare_texts(trained: Trained, session: Any, batches: list[Batch]) -> Agreement:
    """Hold both against each other on every batch."""
    count = AgreementCount(trained)
    for batch in batches:
        count.add(batch, trained.answer(batch).numpy(), ask(session, batch))
    found = count.result()
    assert found is not None
    return found


def test_at_least_five_shapes_are_compared_and_none_is_too_long(classifier: Trained) -> None:
    shapes = shapes_for(classifier)
    assert len(set(shapes)) >= 5
    assert max(length for _, length in shapes) == classifier.max_length == 64


def test_rows_of_a_made_up_batch_are_padded_to_different_lengths(classifier: Trained) -> None:
    mask = made_up_batch(classifier, (8, 64), seed=1)["attention_mask"]
    assert len(set(mask.sum(1).tolist())) > 3
    assert int(mask[0].sum()) == 64


def test_the_same_output_is_equal_on_every_shape(classifier: Trained) -> None:
    found = compare_shapes(classifier, Echo(classifier), SHAPES)
    assert list(dict.fromkeys(one.shape for one in found)) == SHAPES
    assert {one.side for one in found if one.shape[0] > 1} == {"right", "left"}
    assert all(one.is_equal and one.max_difference == 0 for one in found)


def one_value_off(output: Any) -> Any:
    output[-1, 1] += 0.01
    return output


def one_not_a_number(output: Any) -> Any:
    output[0, 0] = numpy.nan
    return output


@pytest.mark.parametrize(
    ("change", "place"),
    [
        pytest.param(one_value_off, "logits[1, 1]: torch ", id="one value of one text"),
        pytest.param(one_not_a_number, "logits[0, 0]: torch ", id="a NaN"),
        pytest.param(lambda output: output[:, :2], "logits: torch [2, 3], ONNX [2, 2]", id="another shape"),
    ],
)
def test_one_wrong_value_is_found_and_placed(classifier: Trained, change: Any, place: str) -> None:
    found = compare_shapes(classifier, Echo(classifier, change), [(2, 16)])[0]
    assert not found.is_equal
    assert found.first_difference.startswith(place)


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_file_that_reads_padding_is_found(tmp_path: Path, side: str) -> None:
    """As one does that was exported with a mask of ones for a constant."""
    trained = open_trained(save_model(tmp_path, "AutoModelForSequenceClassification", initializer_range=0.5))

    class BlindEcho(Echo):
        def run(self, names: None, given: dict[str, Any]) -> list[Any]:
            return super().run(names, {**given, "attention_mask": numpy.ones_like(given["attention_mask"])})

    found = compare_shapes(trained, BlindEcho(trained), SHAPES)
    assert [one.is_equal for one in found if one.side == side and one.shape[0] > 1] == [False] * 4


def test_only_the_side_where_the_tokenizer_pads_is_a_condition(classifier: Trained) -> None:
    """A model that reads the first token reads padding where it stands there, in torch as well."""

    class LeftIsAnything(Echo):
        def run(self, names: None, given: dict[str, Any]) -> list[Any]:
            return [super().run(names, given)[0] + (given["attention_mask"][-1, 0] == 0)]

    shapes = tuple(compare_shapes(classifier, LeftIsAnything(classifier), SHAPES))
    fp32 = Variant(name="fp32", file="model.onnx", bytes=1, provider="CPUExecutionProvider", shapes=shapes, metrics={"accuracy": 0.9})  # fmt: skip
    other = fp32.first_unequal(own_side=False)
    assert fp32.is_equal and other is not None and other.side == "left"
    lines = list(export_lines(replace(EXPORTED, variants=(fp32,)), Path("/out")))
    assert "equal to torch on 5 shapes with padding" in lines[1]
    assert (
        "not equal where it is padded on the left, which this tokenizer does not do (2 x 16 tokens, logits[0, 0]: torch"
        in lines[2]
    )
    assert "padded as the tokenizer does; not on the left" in onnx_card(replace(EXPORTED, variants=(fp32,)))
    wrong = replace(fp32, shapes=tuple(replace(one, is_own_side=not one.is_own_side) for one in shapes))
    assert not wrong.is_equal


def test_rounding_is_no_difference(classifier: Trained) -> None:
    found = compare_shapes(classifier, Echo(classifier, lambda output: output + 1e-6), [(2, 16)])[0]
    assert found.is_equal
    assert found.max_difference > 0


def test_what_a_tagger_says_of_padding_is_not_compared(tagger: Trained) -> None:
    batch = made_up_batch(tagger, (5, 64), seed=0)
    padding = batch["attention_mask"].numpy() == 0

    def scribble(output: Any) -> Any:
        output[padding] = 99.0
        return output

    assert compare_shapes(tagger, Echo(tagger, scribble), [(5, 64)])[0].is_equal
    assert not compare_shapes(tagger, Echo(tagger, lambda output: output + 1.0), [(5, 64)])[0].is_equal


def test_a_text_with_another_class_is_counted_and_named(classifier: Trained) -> None:
    batches = [encode(classifier, ["good film", "bad"]), encode(classifier, ["not good"])]

    def other_class_of_the_last(output: Any) -> Any:
        output[-1, (output[-1].argmax() + 1) % 3] += 50.0
        return output

    same = compare_texts(classifier, Echo(classifier), batches)
    assert (same.samples, same.answers, same.disagreements) == (3, 3, 0)
    apart = compare_texts(classifier, Echo(classifier, other_class_of_the_last), batches)
    assert (apart.disagreements, apart.first_disagreement) == (2, "text 2")


def test_a_tie_within_rounding_is_the_same_answer(classifier: Trained) -> None:
    class Tied(Trained):
        def answer(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.tensor([[1.0, 1.0 + 1e-6, 0.0]])

    def session(*logits: float) -> Echo:
        return Echo(classifier, lambda output: numpy.array([logits], "float32"))

    tied = Tied(**vars(classifier))
    batches = [encode(classifier, ["good"])]
    assert compare_texts(tied, session(1.0, 0.9, 0.0), batches).disagreements == 0
    assert compare_texts(tied, session(0.0, 0.9, 1.0), batches).disagreements == 1
