"""Of a model that is cut into parts rank 0 alone builds the whole: the others have the same model without weights, and get their parts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers

from runner.build import build_model
from runner.data import Prepared
from runner.plan import Plan, decode_plan
from runner.prepare import prepare_data
from runner.rank_env import RankPlace
from runner.ranks import Ranks
from runner.rundir import RunDir
from runner.sharded import sharded
from runner.signals import StopRequest
from runner.together_data import built_together
from runner.weightless import layout_of, take_weights_out
from tests.parallel.together import FORKS, free_port, overrides, train_ranks
from tests.runner.tiny import make_run, outcome, train

pytestmark = pytest.mark.train

FSDP = 'parallel.strategy="fsdp"'
SMALL = "hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 2, intermediate_size = 64, max_position_embeddings = 64"
LORA = "model.lora={rank=4, alpha=8, merge=true}"


def config(kind: str, sizes: str = SMALL) -> str:
    return f'model.config={{ model_type = "{kind}", {sizes} }}'


MODELS: dict[str, list[str]] = {
    "BERT, classes": [],
    "BERT, tied head": ['model.task="masked-lm"'],
    "BERT, adapters": [LORA],
    "BERT, frozen and recomputed": ['train.freeze=[{ parameters = "bert.*" }]', "model.gradient_checkpointing=true"],
    "RoBERTa, positions in a buffer": [config("roberta")],
    "ALBERT, one layer used for all": [config("albert", f"embedding_size = 16, {SMALL}")],
    "DistilBERT": [config("distilbert", "dim = 32, hidden_dim = 64, n_layers = 2, n_heads = 2, max_position_embeddings = 64")],
    "DeBERTa, relative positions": [config("deberta-v2", f"relative_attention = true, pos_att_type = ['p2c', 'c2p'], {SMALL}")],
    "ModernBERT, frequencies": [config("modernbert", f"global_attn_every_n_layers = 2, local_attention = 16, {SMALL}")],
    "GPT-2, tied head": ['model.task="causal-lm"', config("gpt2", "n_embd = 32, n_layer = 2, n_head = 2, n_positions = 64")],
    "Llama, frequencies": ['model.task="causal-lm"', config("llama", f"num_key_value_heads = 1, {SMALL}")],
    "Qwen2, tied head, adapters": [
        'model.task="causal-lm"', config("qwen2", f"num_key_value_heads = 1, tie_word_embeddings = true, {SMALL}"), LORA],
}  # fmt: skip


def prepared(folder: Path, settings: list[str]) -> tuple[Plan, Prepared]:
    run = make_run(folder, settings)
    plan = decode_plan(run.plan.read_bytes())
    return plan, prepare_data(plan, run, lambda *_: None, StopRequest())


def assert_same_but_for_weights(plan: Plan, data: Prepared) -> None:
    whole, _ = build_model(plan, data.task, data.tokenizer)
    weightless, _ = build_model(plan, data.task, data.tokenizer, weightless=True)
    assert layout_of(weightless) == layout_of(whole)
    assert {one.device.type for one in weightless.parameters()} == {"meta"}
    for (name, one), (_, other) in zip(whole.named_buffers(), weightless.named_buffers(), strict=True):
        assert torch.equal(one, other), name


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS.keys())
def test_a_model_without_weights_is_the_model_in_all_else(tmp_path: Path, settings: list[str]) -> None:
    if LORA in settings:
        pytest.importorskip("peft", reason="peft is not installed")
    assert_same_but_for_weights(*prepared(tmp_path, settings))


def test_so_it_is_where_its_embeddings_grow_for_the_tokenizer(tmp_path: Path) -> None:
    _, data = prepared(tmp_path, [])
    small = transformers.BertConfig(vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                    intermediate_size=64, max_position_embeddings=64)  # fmt: skip
    transformers.BertForMaskedLM(small).save_pretrained(tmp_path / "pretrained")
    data.tokenizer.save_pretrained(tmp_path / "pretrained")
    settings = ["model.config={}", f'model.path="{tmp_path / "pretrained"}"']
    for task in ("classification", "masked-lm"):
        plan, again = prepared(tmp_path / task, [*settings, f'model.task="{task}"'])
        assert len(again.tokenizer) > 20
        assert_same_but_for_weights(plan, again)


def test_taking_weights_out_keeps_what_is_one(tmp_path: Path) -> None:
    plan, data = prepared(tmp_path, ['model.task="masked-lm"'])
    model: Any = build_model(plan, data.task, data.tokenizer)[0]
    before, wanted = layout_of(model), model.get_input_embeddings().weight.detach().clone()
    held = take_weights_out(model)
    assert layout_of(model) == before
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert torch.equal(held["bert.embeddings.word_embeddings.weight"], wanted)


FROZEN: dict[str, tuple[str, list[str]]] = {
    "BERT": ("bert.", []),
    "ModernBERT": ("model.", [config("modernbert", f"global_attn_every_n_layers = 2, local_attention = 16, {SMALL}")]),
}  # fmt: skip


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("trunk", "settings"), FROZEN.values(), ids=FROZEN.keys())
def test_each_rank_begins_with_the_bits_of_rank_0(
    tmp_path: Path, trunk: str, settings: list[str], size: int
) -> None:
    """What no update moves is, put together from all ranks at the end, what one process built."""
    frozen = [*settings, f'train.freeze=[{{ parameters = "{trunk}*" }}]', "train.steps=3", FSDP]
    runs = [make_run(tmp_path, overrides(*frozen), name) for name in ("one", "several")]
    assert train(runs[0]) == 0
    assert train_ranks(runs[1], size) == [0] * size, outcome(runs[1])
    one, several = (safetensors.torch.load_file(run.final / "model.safetensors") for run in runs)
    still = [name for name in one if name.startswith(trunk)]
    assert len(still) > 10 and all(torch.equal(one[name], several[name]) for name in still)
    assert all(torch.allclose(one[name], several[name], rtol=0, atol=1e-6) for name in one)


def _peak_of(run: RunDir, place: RankPlace, port: int) -> None:
    """Build the run's model as one of its ranks, and write down by how much the process grew meanwhile at most."""
    os.environ |= {"RANK": str(place.rank), "WORLD_SIZE": str(place.size), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
    plan = decode_plan(run.plan.read_bytes())
    data = prepare_data(plan, run, lambda *_: None, StopRequest())
    ranks = Ranks(place)
    Path("/proc/self/clear_refs").write_text("5")  # man 5 proc: the peak begins again from here
    before = resident_bytes("VmRSS")
    built = built_together(plan, data, ranks, StopRequest(), lambda *_: None)
    sharded(built.model, torch.device("cpu"), ranks, plan)
    (run.path / f"peak-{place.rank}").write_text(str(resident_bytes("VmHWM") - before))
    ranks.leave()


def resident_bytes(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) << 10


def test_no_rank_but_the_first_ever_holds_the_model_whole(tmp_path: Path) -> None:
    """Of 340 MB cut in two, building takes rank 1 less than the model once."""
    big = config("bert", "hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12, intermediate_size = 3072, "
                         "max_position_embeddings = 64")  # fmt: skip
    run = make_run(tmp_path, [FSDP, big])
    prepare_data(decode_plan(run.plan.read_bytes()), run, lambda *_: None, StopRequest())
    port = free_port()
    both = [
        FORKS.Process(target=_peak_of, args=(run, RankPlace(rank=rank, size=2, local_rank=rank, local_size=2), port))
        for rank in range(2)
    ]  # fmt: skip
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    first, other = (int((run.path / f"peak-{rank}").read_text()) for rank in range(2))
    whole_bytes = 4 * 85_000_000
    assert other < 0.85 * whole_bytes
    assert first > whole_bytes, "somebody has to read it"
