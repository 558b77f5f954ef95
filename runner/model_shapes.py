"""What a model's config.json says of its size: parameters counted, widths and layers.

Known architecture families only (:mod:`runner.model_families`); pure arithmetic, no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runner.model_families import COMPOSED_ACTIVATIONS, COMPOSED_KEEPS, DEFAULTS, FAMILIES, KEPT, LIKE, Kept
from runner.text import Text, t
from runner.uncounted_models import uncounted


class UnknownArchitecture(ValueError):  # noqa: N818 - it is what it says
    """A config that the arithmetic does not know; ``problem`` says so and names the way out."""

    def __init__(self, problem: Text) -> None:
        self.problem = problem
        super().__init__(str(problem))


MOST = 10_000_000
MOST_LAYERS = 10_000
"""Sizes beyond any model's: a config with more is a mistake, and counting it would take as long."""
ZERO_ALLOWED = ("type_vocab_size",)
OPTIONAL = ("head_dim", "num_key_value_heads", "n_inner", "embedding_size")
"""Sizes that follow from others where a config leaves them out."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A model's sizes. Parameters are counts, not bytes."""

    model_type: str
    family: str
    layers: int
    hidden: int
    inner: int
    heads: int
    vocabulary: int
    embedding_parameters: int
    layer_parameters: int
    distinct_layers: int
    """Layers with weights of their own: ALBERT's layers share theirs."""
    head_parameters: int
    head_is_tied: bool
    """The output layer is the embedding once more: its gradient comes in two pieces."""
    query_width: int = 0
    """Outputs of the query projection; 0: as wide as ``hidden``."""
    key_width: int = 0
    """Outputs of the key projection, and of the value's; 0: as wide as ``hidden``."""
    adapted_width: int
    """Sum of (input + output widths) of a layer's query and value projections: what a rank of LoRA costs."""
    has_dropout: bool
    has_attention_dropout: bool
    has_sdpa: bool
    has_checkpointing: bool = True
    composed_activation: bool = False
    relative_positions: int = 0
    """Rows of DeBERTa's table of relative positions; 0: none."""

    @property
    def parameters(self) -> int:
        return self.embedding_parameters + self.distinct_layers * self.layer_parameters + self.head_parameters

    @property
    def kept(self) -> Kept:
        kept = KEPT[self.family]
        if not self.composed_activation:
            return kept
        return kept._replace(inner=kept.inner + COMPOSED_KEEPS, lora_inner=kept.lora_inner + COMPOSED_KEEPS)


def shape_of(config: Mapping[str, Any], task: str = "classification", labels: int = 2) -> Shape:
    """Return the sizes of a model from its configuration (the keys of config.json, ``model_type`` among them).

    Raises:
        UnknownArchitecture: the family is not known, or a size is no positive number.
    """
    kind = str(config.get("model_type", ""))
    if (problem := uncounted(kind, config)) is not None:
        raise UnknownArchitecture(problem)
    base = DEFAULTS[LIKE.get(kind, kind)]
    settings = {**base, **{key: value for key, value in config.items() if value is not None}}
    _refuse_no_sizes(kind, base, settings)
    try:
        makers = {"distilbert": _distilbert, "gpt2": _gpt2, "modernbert": _modernbert, "llama": _llama}
        shape = makers.get(FAMILIES[kind], _bert)(kind, settings, task, labels)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise UnknownArchitecture(
            t("the configuration of {kind} cannot be used: {error}", kind=kind, error=str(error))
        ) from error
    return shape


def _refuse_no_sizes(kind: str, base: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise UnknownArchitecture where a key that is a size in every such configuration holds none."""
    sizes = {key: usual for key, usual in base.items() if type(usual) is int}
    sizes |= {key: 1 for key in OPTIONAL if settings.get(key) is not None}
    for key, usual in sizes.items():
        value = settings[key]
        least = usual if usual < 1 else 0 if key in ZERO_ALLOWED else 1
        most = MOST_LAYERS if "layer" in key else MOST
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
        if not whole or not least <= value <= most:
            raise UnknownArchitecture(
                t("the configuration of {kind} cannot be used: {key} is {value}, and a whole number from {least} to {most} is wanted",
                  kind=kind, key=key, value=repr(value)[:40], least=least, most=most)
            )  # fmt: skip


def _language_model(task: str) -> bool:
    return task in ("causal-lm", "masked-lm")


def _bert(kind: str, s: Mapping[str, Any], task: str, labels: int) -> Shape:
    h, i, v = int(s["hidden_size"]), int(s["intermediate_size"]), int(s["vocab_size"])
    e = int(s.get("embedding_size") or h)
    tables = v + int(s["max_position_embeddings"]) + int(s["type_vocab_size"])
    relative = 0
    if kind == "deberta-v2":
        tables = (
            v
            + int(s["type_vocab_size"])
            + int(s["max_position_embeddings"]) * bool(s["position_biased_input"])
        )
        relative = _relative_rows(s)
    embedding = tables * e + 2 * e + (e * h + h if e != h or kind == "albert" else 0)
    if relative:
        embedding += relative * h + (2 * h if "layer_norm" in str(s.get("norm_rel_ebd", "")) else 0)
    layer = 4 * (h * h + h) + 2 * h * i + h + i + 4 * h
    if _language_model(task):
        width = e if kind in ("electra", "albert") else h
        head = h * width + width + 2 * width + v
    else:  # a pooler or a dense layer, then the classes
        head = h * h + h + h * labels + labels
    return Shape(
        model_type=kind, family=FAMILIES[kind], layers=int(s["num_hidden_layers"]), hidden=h, inner=i,
        heads=int(s["num_attention_heads"]), vocabulary=v, embedding_parameters=embedding, layer_parameters=layer,
        distinct_layers=int(s["num_hidden_groups"]) if kind == "albert" else int(s["num_hidden_layers"]),
        head_parameters=head, head_is_tied=_language_model(task), adapted_width=4 * h,
        has_dropout=float(s.get("hidden_dropout_prob", 0.1)) > 0,
        has_attention_dropout=float(s.get("attention_probs_dropout_prob", 0.1)) > 0,
        has_sdpa=kind != "deberta-v2", has_checkpointing=kind != "albert",
        composed_activation=s.get("hidden_act") in COMPOSED_ACTIVATIONS, relative_positions=relative,
    )  # fmt: skip


def _relative_rows(s: Mapping[str, Any]) -> int:
    if not s["relative_attention"]:
        return 0
    farthest = int(s["max_relative_positions"])
    farthest = farthest if farthest > 0 else int(s["max_position_embeddings"])
    buckets = int(s["position_buckets"])
    return 2 * (buckets if buckets > 0 else farthest)


def _distilbert(kind: str, s: Mapping[str, Any], task: str, labels: int) -> Shape:
    h, i, v = int(s["dim"]), int(s["hidden_dim"]), int(s["vocab_size"])
    head = h * h + h + (2 * h + v if _language_model(task) else h * labels + labels)
    return Shape(
        model_type=kind, family="distilbert", layers=int(s["n_layers"]), hidden=h, inner=i, heads=int(s["n_heads"]),
        vocabulary=v, embedding_parameters=(v + int(s["max_position_embeddings"])) * h + 2 * h,
        layer_parameters=4 * (h * h + h) + 2 * h * i + h + i + 4 * h, distinct_layers=int(s["n_layers"]),
        head_parameters=head, head_is_tied=_language_model(task), adapted_width=4 * h,
        has_dropout=float(s["dropout"]) > 0, has_attention_dropout=float(s["attention_dropout"]) > 0, has_sdpa=True,
    )  # fmt: skip


def _gpt2(kind: str, s: Mapping[str, Any], task: str, labels: int) -> Shape:
    h, v = int(s["n_embd"]), int(s["vocab_size"])
    i = int(s["n_inner"] or 4 * h)
    return Shape(
        model_type=kind, family="gpt2", layers=int(s["n_layer"]), hidden=h, inner=i, heads=int(s["n_head"]),
        vocabulary=v, embedding_parameters=(v + int(s["n_positions"])) * h + 2 * h,
        layer_parameters=4 * (h * h + h) + 2 * h * i + h + i + 4 * h, distinct_layers=int(s["n_layer"]),
        head_parameters=0 if _language_model(task) else h * labels, head_is_tied=_language_model(task),
        adapted_width=4 * h, has_dropout=float(s["resid_pdrop"]) > 0,
        has_attention_dropout=float(s["attn_pdrop"]) > 0, has_sdpa=True,
        composed_activation=s["activation_function"] in COMPOSED_ACTIVATIONS,
    )  # fmt: skip


def _modernbert(kind: str, s: Mapping[str, Any], task: str, labels: int) -> Shape:
    h, i, v = int(s["hidden_size"]), int(s["intermediate_size"]), int(s["vocab_size"])
    layers = int(s["num_hidden_layers"])
    return Shape(
        model_type=kind, family="modernbert", layers=layers, hidden=h, inner=i, heads=int(s["num_attention_heads"]),
        vocabulary=v, embedding_parameters=v * h + h,  # the first layer has no norm in front, the end has one
        layer_parameters=4 * h * h + 3 * h * i + 2 * h, distinct_layers=layers,
        head_parameters=h * h + h + (v if _language_model(task) else h * labels + labels),
        head_is_tied=_language_model(task), adapted_width=4 * h,
        has_dropout=False, has_attention_dropout=float(s["attention_dropout"]) > 0, has_sdpa=True,
    )  # fmt: skip


def _llama(kind: str, s: Mapping[str, Any], task: str, labels: int) -> Shape:
    h, i, v, heads = (
        int(s[key]) for key in ("hidden_size", "intermediate_size", "vocab_size", "num_attention_heads")
    )
    width = int(s.get("head_dim") or h // heads)
    keys = int(s.get("num_key_value_heads") or heads) * width
    queries = heads * width
    biases = queries + 2 * keys if kind == "qwen2" or s.get("attention_bias") else 0
    layer = h * (2 * queries + 2 * keys) + biases + 3 * h * i + 2 * h + (2 * width if kind == "qwen3" else 0)
    tied = bool(s["tie_word_embeddings"])
    head = (0 if tied else v * h) if _language_model(task) else h * labels
    return Shape(
        model_type=kind, family="llama", layers=int(s["num_hidden_layers"]), hidden=h, inner=i, heads=heads,
        vocabulary=v, embedding_parameters=v * h + h, layer_parameters=layer,
        distinct_layers=int(s["num_hidden_layers"]), head_parameters=head,
        head_is_tied=tied and _language_model(task), query_width=queries, key_width=keys, adapted_width=2 * h + queries + keys,
        has_dropout=False, has_attention_dropout=float(s["attention_dropout"]) > 0, has_sdpa=True,
    )  # fmt: skip
