"""The models and steps whose predicted memory is held against what was really taken."""

from __future__ import annotations

from typing import Any

SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
STILL = {
    "attention_probs_dropout_prob": 0.0
}  # the CPU's SDPA has no dropout of its own: it would fall back to eager
MODELS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **SMALL, **STILL},
    "bert-base": {"model_type": "bert", **STILL},
    "roberta": {"model_type": "roberta", **SMALL, **STILL},
    "electra": {"model_type": "electra", **STILL},
    "albert": {"model_type": "albert", "hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "distilbert": {"model_type": "distilbert", "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024, "attention_dropout": 0.0},
    "deberta-v2": {
        "model_type": "deberta-v2", "vocab_size": 30000, "relative_attention": True, "position_buckets": 64,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
        "position_biased_input": False, "max_relative_positions": -1, **SMALL,
    },
    "modernbert": {"model_type": "modernbert", "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 384},
    "gpt2": {"model_type": "gpt2", "vocab_size": 16000, "n_embd": 256, "n_layer": 4, "n_head": 4, "attn_pdrop": 0.0},
    "llama": {"model_type": "llama", "vocab_size": 16000, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688},
    "gpt2-deep": {"model_type": "gpt2", "vocab_size": 16000, "n_embd": 256, "n_layer": 12, "n_head": 4, "attn_pdrop": 0.0},
    "llama-deep": {"model_type": "llama", "vocab_size": 16000, "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688},
    "qwen2": {"model_type": "qwen2", "vocab_size": 16000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688, "tie_word_embeddings": True},
}  # fmt: skip

# model, batch, length, precision, checkpointing, attention
POINTS = (
    ("bert", 32, 128, "fp32", False, "sdpa"), ("bert", 32, 256, "fp32", False, "sdpa"),
    ("bert", 16, 256, "bf16", False, "sdpa"), ("bert", 16, 256, "fp32", False, "eager"),
    ("bert", 32, 256, "fp32", True, "sdpa"), ("bert", 32, 256, "bf16", True, "sdpa"),
    ("bert-base", 8, 128, "fp32", False, "sdpa"), ("bert-base", 4, 256, "bf16", False, "sdpa"),
    ("roberta", 16, 256, "fp32", False, "sdpa"), ("roberta", 32, 128, "bf16", False, "sdpa"),
    ("electra", 16, 128, "fp32", False, "sdpa"), ("albert", 16, 128, "fp32", False, "sdpa"),
    ("distilbert", 32, 128, "fp32", False, "sdpa"), ("distilbert", 32, 256, "bf16", False, "sdpa"),
    ("deberta-v2", 16, 128, "fp32", False, "eager"), ("deberta-v2", 16, 256, "fp32", True, "eager"),
    ("modernbert", 16, 256, "fp32", False, "sdpa"), ("modernbert", 16, 256, "bf16", False, "sdpa"),
    ("gpt2", 8, 256, "fp32", False, "sdpa"), ("gpt2", 16, 128, "bf16", False, "sdpa"), ("gpt2", 8, 256, "fp32", True, "sdpa"),
    ("llama", 8, 256, "fp32", False, "sdpa"), ("llama", 16, 128, "bf16", False, "sdpa"), ("llama", 8, 256, "fp32", True, "sdpa"),
    ("qwen2", 8, 256, "fp32", False, "sdpa"),
    # twelve layers: the trace walks three and four of them
    ("bert-base", 8, 128, "bf16", True, "sdpa"), ("gpt2-deep", 8, 128, "fp32", False, "sdpa"), ("llama-deep", 8, 128, "bf16", False, "sdpa"),
)  # fmt: skip

CUDA_POINTS = (
    ("bert-base", 32, 128, "bf16", False, "sdpa"), ("bert-base", 32, 512, "bf16", False, "sdpa"), ("bert-base", 16, 512, "fp32", False, "sdpa"),
    ("bert-base", 16, 512, "fp32", False, "eager"), ("bert-base", 32, 512, "bf16", True, "sdpa"), ("roberta", 64, 256, "bf16", False, "sdpa"),
    ("distilbert", 64, 256, "fp16", False, "sdpa"), ("deberta-v2", 32, 256, "bf16", False, "eager"), ("modernbert", 32, 512, "bf16", False, "sdpa"),
    ("gpt2-deep", 16, 512, "bf16", False, "sdpa"), ("llama-deep", 16, 512, "bf16", False, "sdpa"), ("llama-deep", 16, 1024, "fp32", True, "sdpa"),
)  # fmt: skip
