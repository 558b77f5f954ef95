"""Traps of docs/traps.md that are measured or counted: memory at a resume, texts cut, what the last window does to the schedule."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from runner.rundir import RunDir
from tests.runner.tiny import events, make_run, train

pytestmark = pytest.mark.train

MIB = 1 << 20


def optimizer_of(layers: int, width: int = 1024) -> tuple[Any, Any]:
    """Return a model of ``layers`` square matrices and its optimizer, which has no moments yet."""
    import torch

    from runner.optim import make_optimizer
    from runner.profile import TrainSection

    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
    return model, make_optimizer(model, TrainSection(), fused=False)


def with_moments(model: Any, optimizer: Any) -> Any:
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return optimizer


def saved_moments(folder: Path, model: Any, optimizer: Any) -> None:
    from runner.checkpoint import OPTIMIZER, take_copy, write_tensors
    from runner.train_state import TrainState

    state = TrainState(plan_digest="", torch_version="", threads=1, device_name="cpu", micro_batch_size=1,
                       eval_batch_size=1, gradient_checkpointing=False)  # fmt: skip
    write_tensors(folder / OPTIMIZER, take_copy(state, model, with_moments(model, optimizer)).optimizer)


def test_moments_that_are_loaded_are_in_memory_once(tmp_path: Path) -> None:
    """32 matrices of 4 MiB: 256 MiB of moments. Held twice while they are loaded they would not fit where they did before."""
    from runner.checkpoint import load_optimizer
    from runner.child.memory_guard import begin_anew, give_back, status_bytes

    saved_moments(tmp_path, *optimizer_of(32))
    _, optimizer = optimizer_of(32)
    give_back()
    held = status_bytes("VmRSS")
    if not begin_anew():
        pytest.skip("this kernel does not count a peak anew")
    load_optimizer(tmp_path, optimizer)
    assert sum(value.nbytes for one in optimizer.state.values() for value in one.values()) > 255 * MIB
    assert status_bytes("VmHWM") - held < (256 + 64) * MIB


def test_moments_from_before_are_gone_when_those_of_a_checkpoint_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Back at a checkpoint because memory was short, both would be there at once."""
    from runner import checkpoint

    model, optimizer = optimizer_of(2, width=8)
    saved_moments(tmp_path, model, optimizer)
    before = [weakref.ref(value) for one in optimizer.state.values() for value in one.values()]
    alive: list[int] = []
    read = checkpoint._moments

    def looked(folder: Path) -> Any:
        alive.append(sum(one() is not None for one in before))
        yield from read(folder)

    monkeypatch.setattr(checkpoint, "_moments", looked)
    checkpoint.load_optimizer(tmp_path, optimizer)
    assert len(before) == 6 and alive == [0]
    assert len(optimizer.state) == 2


def test_the_share_of_texts_that_are_cut_is_said_and_kept(tmp_path: Path) -> None:
    """Of 50 texts 20 have more than the 8 tokens of a row; the special ones count."""
    texts = ["one two three four five six"] * 30 + ["one two three four five six seven"] * 20
    rows = "".join(f"{text},{number % 2}\n" for number, text in enumerate(texts))
    (tmp_path / "rows.csv").write_text("text,label\n" + rows)
    settings = ["train.max_length=8", "train.steps=1", "data.deduplicate=false", "data.eval_share=0.2"]
    run = make_run(tmp_path, settings)
    assert train(run) == 0
    facts = json.loads((run.data / "data.json").read_bytes())
    kept = {part: facts[part]["truncated"] for part in ("train", "eval")}
    assert sum(kept.values()) == 20
    (note,) = [e.data["text"] for e in events(run, "note") if "are longer than" in e.data["text"]["msgid"]]
    share = round(100 * kept["train"] / facts["train"]["samples"])
    assert note["params"] == {"percent": str(share), "length": 8}


@pytest.mark.parametrize("samples", [33, 40])
def test_the_last_small_window_of_an_epoch_has_its_update_and_its_rate(tmp_path: Path, samples: int) -> None:
    """33 samples in windows of 8 are 5 updates an epoch, the last of one sample; the rate comes to nought with the last of all."""
    run = make_run(
        tmp_path,
        ["data.eval_share=0.2", f"data.train_limit={samples}", "train.warmup=0", "train.schedule=linear"],
    )
    assert train(run) == 0
    steps = [event.data for event in events(run, "step")]
    assert len(steps) == events(run, "run-started")[0].data["steps_total"] == 10
    assert sum(step["samples"] for step in steps) == 2 * samples
    rates = [step["lr"] for step in steps]
    assert (
        rates[0] == 1e-2
        and rates[-1] == pytest.approx(1e-3)
        and not any(step.get("skipped") for step in steps)
    )


def losses_and_norms(run: RunDir) -> list[tuple[float, float]]:
    return [(event.data["loss"], event.data["grad_norm"]) for event in events(run, "step")]


def test_activations_computed_again_have_the_dropout_of_the_first_time(tmp_path: Path) -> None:
    """With another dropout the second time the gradients would be those of no network at all."""
    common = ["model.dropout=0.3", "train.steps=4"]
    plain = make_run(tmp_path, common, "plain")
    again = make_run(tmp_path, [*common, "model.gradient_checkpointing=true"], "again")
    assert train(plain) == train(again) == 0
    assert losses_and_norms(again) == [pytest.approx(both, rel=1e-5) for both in losses_and_norms(plain)]


def test_ranks_draw_each_their_own_and_the_first_what_one_process_draws() -> None:
    import torch

    from runner.seed import seed_step

    def drawn(*place: int) -> list[float]:
        seed_step(7, *place)
        return torch.rand(4).tolist()

    assert drawn(3, 0) == drawn(3) == drawn(3)
    draws = [drawn(window, rank) for window in (3, 4) for rank in range(4)]
    assert all(one != other for place, one in enumerate(draws) for other in draws[:place])


def test_embeddings_have_a_row_for_the_highest_id_and_the_new_ones_are_named(tmp_path: Path) -> None:
    """A tokenizer whose vocabulary has a gap: fewer tokens than its highest id says, and one beyond the model's rows."""
    import transformers

    from runner.build import tokens_needed

    began = make_run(tmp_path, ["train.steps=1"], "began")
    assert train(began) == 0
    folder = tmp_path / "tokenizer"
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(began.final))
    tokenizer.save_pretrained(str(folder))
    content = json.loads((folder / "tokenizer.json").read_bytes())
    vocabulary, rows = content["model"]["vocab"], len(tokenizer)
    vocabulary["soup"] = rows + 5  # as often as any word of these texts
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert tokens_needed(transformers.AutoTokenizer.from_pretrained(str(folder))) == rows + 6
    changes = [
        "model.config={}", f"model.path={began.final}", f"model.tokenizer={folder}",
        "train.steps=4",
    ]  # fmt: skip
    run = make_run(tmp_path, changes)
    assert train(run) == 0
    (note,) = [e.data["text"] for e in events(run, "note") if "not pretrained" in e.data["text"]["msgid"]]
    assert f"bert.embeddings.word_embeddings.weight[{rows}:{rows + 6}]" in note["params"]["names"]
