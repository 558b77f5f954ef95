"""The first lines of ``doctor plan`` answer what was asked: on this card, on a named one, on which card at all, on this CPU."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from doctor.card_sizes import sizes_for
from doctor.commands import main
from doctor.language import use_language
from doctor.model_step import default_task
from doctor.named_card import UnknownCard, named_card, not_in_table
from doctor.plan_device import default_precision
from runner.estimate import MemoryRequest, estimate
from tests.commands.test_plan_command import ROOT, RTX_4090

GIB = 1 << 30
UNREAD = "tests/machines/hung-driver.json"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def doctor(*arguments: str, lang: str = "en") -> Done:
    """Run ``doctor plan`` in this process, and leave it in English."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["--lang", lang, "plan", *arguments])
    finally:
        use_language("en")
    for stream in (out, err):
        stream.seek(0)
    return Done(code, out.read(), err.read())


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the checkout, and with no models downloaded."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def no_card(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A machine without a card, and with 32 GB of memory."""
    machine = json.loads((ROOT / "tests/machines/cpu-box-cpu-wheel.json").read_text())
    host = {"memory_total_bytes": 32 * GIB, "memory_available_bytes": 30 * GIB}
    machine["facts"]["host"] = {"status": "ok", "value": host}
    path = tmp_path_factory.mktemp("machine") / "no-card.json"
    path.write_text(json.dumps(machine))
    return str(path)


def first_lines(*arguments: str, facts: str, lang: str = "en", code: int = 0) -> list[str]:
    """Return what stands before the first empty line, a sentence an entry."""
    done = doctor(*arguments, "--facts", facts, lang=lang)
    assert done.returncode == code, done.stderr + done.stdout
    answer = done.stdout.partition("\n\n")[0]
    return answer.replace("\n  ", " ").splitlines()


# ---------------------------------------------------------------------------------------------- what is said first
@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        pytest.param(["--batch", "8", "--seq", "128"], "It fits. Peak: ", id="the card here"),
        pytest.param(["--batch", "8", "--gpu", "RTX 3060"], "It fits. Peak: ", id="a named card"),
        pytest.param(["--batch", "8", "--gpus", "RTX 3060"], "It fits. Peak: ", id="a card where a number is expected"),
        pytest.param(["--batch", "8", "--gpus", "all"], "The smallest card that does it is the ", id="every card"),
        pytest.param(["--batch", "8", "--price", "RTX 4090=2,L20=3"], "Rent the ", id="cards with a price"),
        pytest.param(["--seq", "4096", "--batch", "1"], "It cannot run as asked: the model has positions for 512 tokens", id="longer than the model takes"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_answer(arguments: list[str], start: str) -> None:
    code = 1 if "cannot" in start else 0
    assert first_lines("--model", "bert-base", *arguments, facts=RTX_4090, code=code)[0].startswith(start)


def test_a_named_card_is_held_against_and_not_the_one_here() -> None:
    here, named = (
        first_lines("--model", "bert-large", *gpu, facts=RTX_4090) for gpu in ([], ["--gpu", "L40S"])
    )
    assert "L40S" in named[0] and "RTX 4090" in here[0]
    done = doctor("--model", "bert-large", "--gpu", "RTX A2000", "--facts", RTX_4090)
    assert done.returncode == 1 and done.stdout.startswith("It does not fit as asked, but does")
    assert "To make it fit" in done.stdout and "driver" not in done.stdout


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "It fits a card with 12 GB or more (RTX 3080 Ti, RTX 3060"),
        ("zh", "12 GB 及以上的卡放得下（RTX 3080 Ti, RTX 3060"),
    ],
)
def test_without_a_card_the_size_of_card_comes_first_and_then_the_cpu_here(
    no_card: str, lang: str, words: str
) -> None:
    lines = first_lines("--model", "bert-base", lang=lang, facts=no_card)
    assert lines[0].startswith(words)
    assert len(lines) == 2 and "CPU" in lines[1] and "30.0 GB" in lines[1]
    assert "CUDA" not in "".join(lines)


def test_cards_that_could_not_be_read_are_not_taken_for_none() -> None:
    lines = first_lines("--model", "bert-base", facts=UNREAD)
    assert len(lines) == 1 and "no NVIDIA card" not in lines[0]


def test_on_the_cpu_alone_no_card_is_spoken_of(no_card: str) -> None:
    done = doctor("--model", "bert-base", "--batch", "4", "--seq", "128", "--cpu", "--facts", no_card)
    assert "card" not in done.stdout and "CUDA" not in done.stdout
    assert done.stdout.startswith("It fits. Peak: ")


def test_json_tells_sizes_the_cpu_and_what_stands_in_the_way(no_card: str) -> None:
    tree = json.loads(doctor("--model", "bert-base", "--json", "--facts", no_card).stdout)
    assert tree["card"] is None and tree["card_sizes"]["surely"]["memory_gb"] >= 12
    assert tree["on_cpu_here"]["request"]["device"] == "cpu" and tree["on_cpu_here"]["card"]["name"] == "CPU"
    long = json.loads(doctor("--model", "bert-base", "--seq", "600", "--json", "--facts", RTX_4090).stdout)
    assert long["obstacle"]["params"] == {"limit": 512, "length": 600}


def test_several_cards_are_each_as_large(no_card: str) -> None:
    each = first_lines("--model", "bert-base", "--gpus", "8", facts=no_card)[0]
    assert each.startswith("Each of the 8 cards must have ")
    named = first_lines("--model", "bert-base", "--gpus", "8xA100-SXM4-80GB", facts=no_card)[0]
    assert "of its memory A100-SXM4-80GB leaves" in named
    tree = json.loads(doctor("--model", "bert-base", "--gpus", "2*4090", "--json", "--facts", no_card).stdout)
    assert (tree["card"]["name"], tree["request"]["cards"]) == ("NVIDIA GeForce RTX 4090", 2)


def test_the_smallest_card_to_rent_is_one_that_is_rented() -> None:
    line = first_lines("--model", "bert-base", "--gpus", "all", facts=RTX_4090)[0]
    assert line.startswith("The smallest card that does it is the RTX 3080 Ti ")


def test_what_has_nothing_to_share_out_is_said() -> None:
    done = doctor("--model", "bert-base", "--sharding", "zero3", "--facts", RTX_4090)
    assert "zero3 has nothing to share out on one card" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        pytest.param(["--gpu", "RTX 4909"], "Near to it", id="no such card"),
        pytest.param(["--gpu", ""], "--gpu", id="an empty variable"),
        pytest.param(["--gpu", "两张4090"], "RTX 4090", id="a number in words"),
        pytest.param(["--gpu", "RTX 4090", "--gpus", "L20"], "once", id="two names"),
        pytest.param(["--gpu", "RTX 4090", "--cpu"], "--cpu", id="a card on the CPU"),
        pytest.param(["--gpu", "RTX 4090", "--measure"], "--measure", id="steps on a card that is not here"),
    ],
)  # fmt: skip
def test_a_card_that_cannot_be_meant_is_refused(arguments: list[str], word: str) -> None:
    done = doctor("--model", "bert-base", *arguments, "--facts", RTX_4090)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr


# ---------------------------------------------------------------------------------------------- names of cards
@pytest.mark.parametrize(
    ("name", "card", "gib", "capability"),
    [
        pytest.param("4090", "NVIDIA GeForce RTX 4090", 24, "8.9", id="the number alone"),
        pytest.param("A100", "NVIDIA A100-PCIE-40GB", 40, "8.0", id="of two sizes the smaller"),
        pytest.param("24GB", "24GB", 24, "", id="a memory"),
        pytest.param("MI300X 192GB", "MI300X 192GB", 192, "", id="another maker's, with its memory"),
        pytest.param("RTX 3090 48GB", "NVIDIA GeForce RTX 3090", 48, "8.6", id="a card with another memory"),
        pytest.param("vGPU-32GB", "NVIDIA vGPU-32GB", 32, "8.9", id="AutoDL's slice"),
    ],
)  # fmt: skip
def test_a_name_is_a_card_with_its_memory(name: str, card: str, gib: int, capability: str) -> None:
    state = named_card(name).state
    assert (state.name, state.compute_capability) == (card, capability)
    assert state.free_bytes == state.total_bytes == pytest.approx(0.93 * gib * GIB, rel=0.01)


def test_what_a_name_leaves_open_is_said() -> None:
    assert not named_card("RTX 4090").notes
    assert "80 GB" in str(named_card("A100").notes[0])
    assert "no chip" in str(named_card("24GB").notes[0])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("RTX 4909", "RTX 4090", id="two digits exchanged"),
        pytest.param("Ascend 910B", "--gpu 24GB", id="not NVIDIA's"),
        pytest.param("qGPU-20GB", "--gpu 20GB", id="a slice by its memory"),
    ],
)
def test_a_name_that_is_not_known_is_answered_with_what_to_type(name: str, words: str) -> None:
    assert words in str(not_in_table(name))
    if "GB" not in name:
        with pytest.raises(UnknownCard):
            named_card(name)


# ---------------------------------------------------------------------------------------------- what is taken for granted
def test_a_size_of_card_fits_and_the_next_smaller_does_not() -> None:
    request = MemoryRequest(config={"model_type": "bert"}, precision="bf16", batch_size=64)
    found = estimate(request)
    sizes = sizes_for(found, request)
    assert sizes.surely is not None and sizes.expected is not None
    assert 0.93 * sizes.surely.memory_gb * GIB >= found.high_bytes
    assert 0.93 * sizes.expected.memory_gb * GIB >= found.peak_bytes
    smaller = sizes_for(estimate(MemoryRequest(config={"model_type": "bert"}, batch_size=8)), request)
    assert smaller.surely is not None and smaller.surely.memory_gb < sizes.surely.memory_gb


@pytest.mark.parametrize(
    ("card", "precision"), [("RTX 4090", "bf16"), ("T4", "fp16"), ("V100-32GB", "fp16"), ("P40", "fp32"), ("24GB", "bf16")]
)  # fmt: skip
def test_a_model_is_trained_in_what_the_card_multiplies_fast(card: str, precision: str) -> None:
    assert default_precision(False, named_card(card).state) == precision


@pytest.mark.parametrize(
    ("config", "task"),
    [
        pytest.param({"model_type": "qwen2"}, "causal-lm", id="a decoder"),
        pytest.param({"model_type": "qwen2", "architectures": ["Qwen2ForSequenceClassification"]}, "classification", id="a decoder that classifies"),
        pytest.param({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}, "causal-lm", id="a family that is not known"),
        pytest.param({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "classification", id="an encoder as it was pretrained"),
    ],
)  # fmt: skip
def test_a_model_is_for_what_it_was_built_for(config: dict[str, Any], task: str) -> None:
    assert default_task(config) == task


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"model.gguf": ""}, "GGUF", id="GGUF"),
        pytest.param({"adapter_config.json": '{"base_model_name_or_path": "Qwen/Qwen2.5-7B", "r": 8}'}, "Qwen/Qwen2.5-7B", id="an adapter alone"),
        pytest.param({"notes.txt": ""}, "config.json", id="no model"),
    ],
)  # fmt: skip
def test_a_folder_that_is_no_whole_model_says_what_it_is(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    done = doctor("--model", str(tmp_path), "--facts", RTX_4090)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"model_type": "mixtral"}, "--exact", id="an architecture that is not known"),
        pytest.param({"model_type": "chatglm", "auto_map": {"AutoConfig": "x.Y"}}, "trust_remote_code", id="code of its own"),
        pytest.param({"model_type": "llama", "quantization_config": {"quant_method": "gptq", "bits": 4}}, "gptq", id="quantised weights"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said_with_the_floor_its_weights_tell(
    tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    from tests.test_weights_on_disk import written

    (tmp_path / "config.json").write_text(json.dumps(config))
    written(tmp_path / "model.safetensors", {"w": ("BF16", [1024, 1024 * 1024])})
    done = doctor("--model", str(tmp_path), "--facts", RTX_4090)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr and "16384 MB" in done.stderr


def test_what_is_listed_below_is_promised_in_the_first_line() -> None:
    line = first_lines("--model", "bert-large", "--batch", "64", "--gpu", "RTX 4090", facts=RTX_4090, code=1)[
        0
    ]
    assert line.startswith("It does not fit as asked, but does with what is listed below.")


def test_a_sure_batch_is_named_where_the_range_is_wider_than_the_card() -> None:
    tree = json.loads(doctor("--model", "bert-large", "--gpu", "24GB", "--json", "--facts", RTX_4090).stdout)
    assert tree["fits"] and not tree["surely"] and 0 < tree["sure_batch"] < tree["largest_batch"]


def test_a_model_that_is_not_in_the_table_names_those_near_to_it() -> None:
    done = doctor("--model", "Qwen/Qwen3-7B", "--facts", RTX_4090)
    assert done.returncode == 2 and "Qwen/Qwen3-8B" in done.stderr


def test_a_model_in_place_of_a_profile_is_told_how_to_be_named() -> None:
    done = doctor("qwen2.5-7b", "--facts", RTX_4090)
    assert done.returncode == 2 and "--model qwen2.5-7b" in done.stderr
    assert "--model" not in doctor("no-such-thing", "--facts", RTX_4090).stderr


def test_chinese_sentences_stand_close() -> None:
    assert "。 " not in first_lines("--model", "bert-base", "--batch", "1", facts=RTX_4090, lang="zh")[0]
