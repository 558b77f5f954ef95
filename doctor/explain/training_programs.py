"""Patterns of programs that train for you (ms-swift, Ultralytics): what their command lines and data files ask for."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: Please explicitly pass the model_type. For reference, the available model_types: ['qwen2', 'qwen2_5', 'qwq'].
    Pattern(
        id="swift-model-type",
        regex=r"Please explicitly pass the model_type\.(?: For reference, the available model_types: (?P<types>\[[^\]\n]{0,200}\]))?",
        meaning=t("ms-swift tells a local model's kind by its folder's name and config.json, and several fit: {types}.", types="?"),
        advice=t("--model_type with the right one of them, or give the folder the model's own name (Qwen2.5-7B-Instruct)."),
    ),
    # ValueError: Please set --model <model_id_or_path>`, model: None
    Pattern(
        id="swift-two-options",
        regex=r"Please set --model <model_id_or_path>",
        meaning=t("ms-swift 3 was given no --model: mostly the command was written for release 2, whose options have other names."),
        advice=t("--model_id_or_path is --model now, --sft_type --train_type, --dtype --torch_dtype; the examples folder of the installed release shows the rest. Also look for a line whose backslash at the end is missing."),
    ),
    # [INFO:swift] Dataset filtered, origin length: 10, filtered dataset length: 0
    Pattern(
        id="swift-nothing-left",
        regex=r"Dataset filtered, origin length: (?P<before>\d+), filtered dataset length: 0\b",
        meaning=t("Not one of {before} rows was left: each was longer than --max_length, or is not in a form that the template reads.", before="?"),
        advice=t("`head -n 1 FILE` and compare with ms-swift's page on custom data sets (messages with role and content); a larger --max_length, or --truncation_strategy left."),
    ),
    # Dataset '/root/autodl-tmp/fire.yaml' images not found, missing path '/root/datasets/fire/images/val'
    Pattern(
        id="yolo-data-path",
        regex=r"Dataset '(?P<file>[^'\n]+)' images not found[^\n]{0,40} missing path '(?P<path>[^'\n]+)'",
        meaning=t("Ultralytics looks for the pictures at {path}: relative paths of {file} count from its own folder of data sets, not from the file.", path="?", file="?"),
        advice=t("In the YAML write path: with the whole path of the data set, train: and val: relative to it. `yolo settings` shows the folder that it takes else."),
    ),
)  # fmt: skip
