"""Patterns of the datasets library: columns and types that do not agree, splits, caches of another version."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ArrowInvalid: JSON parse error: Column() changed from object to array in row 0   |   ArrowInvalid: JSON parse error: Column(/id) changed from number to string in row 12
    Pattern(
        id="json-column-type",
        regex=r"JSON parse error: Column\((?P<column>[^)\n]*)\) changed from (?P<one>[\w ]+) to (?P<other>[\w ]+) in row (?P<row>\d+)",
        meaning=t("In a JSON file a field changes its type ({one}, then {other} in row {row}; field: {column}), and a table's column has one type. 'Object to array' in row 0: the file is one list, not a record a line.", column="-", one="?", other="?", row="?"),
        advice=t("Write every value of the field in one type (ids all as text), or a record a line (.jsonl); where only the text counts, drop the field first: python's json, then Dataset.from_list."),
        hides=("dataset-generation", "arrow-type"),
    ),
    # ArrowInvalid: JSON parse error: Missing a comma or '}' after an object member. in row 10
    Pattern(
        id="json-line-broken",
        regex=r"ArrowInvalid: JSON parse error: (?P<what>(?!Column\()[^\n]{3,100}?)(?: in row (?P<row>\d+))?$",
        meaning=t("A line of the JSON file is not valid JSON ({what}; row {row} of that block): cut short, two records on a line, or not JSON at all (a CSV, an error page, a pointer file).", what="?", row="?"),
        advice=t("`head -c 300 FILE; tail -c 300 FILE`, and find the line with `python -c \"import json,sys; [json.loads(l) for l in open(sys.argv[1])]\" FILE`."),
        confirms=("file-partly-corrupt",),
        hides=("dataset-generation", "json-cut"),
    ),
    # ArrowTypeError: ("Expected bytes, got a 'int' object", 'Conversion failed for column id with type object')   |   ArrowInvalid: Could not convert 'abc' with type str: tried to convert to int64
    Pattern(
        id="arrow-type",
        regex=r"Expected bytes, got an? '\w+' object|Could not convert [^\n]{1,80} with type \w+: tried to convert to \w+|cannot mix (?:list and non-list|struct and non-struct)[^\n]*",
        meaning=t("A column holds values of more than one type (numbers among texts, lists among plain values), which a table cannot."),
        advice=t("One type in the whole column: df['NAME'] = df['NAME'].astype(str), or [] in place of None and of ''; the message names the column where it can."),
        hides=("dataset-generation",),
    ),
    # DatasetGenerationCastError: An error occurred while generating the dataset. All the data files must have the same columns, but at some point there are 1 new columns
    Pattern(
        id="dataset-columns-differ",
        regex=r"All the data files must have the same columns|DatasetGenerationCastError|CastError: Couldn't cast|because column names don't match",
        meaning=t("The files of one split do not have the same columns, or not the same types in them."),
        advice=t("Name the files that belong together (data_files='train/*.jsonl'): a metadata or dataset_info file was often read as well. Else give each record the same fields."),
        hides=("dataset-generation",),
    ),
    # datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset
    Pattern(
        id="dataset-generation",
        regex=r"An error occurred while generating the dataset",
        meaning=t("datasets could not read the files. This is not the error itself: it stands above, before 'The above exception was the direct cause'."),
        advice=t("Read the first exception; a broken line, mixed types in a column, a full disk under HF_HOME are usual. Delete the half-made cache of that set before the next try."),
        confirms=("file-partly-corrupt", "disk-nearly-full", "hf-cache-on-small-disk"),
        general=True,
    ),
    # ValueError: Feature type 'List' not found. Available feature types: ['Value', 'ClassLabel', ...]
    Pattern(
        id="dataset-written-newer",
        regex=r"Feature type '(?P<type>\w+)' not found\. Available feature types",
        meaning=t("The data set was written by a newer datasets than the one that reads it ({type} is unknown to it; List came with datasets 4).", type="?"),
        advice=t("`python -m pip install -U datasets`; a cached copy made by the newer one goes with it: download_mode='force_redownload'."),
        confirms=("dependent-library-too-old",),
    ),
    # ValueError: BuilderConfig 'en' not found. Available: ['default', 'zh']   |   ValueError: Config name is missing. Please pick one among the available configs: ['cola', 'sst2']
    Pattern(
        id="dataset-config",
        regex=r"BuilderConfig '(?P<name>[^'\n]+)' not found\. Available: (?P<there>[^\n]{0,200})|Config name is missing\.\s*Please pick one among the available configs: (?P<there2>[^\n]{0,200})",
        meaning=t("The data set has several configurations, and the one asked for is not among them: {there}{there2}", there="", there2=""),
        advice=t("load_dataset('NAME', 'CONFIGURATION') with one of those."),
    ),
    # ValueError: Unknown split "validation". Should be one of ['train', 'test'].
    Pattern(
        id="dataset-split",
        regex=r"Unknown split \"(?P<split>[^\"\n]+)\"\. Should be one of (?P<there>\[[^\n]{0,120}\])|Bad split: (?P<split2>\S+)\. Available splits: (?P<there2>\[[^\n]{0,120}\])",
        meaning=t("The data set has no split {split}{split2}; it has {there}{there2}.", split="", split2="", there="", there2=""),
        advice=t("split='train[:90%]' and 'train[90%:]', or dataset['train'].train_test_split(0.1, seed=42)."),
    ),
    # datasets.exceptions.NonMatchingSplitsSizesError   |   datasets.exceptions.ExpectedMoreSplitsError: {'test'}
    Pattern(
        id="dataset-sizes",
        regex=r"NonMatchingSplitsSizesError|ExpectedMoreSplits(?:Error)?\b|NonMatchingChecksumError|UnexpectedSplits(?:Error)?\b",
        meaning=t("What was downloaded is not as large as the data set's own record says: cut short, changed at its source, or only a part was asked for with data_files."),
        advice=t("download_mode='force_redownload'; where you want a part: verification_mode='no_checks'."),
        confirms=("file-partly-corrupt", "disk-nearly-full"),
    ),
    # ValueError: Column name ['token_type_ids'] not in the dataset. Current columns in the dataset: ['text', 'label']
    Pattern(
        id="dataset-column-name",
        regex=r"Column name (?P<name>\[[^\]\n]*\]|\w+) not in the dataset\. Current columns in the dataset: (?P<there>\[[^\n]{0,200}\])",
        meaning=t("The data set has no column {name}; it has {there}.", name="?", there="?"),
        advice=t("Use the name it has, or rename_column; what a map() with remove_columns took away is gone from then on."),
    ),
    # pyarrow.lib.ArrowInvalid: Column 1 named input_ids expected length 1000 but got length 2412
    Pattern(
        id="map-lengths",
        regex=r"Column \d+ named (?P<column>\w+) expected length (?P<wanted>\d+) but got length (?P<got>\d+)",
        meaning=t("map(batched=True) returned {got} rows of {column} for {wanted} rows: the old columns, which were kept, no longer fit.", got="?", wanted="?", column="?"),
        advice=t("remove_columns=dataset.column_names in that map() (texts cut into pieces give more rows than came in)."),
    ),
    # RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.
    Pattern(
        id="map-worker-died",
        regex=r"One of the subprocesses has abruptly died during map operation",
        meaning=t("A process of map(num_proc=...) was killed, nearly always because the host memory ran out."),
        advice=t("A smaller num_proc, and writer_batch_size=100 for large rows (pictures, audio); num_proc=None shows a Python error if there is one."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host", "shm-too-small"),
    ),
    # pyarrow.lib.ArrowInvalid: offset overflow while concatenating arrays   |   ArrowCapacityError: array cannot contain more than 2147483646 bytes
    Pattern(
        id="arrow-overflow",
        regex=r"offset overflow while concatenating arrays|array cannot contain more than \d+ bytes",
        meaning=t("One block of the table holds more than 2 GB of text or bytes, which its offsets cannot count."),
        advice=t("writer_batch_size=100 (or less) in map() and from_generator(); split huge records."),
    ),
    # ImportError: To support decoding audio data, please install 'torchcodec'.   |   RuntimeError: Could not load libtorchcodec. Likely causes:
    Pattern(
        id="torchcodec",
        regex=r"please install 'torchcodec'|Could not load libtorchcodec",
        meaning=t("datasets 4 decodes audio and video with torchcodec, which is missing or does not load: it wants ffmpeg's shared libraries, and a release that belongs to the torch."),
        advice=t("`apt-get install -y ffmpeg && python -m pip install torchcodec` (its page pairs releases with torch's); or `python -m pip install 'datasets<4' soundfile librosa`."),
    ),
    # FileNotFoundError: Couldn't find a module script at /workspace/accuracy/accuracy.py. Module 'accuracy' doesn't exist on the Hugging Face Hub either.
    Pattern(
        id="evaluate-module",
        regex=r"Couldn't find a module script at (?P<path>\S+)\. Module '(?P<name>[\w.-]+)' doesn't exist|Couldn't find '?(?P<name2>[\w.-]+)'? in the evaluation (?:module|modules)",
        meaning=t("evaluate fetches its metric ({name}{name2}) as code from the Hub, which this machine does not reach.", name="", name2=""),
        advice=t("sklearn.metrics needs no network (accuracy_score, f1_score); or clone the evaluate repository and load its folder: evaluate.load('evaluate/metrics/accuracy')."),
        confirms=("hub-offline", "platform-proxy-there"),
        hides=("hub-unreachable",),
    ),
)  # fmt: skip
