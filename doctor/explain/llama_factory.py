"""Patterns of training programs that are steered by YAML: LLaMA-Factory's data and arguments, and what YAML makes of a value."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: Undefined dataset train1.json in dataset_info.json.
    Pattern(
        id="dataset-not-registered",
        regex=r"Undefined dataset (?P<name>\S+) in (?P<file>\S*dataset_info\.json)",
        meaning=t("LLaMA-Factory takes a data set by its name in dataset_info.json, and {name} is none there: not a file's name or path.", name="?"),
        advice=t("Put an entry with a name and its file_name into data/dataset_info.json, give that name in the configuration (no .json), and start in LLaMA-Factory's folder or with dataset_dir."),
    ),
    # ValueError: Cannot open data/dataset_info.json due to [Errno 2] No such file or directory: 'data/dataset_info.json'.
    Pattern(
        id="dataset-info-missing",
        regex=r"Cannot open (?P<place>\S*dataset_info\.json) due to",
        meaning=t("LLaMA-Factory looks for {place} from the folder it was started in, and that is another one.", place="data/dataset_info.json"),
        advice=t("`cd LLaMA-Factory` before the start, or dataset_dir with the whole path of its data folder."),
    ),
    # ValueError: Some keys are not used by the HfArgumentParser: ['bf16', 'do_train', 'learning_rate']   |   ValueError: Some specified arguments are not used by the HfArgumentParser: ['configs/sft.yaml']
    Pattern(
        id="keys-not-used",
        regex=r"Some (?:keys|specified arguments) are not used by the HfArgumentParser: (?P<keys>\[[^\n]{0,200})",
        meaning=t("The program that was started has no such keys ({keys}): a training file handed to chat, export or the web page, keys of another release, or a slip of the pen.", keys="?"),
        advice=t("A training file belongs to `llamafactory-cli train FILE`; chat and export have files of their own (examples/inference, examples/merge_lora). Single keys: look them up in the examples of the installed release."),
    ),
    # ValueError: Template qwen3_nothink does not exist.
    Pattern(
        id="template-unknown",
        regex=r"ValueError: Template (?P<name>\S+) does not exist",
        meaning=t("The installed LLaMA-Factory has no template {name}: it is older than the model, or the name is misspelled.", name="?"),
        advice=t("Take the name from the model table in the README of the installed release; for a newer model `git pull` and `python -m pip install -e .` anew."),
    ),
    # found character '\t' that cannot start any token   |   yaml.scanner.ScannerError: mapping values are not allowed here   |   yaml.parser.ParserError: while parsing a block mapping
    Pattern(
        id="yaml-unreadable",
        regex=r"found character '\\t' that cannot start any token|yaml\.(?:scanner\.ScannerError|parser\.ParserError|reader\.ReaderError)|^mapping values are not allowed here",
        meaning=t("A YAML file cannot be read: a tab where spaces belong, a colon without a space after it (or a full-width one), or an indentation that does not fit."),
        advice=t("The lines below name file, line and column; `cat -A FILE | sed -n 'LINEp'` shows tabs as ^I. Indent with spaces, and put quotes around values that hold a colon or #."),
    ),
    # if not 0.0 <= lr: TypeError: '<=' not supported between instances of 'float' and 'str'
    Pattern(
        id="number-read-as-text",
        regex=r"if not 0\.0 <= \w+[^\n]*(?:\n[^\n]*){0,2}?'<=' not supported between instances of 'float' and 'str'",
        meaning=t("The learning rate (or another number) reached the optimizer as text: YAML takes 1e-4 for a string, because it has no point."),
        advice=t("Write 1.0e-4 in the YAML file, or float(value) where your own script reads it."),
    ),
    # File "/root/LLaMA-Factory/src/llamafactory/data/converter.py", line 84, in __call__     if example[self.dataset_attr.prompt]: KeyError: 'instruction'
    Pattern(
        id="dataset-columns",
        regex=r"llamafactory[/\\]data[/\\]\w+\.py\"[^\n]*(?:\n[^\n]*){0,8}?KeyError: '(?P<key>[^'\n]+)'",
        meaning=t("LLaMA-Factory reads the field {key} of each row, and the rows have none of that name.", key="?"),
        advice=t("Look at a row (`head -c 500 FILE`) and say in dataset_info.json how the fields are called: columns (prompt, query, response, messages), formatting alpaca or sharegpt, and tags where role and content have other names."),
        hides=("remote-code-fails",),
    ),
)  # fmt: skip
