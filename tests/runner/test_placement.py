"""A model that lies elsewhere learns the same: on the host, on disk, spread over several places; and what cannot be is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.plan import MachineFacts, make_plan
from runner.profile import ProfileError, load_profile
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import PROFILE, events, final_hash, last_losses, make_run, outcome, train

SPREAD = 'model.device_map={"bert.embeddings"="cpu", "bert.encoder"="disk", "bert.pooler"="cpu", "dropout"="cpu", "classifier"="cpu"}'
FROZEN_TRUNK = 'train.freeze=[{parameters="bert.embeddings.*"}, {parameters="bert.encoder.*"}]'
SHORT = ["train.steps=8", "train.evaluate_every=end"]

EQUAL = {
    "AdamW's state on the host": (["train.offload=optimizer"], []),
    "that with bf16": (["train.offload=optimizer", "train.precision=bf16"], ["train.precision=bf16"]),
    "that with a part frozen for a while": (
        ["train.offload=optimizer", 'train.freeze=[{parameters="bert.embeddings.*", until=4}]'],
        ['train.freeze=[{parameters="bert.embeddings.*", until=4}]'],
    ),
    "parameters on the host": (["train.offload=parameters"], []),
    "a frozen trunk on disk": ([SPREAD, FROZEN_TRUNK], [FROZEN_TRUNK]),
    "spread by accelerate": (["model.device_map=auto"], []),
}


@pytest.mark.train
@pytest.mark.parametrize(("elsewhere", "here"), EQUAL.values(), ids=EQUAL.keys())
def test_the_losses_are_those_of_a_model_in_one_place(
    tmp_path: Path, elsewhere: list[str], here: list[str]
) -> None:
    moved = make_run(tmp_path, [*SHORT, *elsewhere], "moved")
    plain = make_run(tmp_path, [*SHORT, *here], "plain")
    assert train(moved) == train(plain) == 0, outcome(moved)
    assert last_losses(moved) == last_losses(plain)
    assert final_hash(moved) == final_hash(plain)


@pytest.mark.train
@pytest.mark.parametrize(
    "overrides",
    [["train.offload=optimizer"], ["train.offload=parameters"], [SPREAD, FROZEN_TRUNK]],
    ids=["state on the host", "parameters on the host", "trunk on disk"],
)
def test_stopped_and_resumed_equals_never_stopped(tmp_path: Path, overrides: list[str]) -> None:
    whole, parts = (make_run(tmp_path, [*SHORT, *overrides], name) for name in ("whole", "parts"))
    assert train(whole) == 0
    assert train(parts, stop=StopAfter(8)) == 143
    assert train(parts, resume=True) == 0, outcome(parts)
    assert final_hash(parts) == final_hash(whole) and last_losses(parts) == last_losses(whole)


@pytest.mark.train
def test_a_spread_model_says_where_it_lies_and_opens_at_the_end(tmp_path: Path) -> None:
    import safetensors.torch
    import transformers

    run = make_run(tmp_path, [*SHORT, SPREAD, FROZEN_TRUNK])
    assert train(run) == 0
    said = [
        event.data["text"]["params"].get("places")
        for event in events(run, "note")
        if "spread" in event.data["text"]["msgid"]
    ]
    assert said == ["cpu: 4, disk: 1"]
    assert list((run.path / "offload").iterdir()), "the encoder lies in a folder"
    saved = safetensors.torch.load_file(run.checkpoint(8) / "model.safetensors")
    assert not [name for name in saved if "encoder" in name], "what stands still is in no checkpoint"
    opened = transformers.AutoModelForSequenceClassification.from_pretrained(str(run.final))
    assert not any(parameter.is_meta for parameter in opened.parameters())


@pytest.mark.train
def test_what_is_to_be_trained_may_not_lie_where_it_is_only_fetched_from(tmp_path: Path) -> None:
    run = make_run(tmp_path, [*SHORT, SPREAD])
    assert train(run) == 1
    error = str(outcome(run)["error"])
    assert "train.freeze" in error and "bert.encoder" in error and not events(run, "step")


@pytest.mark.train
@pytest.mark.parametrize(
    "config",
    [
        {
            "model_type": "bert",
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 16,
        },
        {"model_type": "distilbert", "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16},
        {"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2},
    ],
    ids=lambda config: str(config["model_type"]),
)
def test_streamed_modules_work_on_their_copies_alone(config: dict[str, Any]) -> None:
    """torch's meta device stands in for a card: an operation that met a parameter left on the host would raise."""
    import torch
    import transformers

    from runner.offload import stream_parameters

    kind = dict(config)
    made = transformers.AutoConfig.for_model(kind.pop("model_type"), **kind)
    model = transformers.AutoModel.from_config(made, attn_implementation="eager")
    stream_parameters(model, torch.device("meta"))
    ids = torch.ones((2, 8), dtype=torch.int64, device="meta")
    hidden = model(input_ids=ids).last_hidden_state
    assert hidden.is_meta and hidden.requires_grad
    assert all(not p.is_meta and isinstance(p, torch.nn.Parameter) for p in model.parameters()), "put back"


@pytest.mark.train
def test_gradients_of_streamed_modules_arrive_at_the_host() -> None:
    import torch

    from runner.offload import stream_parameters

    def built() -> Any:
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    streamed, plain = built(), built()
    stream_parameters(streamed, torch.device("cpu"))
    for model in (streamed, plain):
        model(torch.ones(2, 3)).sum().backward()
    for one, other in zip(streamed.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


@pytest.mark.train
def test_what_a_recomputing_block_holds_itself_stays_on_the_device() -> None:
    import torch

    from runner.offload import stream_parameters

    class GradientCheckpointingLayer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.inner = torch.nn.Parameter(torch.ones(3)), torch.nn.Linear(3, 3)

    block = GradientCheckpointingLayer()
    stream_parameters(block, torch.device("cpu"))
    assert "forward" not in vars(block) and "forward" in vars(block.inner)


CROSSED = {
    "offload and device_map": ["train.offload=optimizer", "model.device_map=auto"],
    "offload and fp16": ["train.offload=parameters", "train.precision=fp16"],
    "offloaded parameters and compile": ["train.offload=parameters", "train.compile=true"],
    "device_map and compile": ["model.device_map=auto", "train.compile=true"],
    "max_memory alone": ['model.max_memory={cpu="1GiB"}'],
    "a map of no known kind": ["model.device_map=everywhere"],
}


@pytest.mark.parametrize("overrides", CROSSED.values(), ids=CROSSED.keys())
def test_what_does_not_go_together_is_refused_by_its_key(tmp_path: Path, overrides: list[str]) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(PROFILE)
    with pytest.raises(ProfileError) as refused:
        load_profile(path, overrides)
    (problem,) = refused.value.problems
    assert str(problem).startswith(("train.", "model.")) and "(--set)" in str(problem)


def decided(tmp_path: Path, overrides: list[str], **machine: Any) -> dict[str, Any]:
    path = tmp_path / "tiny.toml"
    path.write_text(PROFILE.replace('precision = "fp32"\n', ""))
    facts = MachineFacts(torch_version="2.13.0", gpu_count=2, gpu_name="card", **machine)
    plan = make_plan(load_profile(path, overrides), facts, "now")
    return {decision.name: (decision.value, str(decision.why)) for decision in plan.decisions}


def test_the_plan_says_where_things_lie_and_why(tmp_path: Path) -> None:
    on_host = decided(tmp_path, ["train.offload=optimizer"], device="cuda", compute_capability="8.9")
    assert "host's memory" in on_host["train.offload"][1]
    assert on_host["train.fused"][0] is True and "CPU" in on_host["train.fused"][1]
    spread = decided(tmp_path, ["model.device_map=auto"], device="cuda", compute_capability="8.9")
    assert spread["model.device_map"][0] == "auto" and "2 GPUs" in spread["device"][1]
    assert "train.offload" not in spread


def test_a_card_that_would_take_fp16_takes_fp32_where_the_state_lies_on_the_host(tmp_path: Path) -> None:
    turing = decided(tmp_path, ["train.offload=optimizer"], device="cuda", compute_capability="7.5")
    assert turing["train.precision"][0] == "fp32" and "loss scaler" in turing["train.precision"][1]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("bert.encoder.layer.1.w", "disk"),
        ("bert.encoder.layer.10.w", "cpu"),
        ("classifier.weight", 0),
        ("x", ""),
    ],
)
@pytest.mark.train
def test_a_parameter_lies_where_the_longest_name_above_it_does(name: str, place: str | int) -> None:
    from runner.placement import place_of

    places: dict[str, str | int] = {"bert": "cpu", "bert.encoder.layer.1": "disk", "classifier": 0}
    assert place_of(name, places) == place
