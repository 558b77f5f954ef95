"""Memory by arithmetic: parameters counted exactly, parts that add up, and the directions in which each choice moves it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.model_shapes import UnknownArchitecture, shape_of

BERT = {"model_type": "bert"}
LLAMA_1B = {
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "tie_word_embeddings": True,
}  # fmt: skip
WIDTH_512 = {"hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8}
GROUPED = {
    **WIDTH_512,
    "vocab_size": 16000,
    "num_key_value_heads": 2,
    "intermediate_size": 1408,
    "tie_word_embeddings": True,
}
ROBERTA = {"model_type": "roberta", "max_position_embeddings": 514, "type_vocab_size": 1}
DEBERTA = {
    "model_type": "deberta-v2", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
}  # fmt: skip


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(**{"config": BERT, "batch_size": 32, "sequence_length": 128, **changes})


def part(found: MemoryEstimate, name: str) -> int:
    return next((one.size_bytes for one in found.parts if one.name == name), 0)


@pytest.mark.parametrize(
    ("config", "task", "parameters"),
    [
        # Counted with transformers 5.24: sum(p.numel() for p in model.parameters()), two labels.
        pytest.param(BERT, "classification", 109_483_778, id="BERT-base"),
        pytest.param({**BERT, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}, "classification", 335_143_938, id="BERT-large"),
        pytest.param(ROBERTA, "classification", 124_647_170, id="RoBERTa-base"),
        pytest.param({"model_type": "distilbert"}, "classification", 66_955_010, id="DistilBERT"),
        pytest.param({"model_type": "modernbert"}, "classification", 149_606_402, id="ModernBERT-base"),
        pytest.param({"model_type": "gpt2"}, "causal-lm", 124_439_808, id="GPT-2"),
        pytest.param(LLAMA_1B, "causal-lm", 1_235_814_400, id="Llama-3.2-1B"),
        pytest.param(DEBERTA, "classification", 184_423_682, id="DeBERTa-v3-base"),
        pytest.param({**BERT, "vocab_size": 21128}, "classification", 102_269_186, id="bert-base-chinese"),
        pytest.param({"model_type": "electra"}, "classification", 13_549_314, id="ELECTRA-small"),
        pytest.param({"model_type": "albert", "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}, "classification", 11_685_122, id="ALBERT-base"),
        pytest.param({"model_type": "ernie", **WIDTH_512, "intermediate_size": 2048}, "classification", 35_069_442, id="a small ERNIE"),
        pytest.param({"model_type": "qwen3", "head_dim": 64, **GROUPED}, "causal-lm", 25_107_712, id="a small Qwen3"),
        pytest.param({"model_type": "gemma", "head_dim": 64, **GROUPED}, "causal-lm", 25_106_944, id="a small Gemma"),
        pytest.param({"model_type": "smollm3", **GROUPED}, "causal-lm", 25_106_944, id="a small SmolLM3"),
        pytest.param({"model_type": "mistral", **GROUPED, "tie_word_embeddings": False}, "causal-lm", 33_298_944, id="a small Mistral"),
    ],
)  # fmt: skip
def test_parameters_are_counted_to_the_last_one(config: dict[str, Any], task: str, parameters: int) -> None:
    assert shape_of(config, task).parameters == parameters


@pytest.mark.parametrize(
    ("changes", "traced_mib"),
    [
        # Traced: tests of runner.child.trace_memory with device "cuda", transformers 5.24, torch 2.13.
        pytest.param({"optimizer": "adamw-foreach"}, 3739, id="fp32 SDPA"),
        pytest.param({"optimizer": "adamw-foreach", "attention": "eager"}, 4361, id="fp32 eager"),
        pytest.param({"precision": "bf16"}, 3012, id="bf16 autocast"),
        pytest.param({"precision": "bf16", "batch_size": 64}, 4608, id="bf16 autocast, twice the batch"),
        pytest.param({"precision": "bf16", "gradient_checkpointing": True}, 1763, id="bf16 with checkpointing"),
        pytest.param({"batch_size": 16, "sequence_length": 256, "precision": "bf16-pure"}, 1919, id="weights in bf16"),
        pytest.param({"batch_size": 16, "sequence_length": 256, "precision": "bf16", "lora_rank": 8}, 1798, id="LoRA"),
    ],
)  # fmt: skip
def test_tensors_of_bert_base_are_within_fifteen_percent_of_what_was_traced(
    changes: dict[str, Any], traced_mib: int
) -> None:
    found = estimate(asked(**changes)).allocated_bytes / 2**20
    assert found == pytest.approx(traced_mib, rel=0.15)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "bf16-pure"])
@pytest.mark.parametrize(
    "optimizer", ["adamw", "adamw-foreach", "adamw-8bit", "adafactor", "sgd", "sgd-momentum"]
)
@pytest.mark.parametrize("checkpointing", [False, True])
def test_parts_add_up_to_the_peak_and_lie_in_the_range(
    precision: Any, optimizer: Any, checkpointing: bool
) -> None:
    found = estimate(asked(precision=precision, optimizer=optimizer, gradient_checkpointing=checkpointing))
    assert sum(one.size_bytes for one in found.parts) == found.peak_bytes
    assert found.low_bytes < found.peak_bytes < found.high_bytes
    assert max(found.phases.values()) == found.allocated_bytes


@pytest.mark.parametrize(
    "smaller",
    [
        pytest.param({"precision": "bf16"}, id="autocast"),
        pytest.param({"gradient_checkpointing": True}, id="checkpointing"),
        pytest.param({"batch_size": 4}, id="half the batch"),
        pytest.param({"sequence_length": 64}, id="half the length"),
        pytest.param({"lora_rank": 8}, id="LoRA"),
        pytest.param({"optimizer": "adamw-8bit"}, id="8-bit moments"),
        pytest.param({"optimizer": "sgd"}, id="no moments"),
        pytest.param({"offload": True}, id="states on the host"),
        pytest.param({"cards": 4, "sharding": "zero3"}, id="sharded over four cards"),
    ],
)  # fmt: skip
def test_what_is_said_to_save_memory_saves_it(smaller: dict[str, Any]) -> None:
    base = {"config": LLAMA_1B, "task": "classification", "batch_size": 8, "sequence_length": 512}
    assert estimate(asked(**{**base, **smaller})).peak_bytes < estimate(asked(**base)).peak_bytes


def test_eager_attention_grows_with_the_square_of_the_length_and_sdpa_hardly() -> None:
    def kept(attention: Any, length: int) -> float:
        found = estimate(asked(batch_size=4, sequence_length=length, attention=attention))
        return found.layers_bytes[0] / length

    assert kept("eager", 1024) / kept("eager", 512) > 1.5
    assert kept("sdpa", 1024) / kept("sdpa", 512) < 1.1


def test_stages_divide_one_piece_more_each() -> None:
    base = {"config": LLAMA_1B, "task": "classification", "batch_size": 1, "optimizer": "adamw", "cards": 8}
    stages = [estimate(asked(**base, sharding=stage)) for stage in ("ddp", "zero1", "zero2", "zero3")]
    peaks = [one.peak_bytes for one in stages]
    assert peaks == sorted(peaks, reverse=True)
    assert part(stages[0], "optimizer") == pytest.approx(8 * part(stages[1], "optimizer"), rel=0.01)


def test_distributed_data_parallel_sends_a_second_copy_of_the_gradients() -> None:
    alone, together = (asked(batch_size=1, sequence_length=8, cards=cards) for cards in (1, 2))
    grown = estimate(together).allocated_bytes - estimate(alone).allocated_bytes
    assert grown == 4 * shape_of(BERT).parameters


def test_offloaded_states_are_counted_in_the_hosts_memory() -> None:
    found = estimate(asked(offload=True))
    assert found.host_bytes == 4 * 4 * shape_of(BERT).parameters  # weights, gradients, two moments
    assert part(found, "optimizer") == 0


def test_logits_of_a_large_vocabulary_are_the_peak_of_a_small_model() -> None:
    tiny = {"model_type": "llama", "vocab_size": 150000, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}  # fmt: skip
    found = estimate(asked(config=tiny, task="causal-lm"))
    assert part(found, "logits") > 0.8 * found.allocated_bytes


@pytest.mark.parametrize(
    ("config", "word"),
    [
        pytest.param({"model_type": "mamba"}, "mamba", id="a family that is not known"),
        pytest.param({}, "architecture", id="no family"),
        pytest.param({"model_type": "bert", "hidden_size": "wide"}, "bert", id="a size that is no number"),
        pytest.param({"model_type": "bert", "num_hidden_layers": 0}, "bert", id="no layers"),
        pytest.param({"model_type": "llama", "num_attention_heads": 0}, "llama", id="no heads"),
        pytest.param({"model_type": "bert", "hidden_size": -5}, "hidden_size", id="a size below nothing"),
        pytest.param({"model_type": "bert", "hidden_size": float("nan")}, "hidden_size", id="a size that is not a number"),
        pytest.param({"model_type": "bert", "hidden_size": [768]}, "hidden_size", id="a list for a size"),
        pytest.param({"model_type": "bert", "hidden_size": True}, "hidden_size", id="yes for a size"),
        pytest.param({"model_type": "bert", "num_hidden_layers": 10**9}, "num_hidden_layers", id="a billion layers, answered at once"),
        pytest.param({"model_type": "bert", "vocab_size": 10**20}, "vocab_size", id="a vocabulary beyond any"),
        pytest.param({"model_type": "llama", "head_dim": -4}, "head_dim", id="an optional size below nothing"),
        pytest.param({"model_type": "gpt2", "n_inner": "wide"}, "n_inner", id="an optional size that is no number"),
        pytest.param({"model_type": "modernbert", "attention_dropout": "x"}, "modernbert", id="a probability that is none"),
    ],
)  # fmt: skip
def test_what_the_arithmetic_does_not_know_is_said_and_not_guessed(config: dict[str, Any], word: str) -> None:
    with pytest.raises(UnknownArchitecture) as caught:
        estimate(asked(config=config))
    assert word in str(caught.value)


def test_the_arithmetic_needs_no_torch() -> None:
    program = "import sys, runner.estimate as e; e.estimate(e.MemoryRequest(config={'model_type': 'bert'})); print([n for n in ('torch', 'transformers', 'numpy', 'doctor') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_estimate_survives_json() -> None:
    found = estimate(asked())
    assert msgspec.json.decode(msgspec.json.encode(found), type=MemoryEstimate) == found
