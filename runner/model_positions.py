"""How long a sample a model can take: the rows of its table of positions, where it has one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.model_families import DEFAULTS, LIKE

_TABLE = ("bert", "ernie", "electra", "albert", "distilbert")
"""A row for each position, from 0."""
_BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert")
"""The first row is the one behind the padding token's: 514 rows are 512 tokens."""


def position_limit(config: Mapping[str, Any]) -> int | None:
    """Return the most tokens of a sample; None: there is no table (rotary or relative positions), or the family is not known."""
    kind = config.get("model_type")
    if kind in _TABLE:
        return _whole(config, "max_position_embeddings")
    if kind in _BEHIND_PADDING:
        rows, padding = _whole(config, "max_position_embeddings"), config.get("pad_token_id")
        behind = padding + 1 if isinstance(padding, int) else 2
        return None if rows is None else rows - behind
    if kind == "gpt2":
        return _whole(config, "n_positions")
    if kind == "deberta-v2" and config.get("position_biased_input", True):
        return _whole(config, "max_position_embeddings")
    return None


def trained_positions(config: Mapping[str, Any]) -> int | None:
    """Return for how many tokens a model without such a table was made; None: it has one, or its config does not say."""
    if position_limit(config) is not None:
        return None
    told = config.get("max_position_embeddings")
    return told if _is_size(told) else None


def _whole(config: Mapping[str, Any], key: str) -> int | None:
    kind = str(config["model_type"])
    told = config.get(key) or DEFAULTS[LIKE.get(kind, kind)].get(key)
    return told if _is_size(told) else None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
