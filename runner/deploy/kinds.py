"""What a model is for, and which class of transformers opens it, told by the name of its architecture. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.inputs import InputError
from runner.text import t

# What an architecture's name ends with -> (what it is for, the class that opens it).
_KINDS = {
    "ForSequenceClassification": ("classification", "AutoModelForSequenceClassification"),
    "ForTokenClassification": ("token-classification", "AutoModelForTokenClassification"),
    "ForMaskedLM": ("masked-lm", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal-lm", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal-lm", "AutoModelForCausalLM"),
    "Model": ("features", "AutoModel"),
}


def auto_class_of(architecture: str) -> str | None:
    """Return the class of transformers that opens an architecture (``BertForMaskedLM``); None: it is not known here."""
    return next((auto for ending, (_, auto) in _KINDS.items() if architecture.endswith(ending)), None)


def kind_of(folder: Path, config: Any) -> tuple[str, str]:
    """Return what a model is for, and the class of transformers that opens it.

    Raises:
        InputError: a kind that is not known here, as one that writes a text from a text.
    """
    architecture = (getattr(config, "architectures", None) or [""])[0]
    found = next((both for ending, both in _KINDS.items() if architecture.endswith(ending)), None)
    two_parts = getattr(config, "is_encoder_decoder", False) and found and found[0] != "classification"
    if found is None or two_parts:
        raise InputError(
            t("{path}: a model of kind {architecture} is not known here; known are encoders and decoders whose name ends with {kinds}",
              path=str(folder), architecture=architecture or "?", kinds=", ".join(_KINDS))
        )  # fmt: skip
    return found
