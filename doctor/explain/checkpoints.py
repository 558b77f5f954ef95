"""Patterns of checkpoints: cut short, refused by torch.load, or of another model than the one that was built."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory   |   EOFError: Ran out of input   |   _pickle.UnpicklingError: pickle data was truncated
    Pattern(
        id="checkpoint-cut",
        regex=r"PytorchStreamReader failed|failed finding central directory|invalid header or archive is corrupted|Error while deserializing header|unexpected EOF, expected|EOFError: Ran out of input|pickle data was truncated|Invalid magic number; corrupt file|storage has wrong byte size|Unable to load weights from pytorch checkpoint file",
        meaning=t(
            "The checkpoint file is cut short or damaged: the save was interrupted, the disk was full, or it is a Git LFS pointer."
        ),
        advice=t("Look at its size; go back to the checkpoint before it."),
        confirms=("corrupt-checkpoint", "disk-nearly-full"),
    ),
    # _pickle.UnpicklingError: Weights only load failed.
    Pattern(
        id="weights-only",
        regex=r"Weights only load failed|WeightsUnpickler error",
        meaning=t("Since torch 2.6 torch.load runs no code from the file, and this file wants to."),
        advice=t(
            "For a file you trust: torch.load(path, weights_only=False), or allow-list its classes with torch.serialization.add_safe_globals."
        ),
        confirms=("torch-load-weights-only-default",),
    ),
    # ValueError: Due to a serious vulnerability issue in `torch.load`, ... we now require users to upgrade torch to at least v2.6
    Pattern(
        id="load-blocked",
        regex=r"serious vulnerability issue in [`']torch\.load",
        meaning=t("This transformers refuses to load .bin weights with a torch older than 2.6."),
        advice=t("Use the model's safetensors files, or update torch if the driver serves a build of it."),
        confirms=("torch-load-blocked-by-transformers",),
    ),
    # RuntimeError: Error(s) in loading state_dict for BertForSequenceClassification: size mismatch for classifier.weight
    Pattern(
        id="state-dict",
        regex=r"Error\(s\) in loading state_dict for (?P<model>\w+)|size mismatch for (?P<weight>[\w.]+):|ignore_mismatched_sizes",
        meaning=t(
            "The checkpoint's weights do not fit the model that was built: another number of labels, another vocabulary, or prefixes (module., _orig_mod.)."
        ),
        advice=t(
            "Build the model with the checkpoint's own config; strip the prefix; never load with strict=False unread."
        ),
        confirms=("checkpoint-keys-not-loaded",),
    ),
)
