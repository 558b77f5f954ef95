"""Out of memory at every phase: the same batch again, smaller, and the same weights as if it had been so all
along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.oom import is_out_of_memory, next_smaller
from tests.runner.tiny import events, final_hash, make_run, outcome, train

TEXTS = [
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity)",
    "CUDA error: out of memory",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
    "Triton Error [CUDA]: out of memory",
    "[enforce fail at alloc_cpu.cpp:118] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
]


@pytest.mark.parametrize("text", TEXTS)
def test_out_of_memory_is_known_by_its_texts(text: str) -> None:
    assert is_out_of_memory(RuntimeError(text))


@pytest.mark.parametrize(
    "text", ["CUDA error: device-side assert triggered", "size mismatch", "No space left on device"]
)
def test_other_errors_are_not(text: str) -> None:
    assert not is_out_of_memory(RuntimeError(text))


@pytest.mark.parametrize(
    ("size", "batch", "smaller"), [(32, 32, 16), (16, 48, 12), (7, 7, 1), (1, 8, None), (64, 8, 8), (3, 8, 2)]
)
def test_the_next_smaller_micro_batch_divides_the_batch(size: int, batch: int, smaller: int | None) -> None:
    assert next_smaller(size, batch) == smaller


def limit(monkeypatch: pytest.MonkeyPatch, phase: str, rows: int, first_call: int = 0) -> None:
    """Let ``phase`` of the engine run out of memory on more than ``rows`` samples, from its n-th call on."""
    from runner.engine import Engine

    original: Callable[..., Any] = getattr(Engine, phase)
    calls = 0

    def limited(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        training = self.model.training
        size = len(arguments[0]["labels"]) if phase == "logits" else limited.size  # type: ignore[attr-defined]
        if training and size > rows and calls > first_call:
            original(self, *arguments)  # the work is half done when the allocator gives up
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return original(self, *arguments)

    def watched(self: Any, batch: Any) -> Any:
        limited.size = len(batch["labels"])  # type: ignore[attr-defined]
        return logits(self, batch)

    logits = Engine.logits
    if phase != "logits":
        monkeypatch.setattr(Engine, "logits", watched)
    monkeypatch.setattr(Engine, phase, limited)


@pytest.mark.train
@pytest.mark.parametrize("phase", ["logits", "backward", "gradient_norm", "update"])
def test_the_weights_are_those_of_a_run_that_began_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    small = make_run(tmp_path, ["train.micro_batch_size=2"], "small")
    assert train(small) == 0
    limit(monkeypatch, phase, rows=2)
    large = make_run(tmp_path, ["train.micro_batch_size=8"], "large")
    assert train(large) == 0
    warnings = [event.data["text"] for event in events(large, "note") if event.data["level"] == "warn"]
    assert [w["params"]["smaller"] for w in warnings if "out of memory" in w["msgid"]] == [4, 2]
    assert final_hash(large) == final_hash(small)
    assert [event.step for event in events(large, "step")] == list(range(1, 41))


@pytest.mark.train
def test_pythons_own_shortage_which_says_nothing_is_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.engine import Engine

    original = Engine.logits

    def short(self: Any, batch: Any) -> Any:
        if len(batch["labels"]) > 2:
            raise MemoryError
        return original(self, batch)

    monkeypatch.setattr(Engine, "logits", short)
    run = make_run(tmp_path, ["train.micro_batch_size=4", "train.eval_batch_size=2", "train.steps=4"])
    assert train(run) == 0
    assert [event.step for event in events(run, "step")] == [1, 2, 3, 4], "no window is taken for done"


@pytest.mark.train
def test_an_update_cut_off_half_way_goes_back_to_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout a smaller cut gives the same weights but for rounding; a doubled update would not."""
    quiet = ["model.dropout=0.0", "train.lr=1e-3"]
    small = make_run(tmp_path, [*quiet, "train.micro_batch_size=2"], "small")
    assert train(small) == 0
    limit(monkeypatch, "update", rows=4, first_call=12)
    large = make_run(tmp_path, [*quiet, "train.micro_batch_size=8"], "large")
    assert train(large) == 0
    steps = [event.step for event in events(large, "step")]
    assert steps == [*range(1, 13), *range(11, 41)], "steps 11 and 12 again, from the checkpoint of step 10"
    for one, other in zip(events(small, "evaluation"), events(large, "evaluation")[-4:], strict=True):
        assert other.data["loss"] == pytest.approx(one.data["loss"], abs=1e-4)


@pytest.mark.train
def test_even_one_by_one_ends_with_a_clear_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, "logits", rows=0)
    run = make_run(tmp_path)
    assert train(run) == 1
    said = [event.data["text"]["msgid"] for event in events(run, "note")]
    assert any("gradient checkpointing is switched on" in text for text in said)
    assert "smaller model" in str(outcome(run)["error"])


@pytest.mark.train
def test_where_even_one_by_one_is_too_much_activations_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is short until each layer works once more in the backward pass; the weights are those of a run that began so."""
    import transformers

    from runner.engine import Engine

    began = make_run(
        tmp_path, ["model.gradient_checkpointing=true", "train.micro_batch_size=1", "train.steps=3"], "began"
    )
    assert train(began) == 0
    backward = Engine.backward
    layer = transformers.models.bert.modeling_bert.BertSelfOutput  # inside of what is computed again
    calls, forward = [], layer.forward

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(self.training)
        return forward(self, *arguments, **options)

    def short(self: Any, loss: Any) -> None:
        before = len(calls)
        backward(self, loss)
        if len(calls) == before:
            raise RuntimeError("CUDA out of memory.")

    monkeypatch.setattr(layer, "forward", counted)
    monkeypatch.setattr(Engine, "backward", short)
    run = make_run(tmp_path, ["train.micro_batch_size=2", "train.steps=3"], "run")
    assert train(run) == 0, outcome(run)
    assert final_hash(run) == final_hash(began)


@pytest.mark.train
def test_what_was_learnt_is_remembered_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.runner.test_trainer import StopAfter

    run = make_run(tmp_path, ["train.micro_batch_size=8"])
    with monkeypatch.context() as patch:
        limit(patch, "logits", rows=2)
        assert train(run, stop=StopAfter(12)) == 143
    warned = len(events(run, "note"))
    limit(monkeypatch, "logits", rows=2)
    assert train(run, resume=True) == 0
    assert not [e for e in events(run, "note")[warned:] if "out of memory" in e.data["text"]["msgid"]]


@pytest.mark.train
def test_memory_short_in_evaluation_shrinks_only_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.engine import Engine

    whole = make_run(tmp_path, [], "whole")
    assert train(whole) == 0
    original = Engine.logits

    def limited(self: Any, batch: Any) -> Any:
        if not self.model.training and len(batch["labels"]) > 5:
            raise RuntimeError("CUDA error: out of memory")
        return original(self, batch)

    monkeypatch.setattr(Engine, "logits", limited)
    run = make_run(tmp_path, [], "run")
    assert train(run) == 0
    assert final_hash(run) == final_hash(whole)
    assert events(run, "evaluation")[-1].data["accuracy"] == events(whole, "evaluation")[-1].data["accuracy"]


@pytest.mark.train
def test_an_error_that_is_no_shortage_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.engine import Engine

    def broken(self: Any, batch: Any) -> Any:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Engine, "logits", broken)
    run = make_run(tmp_path)
    assert train(run) == 1
    assert "mat1 and mat2" in str(outcome(run)["error"])
