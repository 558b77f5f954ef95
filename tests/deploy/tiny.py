"""Small models from configurations, saved as ``save_pretrained`` does: of several families, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "good",
    "bad",
    "film",
    "very",
    "not",
    "the",
    "was",
    "is",
    "it",
]
LABELS = {0: "bad", 1: "good", 2: "so-so"}
SIZES: dict[str, Any] = {
    "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
DISTILBERT = {"vocab_size": len(WORDS), "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 64, "pad_token_id": 0}  # fmt: skip
# Besides the sizes: what makes each family another graph (relative positions, local attention, grouped keys, shared layers).
OWN: dict[str, dict[str, Any]] = {
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "share_att_key": True, "position_biased_input": False},
    "electra": {"embedding_size": 16},
    "albert": {"embedding_size": 8},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3},
    "qwen2": {"num_key_value_heads": 1, "bos_token_id": 2, "eos_token_id": 3},
    "llama": {"num_key_value_heads": 1, "bos_token_id": 2, "eos_token_id": 3},
}  # fmt: skip
WITH_TYPES = ("bert", "electra", "albert", "deberta-v2")
"""Families whose tokenizers give token_type_ids."""
GPT2 = {"vocab_size": len(WORDS), "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}  # fmt: skip


def save_model(folder: Path, auto: str, kind: str = "bert", **changes: Any) -> Path:
    """Write a seeded model of a family and its tokenizer to ``folder``."""
    torch.manual_seed(7)
    sizes = {"distilbert": DISTILBERT, "gpt2": GPT2}.get(kind, SIZES)
    labels = {"id2label": LABELS, "label2id": {name: index for index, name in LABELS.items()}}
    names = labels if "Classification" in auto else {}
    config = transformers.AutoConfig.for_model(kind, **{**sizes, **OWN.get(kind, {}), **names, **changes})
    getattr(transformers, auto).from_config(config).save_pretrained(str(folder))
    save_tokenizer(folder, kind)
    return folder


def save_tokenizer(folder: Path, kind: str = "bert") -> None:
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), WORDS, strict=False))
    tokenizer = transformers.BertTokenizerFast(vocab=str(vocabulary), vocab_file=str(vocabulary), **names)
    tokenizer.model_max_length = 64
    if kind not in WITH_TYPES:
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(str(folder))
