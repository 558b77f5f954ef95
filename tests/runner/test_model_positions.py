"""How many tokens a model can take: by its table of positions, where it has one."""

from __future__ import annotations

from typing import Any

import pytest

from runner.model_positions import position_limit, trained_positions


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        pytest.param({"model_type": "bert"}, 512, id="the class's default"),
        pytest.param({"model_type": "ernie", "max_position_embeddings": 2048}, 2048, id="a size of its own"),
        pytest.param({"model_type": "roberta", "max_position_embeddings": 514}, 512, id="RoBERTa counts from behind the padding"),
        pytest.param({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 0}, 513, id="another padding"),
        pytest.param({"model_type": "gpt2", "n_positions": 2048}, 2048, id="GPT-2's own name for it"),
        pytest.param({"model_type": "deberta-v2", "max_position_embeddings": 512}, 512, id="DeBERTa with absolute positions"),
        pytest.param({"model_type": "deberta-v2", "position_biased_input": False}, None, id="DeBERTa-v3: relative alone"),
        pytest.param({"model_type": "llama", "max_position_embeddings": 4096}, None, id="rotary: no table"),
        pytest.param({"model_type": "mamba"}, None, id="a family that is not known"),
        pytest.param({"model_type": "bert", "max_position_embeddings": "many"}, None, id="no number"),
    ],
)  # fmt: skip
def test_the_table_of_positions_is_the_limit(config: dict[str, Any], limit: int | None) -> None:
    assert position_limit(config) == limit


def test_a_rotary_model_was_made_for_so_many_tokens_and_takes_more() -> None:
    assert trained_positions({"model_type": "llama", "max_position_embeddings": 4096}) == 4096
    assert trained_positions({"model_type": "bert", "max_position_embeddings": 512}) is None
    assert trained_positions({"model_type": "llama"}) is None
