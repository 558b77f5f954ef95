"""``doctor plan``, typed: what it says, in which order it helps, what it costs where, and what it does with bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor import service
from doctor.card_choice import card_rows, choice_of, largest_batch
from doctor.card_names import cards_called
from doctor.card_prices import BadPrice, parse_prices
from doctor.card_state import CardState
from doctor.memory_plan import plan_for
from doctor.model_config import NoConfig, config_of_profile, find_config, hub_cache, known_models
from runner.estimate import MemoryRequest, estimate
from runner.profile import ModelSection

ROOT = Path(__file__).parent.parent.parent
RTX_4090 = "tests/machines/healthy-4090-runpod.json"
BERT = {"model_type": "bert"}
GIB = 1 << 30


def doctor(*arguments: str, home: Path | None = None, lang: str = "en") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "DOCTOR_LANG": lang, "PYTHONUTF8": "1"}
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        environ.pop(name, None)
    if home:
        environ["HF_HOME"] = str(home)
    return subprocess.run(
        [sys.executable, "-m", "doctor", "plan", *arguments],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env=environ, check=False,
    )  # fmt: skip


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(
        **{"config": BERT, "batch_size": 32, "sequence_length": 512, "precision": "bf16", **changes}
    )


def card(total_gib: float, free_gib: float | None = None, capability: str = "8.9") -> CardState:
    free = total_gib if free_gib is None else free_gib
    return CardState(
        name="NVIDIA GeForce RTX 4090", total_bytes=int(total_gib * GIB), free_bytes=int(free * GIB), compute_capability=capability
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- the verdict
def test_a_run_that_fits_is_said_to_fit_and_exits_with_0() -> None:
    done = doctor("--model", "bert-base", "--batch", "16", "--seq", "128", "--facts", RTX_4090)
    assert done.returncode == 0, done.stderr
    assert "It fits." in done.stdout
    assert "Largest micro-batch at 128 tokens" in done.stdout


def test_a_run_that_does_not_fit_exits_with_1_and_says_what_to_turn_on() -> None:
    done = doctor("--model", "bert-large", "--batch", "64", "--precision", "fp32", "--optimizer", "adamw-foreach", "--facts", RTX_4090)  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.startswith("It does not fit as asked, but does with what is listed below.")
    assert done.stdout.index("bf16 autocast") < done.stdout.index("accumulated")


def test_free_memory_decides_and_not_the_cards_size() -> None:
    request = asked()
    needed = estimate(request)
    roomy = plan_for("m", "s", request, needed, card(24))
    held = plan_for("m", "s", request, needed, card(24, free_gib=4))
    assert (roomy.fits, held.fits) == (True, False)
    assert held.largest_batch is not None and roomy.largest_batch is not None
    assert held.largest_batch < roomy.largest_batch


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    request, budget = asked(), 10 * GIB
    batch = largest_batch(request, budget)
    assert (
        estimate(asked(batch_size=batch)).peak_bytes
        <= budget
        < estimate(asked(batch_size=batch + 1)).peak_bytes
    )


def test_remedies_build_on_each_other_until_it_fits_and_then_stop() -> None:
    request = asked(precision="fp32", optimizer="adamw-foreach", attention="eager", batch_size=64)
    plan = plan_for("m", "s", request, estimate(request), card(4))
    assert [one.fits for one in plan.remedies] == [False] * (len(plan.remedies) - 1) + [True]
    peaks = [estimate(request).peak_bytes, *(one.peak_bytes for one in plan.remedies)]
    assert all(
        one.saved_bytes == before - one.peak_bytes > 0
        for before, one in zip(peaks, plan.remedies, strict=False)
    )
    merged = asked(**{"precision": "fp32", "optimizer": "adamw-foreach", "attention": "eager", "batch_size": 64}
                   | {key: value for one in plan.remedies for key, value in one.changes.items()})  # fmt: skip
    assert estimate(merged).peak_bytes == plan.remedies[-1].peak_bytes <= 4 * GIB


def test_a_seven_billion_model_is_brought_onto_a_large_card_step_by_step() -> None:
    config = find_config("Qwen/Qwen2.5-7B", Path("/nowhere")).config
    request = asked(config=config, task="causal-lm", batch_size=8, sequence_length=1024)
    plan = plan_for("m", "s", request, estimate(request), card(24))
    assert plan.remedies[-1].fits
    merged = {key: value for one in plan.remedies for key, value in one.changes.items()}
    assert merged["lora_rank"] and merged["precision"] == "bf16-pure"
    assert "offload" not in merged  # adapters have next to no states


def test_an_accumulated_update_is_no_smaller_than_the_one_asked_for() -> None:
    request = asked(batch_size=100, precision="bf16")
    plan = plan_for("m", "s", request, estimate(request), card(12))
    change = next(one.changes for one in plan.remedies if "accumulation" in one.changes)
    assert int(change["batch_size"]) * int(change["accumulation"]) >= 100


@pytest.mark.parametrize(
    ("capability", "precision"),
    [pytest.param("8.6", "bf16", id="Ampere"), pytest.param("7.5", "fp16", id="Turing"), pytest.param("6.1", None, id="Pascal"), pytest.param("", None, id="unknown")],
)  # fmt: skip
def test_sixteen_bits_are_advised_as_the_card_has_them(capability: str, precision: str | None) -> None:
    request = asked(precision="fp32", batch_size=64)
    plan = plan_for("m", "s", request, estimate(request), card(12, capability=capability))
    assert (
        next((one.changes["precision"] for one in plan.remedies if "precision" in one.changes), None)
        == precision
    )


def test_without_a_card_nothing_is_said_to_fit() -> None:
    plan = plan_for("m", "s", asked(), estimate(asked()), None)
    assert (plan.fits, plan.largest_batch, plan.remedies) == (None, None, ())


# ---------------------------------------------------------------------------------------------- cards and prices
@pytest.mark.parametrize(
    ("name", "cards"),
    [
        pytest.param("RTX 4090", ["NVIDIA GeForce RTX 4090"], id="not the D"),
        pytest.param("A100 80GB", ["NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"], id="both forms"),
        pytest.param("T4", ["Tesla T4"], id="a short name"),
        pytest.param("RTX 9999", [], id="no such card"),
        pytest.param("RTX4090D", ["NVIDIA GeForce RTX 4090 D"], id="as AutoDL writes the D"),
        pytest.param("RTX3090", ["NVIDIA GeForce RTX 3090"], id="without a blank"),
        pytest.param("A100-80G", ["NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"], id="G for GB"),
        pytest.param("H20-NVLink", ["NVIDIA H20"], id="with its link"),
        pytest.param("RTX 4090-24GB", ["NVIDIA GeForce RTX 4090"], id="with the one size there is"),
        pytest.param("RTX 4090-48GB", ["NVIDIA GeForce RTX 4090 48GB"], id="with more memory soldered on"),
        pytest.param("RTX 3090-48GB", [], id="with a size that is not made"),
        pytest.param("vGPU-32GB", ["NVIDIA vGPU-32GB"], id="AutoDL's slice, which NVML calls so too"),
        pytest.param("vGPU-48GB-350W", ["NVIDIA vGPU-48GB"], id="with its watts"),
        pytest.param("4090", ["NVIDIA GeForce RTX 4090"], id="the number alone"),
        pytest.param("RTX 4090D / 24GB", ["NVIDIA GeForce RTX 4090 D"], id="as AutoDL's list has it"),
        pytest.param("H100 SXM", ["NVIDIA H100 80GB HBM3"], id="as RunPod writes the module"),
        pytest.param("A100 SXM4 80GB", ["NVIDIA A100-SXM4-80GB"], id="as vast.ai writes the module"),
        pytest.param("RTX 6000Ada", ["NVIDIA RTX 6000 Ada Generation"], id="as vast.ai writes Ada"),
        pytest.param(
            "RTX PRO 5000 72GB", ["NVIDIA RTX PRO 5000 72GB Blackwell"], id="a size with a row of its own"
        ),
        pytest.param("A800-SXM4-40GB", ["NVIDIA A800-SXM4-40GB"], id="not the one with 80 GB"),
    ],
)
def test_a_short_name_means_these_cards(name: str, cards: list[str]) -> None:
    assert cards_called(name) == cards


@pytest.mark.parametrize(
    ("text", "price", "sign"),
    [
        ("RTX 4090=2.1", 2.1, ""),
        ("RTX 4090=¥2.1", 2.1, "¥"),
        ("RTX 4090＝2.1元/时", 2.1, "¥"),
        ("RTX 4090=￥1.98/小时，A100 80GB=7.98元", 1.98, "¥"),
        ("RTX 4090=$0.44/h; H800=$2", 0.44, "$"),
        ("RTX 4090=0.44 USD/hour", 0.44, "$"),
        ("RTX 4090=2.1 CNY", 2.1, "¥"),
        ("RTX 4090=.5", 0.5, ""),
    ],
)
def test_a_price_may_have_its_currency_and_its_hour(text: str, price: float, sign: str) -> None:
    found = parse_prices(text)
    assert (found.by_card["NVIDIA GeForce RTX 4090"], found.currency) == (price, sign)


def chosen(prices: str, **changes: Any) -> Any:
    request = asked(**changes)
    rows = card_rows(request, 25_000, parse_prices(prices).by_card)
    return choice_of(rows, request.precision == "bf16-pure")


def test_what_to_rent_is_the_cheapest_epoch_and_not_the_cheapest_hour() -> None:
    found = chosen("RTX 3090=1.58,H800=3")
    assert (found.best.name, found.priced) == ("NVIDIA H800", 2)
    assert chosen("RTX 3090=1.58,H800=99").best.name == "NVIDIA GeForce RTX 3090"


def test_without_prices_the_smallest_that_surely_does_it_and_the_fastest_are_named() -> None:
    found = chosen("")
    assert found.priced == 0 and found.best.surely
    assert found.best.memory_bytes < found.fastest.memory_bytes


def test_weights_in_bf16_are_not_sent_to_a_card_without_it() -> None:
    assert chosen("V100-32GB=1,A40=9").best.name.startswith("Tesla V100")
    assert chosen("V100-32GB=1,A40=9", precision="bf16-pure").best.name == "NVIDIA A40"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_answer_comes_first_and_what_is_too_small_in_one_line(lang: str) -> None:
    done = doctor("--model", "llama-3.1-8b", "--lora", "16", "--batch", "1", "--seq", "2048", "--precision", "bf16-pure",
                  "--price", "RTX 3060=1,A800-80GB=5.98元", "--facts", RTX_4090, lang=lang)  # fmt: skip
    answer, table = done.stdout.index("¥"), done.stdout.index("samples/s" if lang == "en" else "样本/秒")
    assert answer < table
    assert "RTX 3060" in done.stdout[table:] and "RTX A2000" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_prices_give_the_cost_of_an_epoch_and_the_cheapest_comes_first() -> None:
    rows = card_rows(asked(), 25_000, parse_prices("RTX 4090=2.1,A100 80GB=7.5").by_card)
    priced = [row for row in rows if row.epoch_cost is not None]
    assert len(priced) == 3
    assert rows[: len(priced)] == sorted(priced, key=lambda row: row.epoch_cost or 0)
    first = priced[0]
    assert first.epoch_s is not None and first.price_per_hour is not None
    assert first.epoch_cost == pytest.approx(first.epoch_s / 3600 * first.price_per_hour)


def test_a_card_whose_rate_is_not_known_gets_no_time_and_fp32_none_at_all() -> None:
    rows = {row.name: row for row in card_rows(asked(), 1000, {})}
    assert rows["NVIDIA GB10"].epoch_s is None
    assert rows["NVIDIA GeForce RTX 4090"].epoch_s is not None
    assert all(row.epoch_s is None for row in card_rows(asked(precision="fp32"), 1000, {}))


def test_a_faster_card_is_faster_and_a_card_too_small_comes_last() -> None:
    rows = card_rows(
        asked(config={**BERT, "num_hidden_layers": 96, "hidden_size": 1536, "intermediate_size": 6144}),
        1000,
        {},
    )
    speed = {row.name: row.samples_per_s or 0 for row in rows}
    assert speed["NVIDIA H100 80GB HBM3"] > speed["NVIDIA A100-SXM4-80GB"] > speed["NVIDIA A10"]
    assert rows[-1].largest_batch == 0 and rows[0].largest_batch > 0


@pytest.mark.parametrize(
    "text",
    [
        "RTX 4090",
        "RTX 4090=cheap",
        "=3",
        "RTX 4090=-1",
        "RTX 4090=nan",
        "RTX 9999=2",
        "RTX 4090=2.1 pesos",
        "RTX 4090=¥2,H800=$3",
    ],
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadPrice):
        parse_prices(text)
    assert doctor("--model", "bert-base", "--facts", RTX_4090, "--price", text).returncode == 2


def test_the_table_of_all_cards_is_printed_with_its_assumptions() -> None:
    done = doctor("--model", "bert-base", "--gpus", "all", "--price", "RTX 4090=2.1", "--facts", RTX_4090)
    assert "  RTX 4090  " in done.stdout and "A100-SXM4-80GB" in done.stdout
    assert "roofline" in done.stdout


# ---------------------------------------------------------------------------------------------- configurations
def test_the_cache_is_preferred_to_the_table(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--google-bert--bert-base-uncased" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "bert", "hidden_size": 64}')
    cache = hub_cache({"HF_HOME": str(tmp_path)}, Path("/nowhere"))
    found = find_config("google-bert/bert-base-uncased", cache)
    assert (found.config["hidden_size"], found.source) == (64, str(folder / "config.json"))
    assert (
        find_config("google-bert/bert-base-uncased", tmp_path / "empty").source == "doctor/tables/models.toml"
    )


@pytest.mark.parametrize("name", known_models())
def test_every_model_of_the_table_can_be_counted(name: str) -> None:
    assert estimate(MemoryRequest(config=find_config(name, Path("/nowhere")).config)).parameters > 10_000_000


@pytest.mark.parametrize(
    "content", [pytest.param("", id="empty"), pytest.param("[1]", id="a list"), pytest.param('{"hidden_size": 3}', id="no model_type"), pytest.param("{", id="cut short")]
)  # fmt: skip
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(NoConfig):
        find_config(str(tmp_path), tmp_path)
    done = doctor("--model", str(tmp_path), "--facts", RTX_4090)
    assert (done.returncode, done.stdout) == (2, "")
    assert "config.json" in done.stderr


def test_a_profiles_own_configuration_has_the_profiles_vocabulary(tmp_path: Path) -> None:
    model = ModelSection(config={"model_type": "bert", "hidden_size": 32}, vocabulary_size=6000)
    assert config_of_profile(model, tmp_path, ()).config["vocab_size"] == 6000


def test_a_model_in_a_package_is_found_where_packages_lie(tmp_path: Path) -> None:
    folder = tmp_path / "site" / "pkg" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    model = ModelSection(package="pkg==1.0", folder="pkg/model")
    assert config_of_profile(model, tmp_path, [tmp_path / "site"]).config == BERT
    with pytest.raises(NoConfig, match=r"pkg==1\.0"):
        config_of_profile(model, tmp_path, [])


# ---------------------------------------------------------------------------------------------- before a run
PROFILE = """
[run]
name = "wide"
[model]
config = {{model_type = "bert", hidden_size = 2048, num_hidden_layers = {layers}, num_attention_heads = 32, intermediate_size = 8192}}
[data]
train = "train.csv"
[train]
batch_size = {batch}
max_length = 512
"""


@pytest.mark.parametrize(
    ("layers", "batch", "level"),
    [
        pytest.param(48, 64, "fail", id="far more than the card has"),
        pytest.param(2, 4, None, id="it fits"),
        pytest.param(31, 1, "warn", id="somewhat more than is free"),
    ],
)
def test_a_planned_run_is_held_against_the_card(
    tmp_path: Path, layers: int, batch: int, level: str | None
) -> None:
    (tmp_path / "wide.toml").write_text(PROFILE.format(layers=layers, batch=batch))
    (tmp_path / "train.csv").write_text("text,label\nyes,1\n")
    planned = service.plan_run(str(tmp_path / "wide.toml"), snapshot=service.load(ROOT / RTX_4090))
    found = [item.level for item in planned.report.findings() if item.id == "run-needs-more-vram"]
    assert found == ([level] if level else [])


def test_a_model_known_only_from_our_table_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    planned = service.plan_run("imdb-bert-base", snapshot=service.load(ROOT / RTX_4090))
    workload = planned.snapshot.facts.workload.value
    assert workload is not None and workload.memory_needed_bytes is None


# ---------------------------------------------------------------------------------------------- the command line
@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        pytest.param([], 2, "--model", id="neither profile nor model"),
        pytest.param(["quickstart", "--model", "bert-base"], 2, "--model", id="both"),
        pytest.param(["no-such-profile"], 2, "no-such-profile", id="no such profile"),
        pytest.param(["--model", "nobody/nothing"], 2, "config.json", id="no such model"),
        pytest.param(
            ["--model", "bert-base", "--gpus", "0"], 2, "--gpus", id="a number of cards that is none"
        ),
        pytest.param(["--model", "bert-base", "--batch", "0"], 2, "--batch", id="an empty batch"),
        pytest.param(
            ["imdb-bert-base", "--set", "train.lr=fast"], 2, "train.lr", id="a mistake in the profile"
        ),
    ],
)
def test_bad_input_is_one_sentence_on_stderr(
    tmp_path: Path, arguments: list[str], code: int, word: str
) -> None:
    done = doctor(*arguments, "--facts", RTX_4090, home=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert word in done.stderr and "Traceback" not in done.stderr


def test_an_architecture_that_is_not_known_could_not_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    done = doctor("--model", str(tmp_path), "--facts", RTX_4090)
    assert done.returncode == 3
    assert "--exact" in done.stderr


def test_json_holds_the_whole_plan(tmp_path: Path) -> None:
    done = doctor("imdb-bert-base", "--json", "--compare", "--facts", RTX_4090, home=tmp_path)
    tree = json.loads(done.stdout)
    assert tree["request"]["batch_size"] == 16 and tree["request"]["accumulation"] == 2
    assert sum(part["size_bytes"] for part in tree["estimate"]["parts"]) == tree["estimate"]["peak_bytes"]
    assert tree["card"]["name"] == "NVIDIA GeForce RTX 4090"
    assert tree["comparison"]["formula_bytes"] < tree["estimate"]["peak_bytes"] / 5


def test_the_tutorials_formula_is_shown_with_what_it_leaves_out() -> None:
    done = doctor("--model", "bert-base", "--compare", "--facts", RTX_4090)
    assert "batch x length x hidden x 8" in done.stdout
    assert "10.2 GB" in done.stdout and "22.1 GB" in done.stdout


def test_the_plan_is_said_in_chinese() -> None:
    done = doctor("--model", "bert-base", "--batch", "8", "--facts", RTX_4090, lang="zh")
    assert done.returncode == 0
    assert "激活" in done.stdout and "放得下" in done.stdout
