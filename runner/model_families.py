"""What is known of each architecture family: what its layers keep for the backward pass, and its sizes where a config leaves them out.

The counts of kept values per token were read off traced steps of transformers 5.24 (see :mod:`runner.child.trace_memory`), one
storage at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple


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
    "bert": "bert", "roberta": "bert", "xlm-roberta": "bert", "camembert": "bert", "electra": "bert", "albert": "bert", "ernie": "bert",
    "distilbert": "distilbert", "deberta-v2": "deberta", "modernbert": "modernbert", "gpt2": "gpt2",
    "llama": "llama", "mistral": "llama", "qwen2": "llama", "qwen3": "llama", "gemma": "llama", "smollm3": "llama",
}  # fmt: skip

LIKE = {"xlm-roberta": "roberta", "camembert": "roberta", "ernie": "bert"}
"""Families whose sizes are by default another's."""

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
    "gemma": {"vocab_size": 256000, "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "intermediate_size": 24576, "attention_dropout": 0.0, "tie_word_embeddings": True},
    "smollm3": {"vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008, "attention_dropout": 0.0, "tie_word_embeddings": True},
}  # fmt: skip
