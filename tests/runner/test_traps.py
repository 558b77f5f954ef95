"""Traps that are smaller than a run: each named as in docs/traps.md."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path
from typing import Any

import pytest

from runner.rundir import RunDir
from tests.runner.tiny import events, make_run, train

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def fp32(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("fp32"), ["model.dropout=0.0", "train.steps=8"])
    assert train(run) == 0
    return run


def test_fp16_gradients_are_unscaled_before_they_are_clipped(fp32: RunDir, tmp_path: Path) -> None:
    """Clipped while still scaled by 65536, every norm would be 65536 times that of fp32."""
    rows = f"data.train={fp32.path.parent / 'rows.csv'}"
    run = make_run(tmp_path, [rows, "model.dropout=0.0", "train.steps=8", "train.precision=fp16"])
    assert train(run) == 0
    for half, full in zip(events(run, "step"), events(fp32, "step"), strict=True):
        assert half.data["grad_norm"] == pytest.approx(full.data["grad_norm"], rel=0.1)


def test_an_update_the_scaler_held_back_does_not_move_the_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.engine import Engine

    begin = Engine.__init__

    def with_a_scale_far_too_large(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self.scaler.load_state_dict(self.scaler.state_dict() | {"scale": 2.0**40})

    monkeypatch.setattr(Engine, "__init__", with_a_scale_far_too_large)
    run = make_run(tmp_path, ["train.precision=fp16", "train.epochs=3"])
    assert train(run) == 0
    steps = events(run, "step")
    skipped = list(itertools.takewhile(lambda event: event.data.get("skipped"), steps))
    assert 3 < len(skipped) < 50, "the scale halves until the gradients fit"
    assert {event.data["lr"] for event in skipped} == {0.0}, "update 0 was not made yet"
    assert steps[len(skipped)].data["lr"] == 0.0 and steps[len(skipped) + 1].data["lr"] > 0


def test_biases_and_norms_do_not_decay_and_every_parameter_is_in_one_group() -> None:
    import torch
    import transformers

    from runner.optim import make_optimizer, named_groups
    from runner.profile import TrainSection

    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = transformers.BertForMaskedLM(config)  # its decoder is tied to the embeddings
    matrices, vectors = named_groups(model)
    names = [name for name, _ in matrices + vectors]
    assert len(names) == len(set(names)) == len({id(p) for _, p in matrices + vectors})
    assert all(name.endswith(("bias", "LayerNorm.weight")) for name, _ in vectors)
    assert not any("bias" in name or "LayerNorm" in name for name, _ in matrices)
    optimizer = make_optimizer(model, TrainSection(weight_decay=0.1), fused=False)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert sum(p.numel() for g in optimizer.param_groups for p in g["params"]) == sum(
        p.numel() for p in model.parameters()
    )
    assert isinstance(optimizer, torch.optim.AdamW)


def test_tied_weights_are_saved_once_and_tied_again_when_loaded(tmp_path: Path) -> None:
    import torch
    import transformers

    from runner.checkpoint import MODEL, STATE, load_model, take_copy, write_tensors
    from runner.optim import make_optimizer
    from runner.profile import TrainSection
    from runner.train_state import TrainState

    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model, other = transformers.BertForMaskedLM(config), transformers.BertForMaskedLM(config)
    state = TrainState(plan_digest="", torch_version="", threads=1, device_name="cpu", micro_batch_size=1,
                       eval_batch_size=1, gradient_checkpointing=False)  # fmt: skip
    copy = take_copy(state, model, make_optimizer(model, TrainSection(), fused=False))
    assert copy.state.aliases and not set(copy.state.aliases) & set(copy.model)
    import msgspec

    write_tensors(tmp_path / MODEL, copy.model)
    (tmp_path / STATE).write_bytes(msgspec.json.encode(copy.state))
    load_model(tmp_path, other)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    decoder, embeddings = other.get_output_embeddings(), other.get_input_embeddings()
    assert decoder.weight.data_ptr() == embeddings.weight.data_ptr()


def test_a_copy_for_saving_is_not_changed_by_later_updates() -> None:
    import torch

    from runner.checkpoint import take_copy
    from runner.optim import make_optimizer
    from runner.profile import TrainSection
    from runner.train_state import TrainState

    model = torch.nn.Linear(2, 2)
    optimizer = make_optimizer(model, TrainSection(lr=1.0), fused=False)
    state = TrainState(plan_digest="", torch_version="", threads=1, device_name="cpu", micro_batch_size=1,
                       eval_batch_size=1, gradient_checkpointing=False)  # fmt: skip
    copy = take_copy(state, model, optimizer)
    before = copy.model["weight"].clone()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert torch.equal(copy.model["weight"], before) and not torch.equal(model.weight, before)


def test_padding_is_marked_by_length_and_rounded_to_eight() -> None:
    import numpy

    from runner.data import Collate

    def sample(ids: list[int]) -> dict[str, Any]:
        return {
            "ids": numpy.array(ids, "int32"),
            "types": None,
            "label": numpy.int64(1),
            "row": numpy.int64(0),
        }

    batch = Collate(pad_id=7)([sample([1, 7, 7]), sample([1, 2, 3, 4, 5, 6, 7, 7, 9])])
    assert batch["input_ids"].shape == (2, 16)
    assert batch["attention_mask"].sum(1).tolist() == [3, 9], "a text may end in the pad token's id"


def test_after_evaluation_every_module_is_in_its_own_mode_again() -> None:
    import torch

    from runner.evaluation import evaluation_mode

    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(2))
    model.train()
    model[1].eval()  # frozen
    with evaluation_mode(model):
        assert not model[0].training
    assert model[0].training and not model[1].training


def test_metrics_are_of_counts_not_of_batches() -> None:
    import torch

    from runner.tasks import ClassificationMetrics

    logits, labels = torch.eye(3)[[0, 1, 2, 2]], torch.tensor([0, 1, 2, 0])
    whole, parts = ClassificationMetrics(3), ClassificationMetrics(3)
    whole.update(logits, labels)
    parts.update(logits[:3], labels[:3])
    parts.update(logits[3:], labels[3:])
    assert whole.result() == parts.result()
    assert whole.result()["accuracy"] == 0.75
    assert whole.result()["f1_macro"] == pytest.approx((2 / 3 + 1 + 2 / 3) / 3)


def test_a_model_from_a_configuration_is_the_seeds(tmp_path: Path) -> None:
    import torch

    from runner.trainer import Trainer

    first = make_run(tmp_path, [], "first")
    trainers = [built(first)]
    torch.manual_seed(999)
    trainers.append(built(make_run(tmp_path, [], "second")))
    trainers.append(built(make_run(tmp_path, ["run.seed=8"], "third")))
    heads = [trainer.engine.bare_model.classifier.weight for trainer in trainers]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])
    assert all(isinstance(trainer, Trainer) for trainer in trainers)


def built(run: RunDir) -> Any:
    from runner.events import EventWriter
    from runner.journal import Journal
    from runner.plan import decode_plan
    from runner.signals import StopRequest
    from runner.trainer import Trainer

    journal = Journal(EventWriter(run.events / "trainer-0.jsonl", "trainer-0"))
    return Trainer(decode_plan(run.plan.read_bytes()), run, journal, StopRequest())


def test_a_decoder_without_a_pad_token_gets_one_and_learns(tmp_path: Path) -> None:
    config = '{model_type="gpt2", n_embd=32, n_layer=1, n_head=2, n_positions=64}'
    run = make_run(tmp_path, [f"model.config={config}", "train.epochs=1"])
    assert train(run) == 0
    assert all(event.data["grad_norm"] > 0 for event in events(run, "step"))


def test_the_second_of_a_pair_is_told_from_the_first(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(
        "text,other,label\n"
        + "".join(f"the soup {n},was {'warm' if n % 2 else 'cold'},{n % 2}\n" for n in range(60))
    )
    overrides = [f"data.train={tmp_path / 'pairs.csv'}", "data.text_pair=other", "train.epochs=1"]
    run = make_run(tmp_path, overrides)
    assert train(run) == 0
    assert (run.data / "train.types.bin").read_bytes().count(b"\x01") > 0


def test_a_loader_worker_does_not_die_of_the_trainers_signal() -> None:
    from runner.signals import STOP_SIGNALS, ignore_in_worker

    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        ignore_in_worker()
        assert {signal.getsignal(number) for number in STOP_SIGNALS} == {signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_hidden_tokens_are_a_function_of_epoch_and_sample() -> None:
    import torch

    from runner.language_tasks import IGNORED, MaskedLM

    class Tokenizer:
        mask_token_id, all_special_ids = 4, (0, 1, 2, 3, 4)

        def __len__(self) -> int:
            return 100

    def hidden(indices: list[int], epoch: int) -> list[list[int]]:
        ids = torch.arange(5, 45).repeat(len(indices), 1)
        batch = {"input_ids": ids.clone(), "attention_mask": torch.ones_like(ids)}
        MaskedLM(Tokenizer(), seed=1, share=0.15).finish_batch(batch, indices, epoch)
        counted = batch["labels"] != IGNORED
        assert bool((batch["labels"][counted] == ids[counted]).all())
        assert bool((batch["input_ids"][~counted] == ids[~counted]).all()), (
            "what is not asked for stays readable"
        )
        assert counted.sum(1).tolist() == [6] * len(indices)
        return batch["input_ids"].tolist()

    assert hidden([7, 8], 0)[1] == hidden([8], 0)[0], "whoever is in the batch with it"
    assert hidden([7], 0) != hidden([7], 1)


def test_a_causal_loss_counts_the_predicted_tokens_only() -> None:
    import torch

    from runner.language_tasks import CausalLM

    batch = {"input_ids": torch.tensor([[5, 6, 7, 0], [5, 6, 0, 0]]),
             "attention_mask": torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])}  # fmt: skip
    CausalLM().finish_batch(batch, [0, 1], 0)
    assert CausalLM().denominator(batch["labels"]) == 3.0
    logits = torch.full((2, 4, 10), -100.0)
    for row, column, token in ((0, 0, 6), (0, 1, 7), (1, 0, 6)):
        logits[row, column, token] = 100.0
    assert float(CausalLM().loss_sum(logits, batch["labels"])) == 0.0


def test_a_window_in_which_nothing_counts_makes_no_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.tasks import Classification

    begin = built(make_run(tmp_path, [], "begin")).engine.bare_model.state_dict()
    monkeypatch.setattr(Classification, "denominator", lambda self, labels: 0.0 if len(labels) == 4 else 4.0)
    run = make_run(tmp_path, ["train.steps=3", "train.evaluate_every=end"])
    assert train(run) == 0
    assert (
        len([event for event in events(run, "note") if "nothing in it counts" in event.data["text"]["msgid"]])
        == 3
    )
    import safetensors.torch

    final = safetensors.torch.load_file(run.final / "model.safetensors")
    assert all(bool((tensor == begin[name]).all()) for name, tensor in final.items())


def test_a_weighted_loss_is_divided_by_the_sum_of_the_weights() -> None:
    import torch
    import torch.nn.functional as F  # noqa: N812

    from runner.tasks import Classification

    weights, labels = torch.tensor([1.0, 5.0]), torch.tensor([0, 0, 1])
    logits = torch.tensor([[0.3, 1.0], [2.0, -1.0], [0.1, 0.2]])
    task = Classification(["a", "b"], weights=weights)
    ours = float(task.loss_sum(logits, labels)) / task.denominator(labels)
    assert ours == pytest.approx(float(F.cross_entropy(logits, labels, weight=weights)))


def test_label_smoothing_and_class_weights_reach_the_loss() -> None:
    import torch
    import torch.nn.functional as F  # noqa: N812

    from runner.tasks import Classification

    logits, labels = torch.tensor([[0.3, 1.0], [2.0, -1.0]]), torch.tensor([0, 1])
    smooth = float(Classification(["a", "b"], smoothing=0.2).loss_sum(logits, labels))
    assert smooth == pytest.approx(
        float(F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.2))
    )
    assert smooth != pytest.approx(float(Classification(["a", "b"]).loss_sum(logits, labels)))


def test_balanced_weights_have_a_mean_of_one_over_the_samples() -> None:
    from runner.tasks import balanced_weights

    weights = balanced_weights([90, 10])
    assert weights == pytest.approx([0.5556, 5.0], abs=1e-3)
    assert (90 * weights[0] + 10 * weights[1]) / 100 == pytest.approx(1.0)


def test_the_splits_add_up_to_the_step(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=5"])
    assert train(run) == 0
    for event in events(run, "step"):
        split = event.data["split"]
        assert set(split) == {"data", "forward", "backward", "optimizer"}
        assert sum(split.values()) <= event.data["seconds"]
        assert event.data["tokens"] <= event.data["padded_tokens"]
