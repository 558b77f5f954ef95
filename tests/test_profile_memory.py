"""What a profile says, in memory: each setting moves the figure the right way, and what is advised does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from doctor import service
from doctor.card_state import CardState
from doctor.model import Host, Reading, Snapshot
from doctor.model_step import Step
from doctor.plan_options import PlanOptions
from doctor.planning import plan_memory
from doctor.profile_step import step_of_profile
from doctor.remedies import remedies
from runner.estimate import MemoryEstimate, estimate
from runner.plan import MachineFacts, make_plan
from runner.profile import load_profile
from runner.step_request import worst_shape

ROOT = Path(__file__).parent.parent
GIB = 1 << 30
PROFILE = """
[run]
name = "p"
[model]
task = "causal-lm"
vocabulary_size = 32000
config = {{model_type = "llama", hidden_size = {width}, num_hidden_layers = {layers}, num_attention_heads = 16, num_key_value_heads = 4, intermediate_size = {inner}, tie_word_embeddings = false}}
[data]
train = "t.txt"
[train]
batch_size = 32
max_length = 1024
"""
RTX_4090 = service.load(ROOT / "tests/machines/healthy-4090-runpod.json")


def eight_h100() -> Snapshot:
    """The recorded machine with eight cards of 80 GB in place of its one."""
    gpus = RTX_4090.facts.gpus
    assert gpus.value is not None
    (card,) = gpus.value.items
    changes = {"name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 80 * GIB, "memory_free_bytes": 79 * GIB}
    items = tuple(replace(card, index=index, uuid=f"GPU-{index}", **changes) for index in range(8))
    facts = replace(RTX_4090.facts, gpus=replace(gpus, value=replace(gpus.value, items=items)))
    return replace(RTX_4090, facts=facts)


EIGHT_H100 = eight_h100()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return written(tmp_path, width=1024, layers=16, inner=2816)


def written(folder: Path, **sizes: int) -> Path:
    path = folder / "p.toml"
    path.write_text(PROFILE.format(**sizes))
    return path


def step(
    profile: Path, *overrides: str, cards: int = 1, snapshot: Any = RTX_4090, on_cpu: bool = False
) -> Step:
    return step_of_profile(str(profile), overrides, snapshot, on_cpu, cards)


def told(profile: Path, *overrides: str, **how: Any) -> MemoryEstimate:
    return estimate(step(profile, *overrides, **how).request)


TINY = ("train.max_length=16", "train.micro_batch_size=1")
"""The states of the model are what counts then."""
LAYERS_STILL = 'train.freeze=[{ parameters = "model.embed_tokens.*" }, { parameters = "model.layers.?.*" }]'


@pytest.mark.parametrize(
    ("less", "than"),
    [
        (["train.micro_batch_tokens=4096"], []),
        (["train.micro_batch_tokens=2048"], ["train.micro_batch_tokens=4096"]),
        (["train.micro_batch_size=4"], []),
        (["train.max_length=512"], []),
        (["train.precision=bf16"], ["train.precision=fp32"]),
        (["train.fused=true", *TINY], ["train.fused=false", *TINY]),
        (["model.gradient_checkpointing=true"], []),
        (["train.offload=optimizer"], []),
        (["train.offload=parameters"], ["train.offload=optimizer"]),
        (["train.offload=parameters"], ["model.gradient_checkpointing=true"]),
        (["model.lora={rank=8}"], []),
        (["model.lora={rank=8}"], ["model.lora={rank=64}"]),
        (["model.lora={rank=8}"], ['model.lora={rank=8, targets=["all-linear"]}']),
        (["model.lora={rank=8}"], ["model.lora={rank=8, dropout=0.1}"]),
        ([LAYERS_STILL], []),
        ([LAYERS_STILL], ['train.freeze=[{ parameters = "model.embed_tokens.*" }]']),
        (['train.freeze=[{ parameters = "model.embed_tokens.*" }]', "train.micro_batch_tokens=1024"], ["train.micro_batch_tokens=1024"]),
    ],
    ids=lambda one: " ".join(one) or "as it stands",
)  # fmt: skip
def test_a_setting_takes_less_than_what_it_is_set_against(
    profile: Path, less: list[str], than: list[str]
) -> None:
    assert told(profile, *less).allocated_bytes < told(profile, *than).allocated_bytes


@pytest.mark.parametrize(
    "same",
    [
        ["train.packing=true"],
        ["train.bucketing=false"],
        ["train.pad_to=max_length"],
        ["train.lr=1e-3"],
        ['train.freeze=[{ parameters = "model.embed_tokens.*", until = 100 }]'],
        ['train.freeze=[{ parameters = "model.*" }, { parameters = "model.*", until = 5 }]'],
        ['train.freeze=[{ parameters = "no.such.*" }]'],
    ],
    ids=" ".join,
)
def test_what_changes_no_shape_changes_no_figure(profile: Path, same: list[str]) -> None:
    """Packed rows are as long as the longest sample; what moves some day has its states then."""
    assert told(profile, *same) == told(profile)


@pytest.mark.parametrize(
    ("tokens", "micro", "worst"),
    [
        (4096, 32, (4, 1024)),
        (4095, 32, (4, 1016)),  # three whole samples are 3072 positions, four somewhat shorter ones 4064
        (512, 32, (1, 1024)),  # a single sample that is longer has a micro-batch to itself
        (99999, 8, (8, 1024)),
        (3000, 2, (2, 1024)),
    ],
)
def test_the_largest_micro_batch_that_a_limit_on_tokens_lets_through(
    profile: Path, tokens: int, micro: int, worst: tuple[int, int]
) -> None:
    changes = (f"train.micro_batch_tokens={tokens}", f"train.micro_batch_size={micro}")
    plan = make_plan(load_profile(profile, changes), MachineFacts(device="cuda"), "")
    assert worst_shape(plan) == worst


def test_offloading_moves_to_the_host_what_it_takes_off_the_card(profile: Path) -> None:
    alone, states = told(profile, "train.micro_batch_tokens=1024"), told(profile, "train.micro_batch_tokens=1024", "train.offload=optimizer")  # fmt: skip
    taken_off = alone.phases["optimizer"] - states.phases["optimizer"]
    assert taken_off == 8 * alone.parameters
    assert states.host_bytes == 16 * alone.parameters
    assert alone.host_bytes == 0


def test_layers_spread_over_cards_take_a_share_of_each(profile: Path) -> None:
    whole = told(profile, *TINY, snapshot=EIGHT_H100).allocated_bytes
    spread = told(profile, *TINY, "model.device_map=auto", snapshot=EIGHT_H100).allocated_bytes
    assert whole / 8 < spread < whole / 3


# ------------------------------------------------------------------------------------------ several processes
SMALL, LARGE = {"width": 1024, "layers": 16, "inner": 2816}, {"width": 4096, "layers": 32, "inner": 14336}


@pytest.mark.parametrize(
    ("sizes", "overrides", "sharding", "word"),
    [
        pytest.param(SMALL, [], "ddp", "fits", id="auto and a small model"),
        pytest.param(LARGE, [], "zero3", "cut into {count} parts", id="auto and one that fits no card"),
        pytest.param(SMALL, ["parallel.strategy=fsdp"], "zero3", "asked for", id="fsdp by name"),
        pytest.param(LARGE, ["parallel.strategy=ddp"], "ddp", "asked for", id="ddp by name"),
    ],
)
def test_the_strategy_of_several_processes_is_the_trainers_and_is_said(
    tmp_path: Path, sizes: dict[str, int], overrides: list[str], sharding: str, word: str
) -> None:
    found = step(written(tmp_path, **sizes), *overrides, cards=8, snapshot=EIGHT_H100)
    assert (found.request.cards, found.request.sharding, found.request.batch_size) == (8, sharding, 4)
    assert any(word in note.msgid for note in found.notes)


def test_a_planned_run_in_several_processes_is_judged_by_what_each_of_them_takes(tmp_path: Path) -> None:
    """Alone it is far too large for any card; cut into eight parts it fits, and nothing holds its start back."""
    path = written(tmp_path, **LARGE)
    (tmp_path / "t.txt").write_text("a\tb\n")
    alone = service.plan_run(str(path), snapshot=EIGHT_H100)
    together = service.share_run(alone, 8)
    assert [one.level for one in alone.report.findings() if one.id == "run-needs-more-vram"] == ["fail"]
    assert not [one for one in together.report.findings() if one.id == "run-needs-more-vram"]
    assert any("cut into" in note.msgid for note in together.notes)


def test_ddp_of_the_trainer_keeps_gradients_once_in_its_buckets(profile: Path) -> None:
    alone, both = (
        told(profile, "train.micro_batch_size=1", cards=cards).phases["optimizer"] for cards in (1, 2)
    )
    assert both == alone


# ------------------------------------------------------------------------------------------ what is advised
def card(gib: float, name: str = "NVIDIA GeForce RTX 4090") -> CardState:
    return CardState(name=name, total_bytes=int(gib * GIB), free_bytes=int(gib * GIB), compute_capability="8.9")  # fmt: skip


SCENES = [
    pytest.param(SMALL, [], 24, None, id="the batch is too large"),
    pytest.param(SMALL, ["train.precision=fp32", "model.attention=eager"], 12, None, id="fp32 and eager"),
    pytest.param(SMALL, [], 5, None, id="states too large with any batch"),
    pytest.param(SMALL, [], 3, None, id="weights too large"),
    pytest.param(LARGE, [], 24, None, id="8 B and a large host"),
    pytest.param(LARGE, [], 24, 64, id="8 B and a host without room for it"),
    pytest.param(SMALL, ["model.lora={rank=8}"], 6, None, id="adapters already"),
]


@pytest.mark.parametrize(("sizes", "overrides", "gib", "host_gib"), SCENES)
def test_each_setting_that_is_advised_gives_the_peak_that_is_foretold_for_it(
    tmp_path: Path, sizes: dict[str, int], overrides: list[str], gib: float, host_gib: int | None
) -> None:
    """Turned on in the profile one after another, and planned anew each time."""
    path = written(tmp_path, **sizes)
    host = host_gib * GIB if host_gib else None
    settings, before = [*overrides], told(path, *overrides).peak_bytes
    found = list(remedies(step(path, *overrides).request, card(gib), 1.0, host, by_profile=True))
    assert found
    for remedy in found:
        settings.append(remedy.setting)
        now = told(path, *settings)
        assert now.peak_bytes == remedy.peak_bytes, remedy.setting
        assert before - now.peak_bytes == remedy.saved_bytes > 0
        assert host is None or now.host_bytes <= host
        before = now.peak_bytes


def test_what_keeps_the_training_comes_before_what_makes_it_another(tmp_path: Path) -> None:
    """A host with room: parameters lie there, slowly; without: adapters, which are another training."""
    request = step(written(tmp_path, **LARGE)).request
    roomy = [one.setting for one in remedies(request, card(24), 1.0, 256 * GIB, by_profile=True)]
    short = [one.setting for one in remedies(request, card(24), 1.0, 32 * GIB, by_profile=True)]
    assert roomy[-1] == "train.offload=parameters" and not any("lora" in one for one in roomy)
    assert any("lora" in one for one in short) and not any("offload" in one for one in short)


def test_offloading_costs_time_by_the_roofline(tmp_path: Path) -> None:
    request = replace(step(written(tmp_path, **LARGE)).request, batch_size=1, accumulation=32)
    last = list(remedies(request, card(24), 1.0, 256 * GIB, by_profile=True))[-1]
    assert last.time_factor is not None and last.time_factor > 1.2


def test_a_host_without_room_for_what_is_offloaded_is_no_fit(profile: Path) -> None:
    found = step(profile, "train.offload=optimizer", "train.micro_batch_tokens=1024")
    host = Reading(status="ok", value=Host(memory_total_bytes=2 * GIB, memory_available_bytes=GIB))
    snapshot = replace(RTX_4090, facts=replace(RTX_4090.facts, host=host))
    plan = plan_memory(found.found, found.request, snapshot, PlanOptions(recorded=True), {})
    assert plan.host_is_short and plan.fits is False
