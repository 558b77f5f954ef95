"""What a model's config.json says of its size: parameters counted, and what each layer keeps for the backward pass.

Known architecture families only; pure arithmetic, no torch. The counts of kept values per token were read off traced
steps of transformers 5.24 (see :mod:`runner.child.trace_memory`), one storage at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from runner.text import Text, t


class UnknownArchitecture(ValueError):  # noqa: N818 - it is what it says
    """A config that the arithmetic does not know; ``problem`` says so and names the way out."""

    def __init__(self, problem: Text) -> None:
        self.problem = problem
        super().__init__(str(problem))


class Kept(NamedTuple):
    """Values that one layer keeps per token, in widths: ``hidden`` of h, ``inner`` of the feed-forward's width."""

    fp32: int
    """Hidden-wide values, everything in fp32."""
    mixed_full: int
    """Under autocast: hidden-wide values that stay fp32 (inputs of norms)."""
    mixed_low: int
    """Under autocast: hidden-wide values in 16 bits (a cast copy for each projection among them)."""
    pure_full: int
    """Weights in bf16: hidden-wide values that are fp32 all the same (Llama's norms)."""
    pure_low: int
    inner: int
    lora_fp32: int
    """As above with the layer's own weights frozen: no projection keeps its input but those with an adapter."""
    lora_full: int
    lora_low: int
    lora_inner: int
    dropout_masks: int


KEPT = {
    "bert": Kept(8, 2, 8, 0, 8, 2, 7, 2, 6, 1, 2),
    "distilbert": Kept(8, 2, 8, 0, 8, 2, 7, 2, 6, 1, 1),
    "deberta": Kept(9, 2, 9, 0, 9, 2, 8, 2, 7, 1, 2),
    "modernbert": Kept(10, 2, 8, 0, 10, 4, 9, 2, 7, 3, 0),
    "gpt2": Kept(8, 2, 6, 0, 8, 2, 7, 2, 5, 1, 2),
    "llama": Kept(10, 4, 9, 2, 8, 4, 7, 2, 6, 3, 0),
}

COMPOSED_ACTIVATIONS = ("gelu_new", "gelu_fast")
"""Written out in single operations by transformers: three more values of the feed-forward's width are kept."""
COMPOSED_KEEPS = 3

FAMILIES = {
    "bert": "bert", "roberta": "bert", "xlm-roberta": "bert", "camembert": "bert", "electra": "bert", "albert": "bert",
    "distilbert": "distilbert", "deberta-v2": "deberta", "modernbert": "modernbert", "gpt2": "gpt2",
    "llama": "llama", "mistral": "llama", "qwen2": "llama", "qwen3": "llama",
}  # fmt: skip

# What each config class of transformers takes where config.json leaves a key out (transformers 5.24).
DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2},
    "roberta": {"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2},
    "electra": {"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4, "intermediate_size": 1024, "max_position_embeddings": 512, "type_vocab_size": 2},
    "albert": {"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12, "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu_new"},
    "distilbert": {"vocab_size": 30522, "max_position_embeddings": 512, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "dropout": 0.1, "attention_dropout": 0.1},
    "deberta-v2": {"vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24, "intermediate_size": 6144, "max_position_embeddings": 512, "type_vocab_size": 0, "relative_attention": False, "position_biased_input": True, "pos_att_type": [], "position_buckets": -1, "max_relative_positions": -1, "share_att_key": False},
    "modernbert": {"vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152, "attention_dropout": 0.0},
    "gpt2": {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None, "resid_pdrop": 0.1, "attn_pdrop": 0.1, "activation_function": "gelu_new"},
    "llama": {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "attention_dropout": 0.0, "tie_word_embeddings": False},
    "mistral": {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "attention_dropout": 0.0, "tie_word_embeddings": False},
    "qwen2": {"vocab_size": 151936, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 22016, "attention_dropout": 0.0, "tie_word_embeddings": False},
    "qwen3": {"vocab_size": 151936, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 22016, "attention_dropout": 0.0, "tie_word_embeddings": False},
}  # fmt: skip


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
    if kind not in FAMILIES:
        raise UnknownArchitecture(
            t("the arithmetic does not know the architecture {kind}; it knows {known}. --exact traces the model itself.",
              kind=kind or "?", known=", ".join(FAMILIES))
        )  # fmt: skip
    base = DEFAULTS["roberta" if kind in ("xlm-roberta", "camembert") else kind]
    settings = {**base, **{key: value for key, value in config.items() if value is not None}}
    try:
        makers = {"distilbert": _distilbert, "gpt2": _gpt2, "modernbert": _modernbert, "llama": _llama}
        shape = makers.get(FAMILIES[kind], _bert)(kind, settings, task, labels)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise UnknownArchitecture(
            t("the configuration of {kind} cannot be used: {error}", kind=kind, error=str(error))
        ) from error
    if min(shape.layers, shape.hidden, shape.inner, shape.heads, shape.vocabulary) < 1:
        raise UnknownArchitecture(
            t("the configuration of {kind} cannot be used: {error}", kind=kind, error="a size below 1")
        )
    return shape


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
        head_is_tied=tied and _language_model(task), adapted_width=2 * h + queries + keys,
        has_dropout=False, has_attention_dropout=float(s["attention_dropout"]) > 0, has_sdpa=True,
    )  # fmt: skip
