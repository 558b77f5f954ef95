"""Which parts of a known model ``train.freeze`` holds still: its patterns laid over the names that transformers gives. Pure.

Only whole parts count (the embedding, a layer, the head): where a rule holds some of a part still, the part is taken to move,
which is the larger figure. A trace lays the same patterns over the model's own names.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from runner.sections import FreezeRule


class Names(NamedTuple):
    """Parameters whose standing still is taken for that of their part: one at either end of it."""

    embedding: tuple[str, ...]
    layer: tuple[str, ...]
    """With the layer's number in place of ``{}``."""
    head: tuple[str, ...]


class Still(NamedTuple):
    """Parts without a parameter that moves."""

    embedding: bool = False
    layers: int = 0
    lowest: int = 0
    """Layers below the first that moves, over an embedding that stands still: nothing of them is kept for a backward pass."""
    head: bool = False


def _encoder(base: str, query: str = "attention.self.query", head: str = "classifier.weight") -> Names:
    return Names(
        (f"{base}.embeddings.word_embeddings.weight", f"{base}.embeddings.LayerNorm.weight"),
        (f"{base}.encoder.layer.{{}}.{query}.weight", f"{base}.encoder.layer.{{}}.output.LayerNorm.bias"),
        (head, f"{base}.pooler.dense.weight") if base in ("bert", "ernie") else (head,),
    )


_LLAMA = Names(
    ("model.embed_tokens.weight",),
    ("model.layers.{}.self_attn.q_proj.weight", "model.layers.{}.post_attention_layernorm.weight"),
    ("score.weight", "lm_head.weight"),
)
_ROBERTA = _encoder("roberta", head="classifier.dense.weight")
NAMES = {
    "bert": _encoder("bert"), "ernie": _encoder("ernie"), "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA,
    "electra": _encoder("electra", head="classifier.dense.weight"),
    "deberta-v2": _encoder("deberta", "attention.self.query_proj"),
    "albert": Names(
        ("albert.embeddings.word_embeddings.weight", "albert.encoder.embedding_hidden_mapping_in.weight"),
        ("albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight",
         "albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias"),
        ("classifier.weight", "albert.pooler.weight"),
    ),
    "distilbert": Names(
        ("distilbert.embeddings.word_embeddings.weight", "distilbert.embeddings.LayerNorm.weight"),
        ("distilbert.transformer.layer.{}.attention.q_lin.weight", "distilbert.transformer.layer.{}.output_layer_norm.bias"),
        ("classifier.weight", "pre_classifier.weight"),
    ),
    "gpt2": Names(
        ("transformer.wte.weight", "transformer.wpe.weight"),
        ("transformer.h.{}.attn.c_attn.weight", "transformer.h.{}.mlp.c_proj.bias"),
        ("score.weight",),
    ),
    "modernbert": Names(
        ("model.embeddings.tok_embeddings.weight", "model.embeddings.norm.weight"),
        ("model.layers.{}.attn.Wqkv.weight", "model.layers.{}.mlp.Wo.weight"),
        ("classifier.weight", "head.dense.weight"),
    ),
    "llama": _LLAMA, "mistral": _LLAMA, "qwen2": _LLAMA, "qwen3": _LLAMA, "gemma": _LLAMA, "smollm3": _LLAMA,
}  # fmt: skip


def stands_still(name: str, rules: Sequence[FreezeRule]) -> bool:
    """Is a parameter frozen for good? The last rule that matches its name counts."""
    last = next((rule for rule in reversed(rules) if fnmatchcase(name, rule.parameters)), None)
    return last is not None and last.until is None


def still_parts(model_type: str, layers: int, rules: Sequence[FreezeRule]) -> Still:
    """Return what of a model of a known family stands still."""
    names = NAMES.get(model_type)
    if not rules or names is None:
        return Still()

    def all_still(some: Sequence[str], *number: int) -> bool:
        return all(stands_still(name.format(*number), rules) for name in some)

    each = [all_still(names.layer, number) for number in range(layers)]
    embedding = all_still(names.embedding)
    lowest = next((number for number, still in enumerate(each) if not still), layers) if embedding else 0
    return Still(embedding, sum(each), lowest, all_still(names.head))
