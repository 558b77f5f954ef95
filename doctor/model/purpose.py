"""What the person wants of it: the project, the script, what went wrong, the data."""

from __future__ import annotations

from doctor.model.readings import Record, Section


class Requirement(Record, frozen=True):
    line: str
    file: str = ""


class Project(Section, frozen=True):
    """What lies in the working directory and would act on the environment."""

    cwd: str | None = None
    requirements: tuple[Requirement, ...] = ()
    shadowing_files: tuple[str, ...] = ()
    """Files here that hide an installed module (torch.py, random.py)."""
    shadowing_folder: str | None = None
    """Where ``shadowing_files`` lie; None: in ``cwd``. A script's own folder comes first on its path."""
    is_package: bool | None = None
    """It has an ``__init__.py``: the inside of a package, whose files are imported by its name."""


class Workload(Section, frozen=True):
    """The run that is meant or was had: from a profile, a script, or a log."""

    source: str = ""
    output_dir: str | None = None
    data_path: str | None = None
    data_bytes: int | None = None
    data_files: int | None = None
    num_workers: int | None = None
    gpu_utilization_pct: float | None = None
    model_parameters: int | None = None
    optimizer: str | None = None
    training_args: dict[str, str | int | float | bool | None] = {}
    model_accepts_loss_kwargs: bool | None = None
    colocated: tuple[str, ...] = ()
    checkpoint_bytes: int | None = None
    checkpoints_kept: int | None = None
    memory_needed_bytes: int | None = None
    """Peak GPU memory that the run needs on one card, from ``doctor plan``."""
    memory_needed_low_bytes: int | None = None
    """The low end of that prediction."""
    imports: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """What the run does that asks something of the machine: trainer, torch-compile, flash-attention-2 ... (purpose.py)."""
    seeds_set: tuple[str, ...] | None = None
    deterministic: bool | None = None
    scales_loss_itself: bool | None = None


class Incident(Section, frozen=True):
    """How a run ended: numbers and lines from its log."""

    log_lines: tuple[str, ...] = ()
    exit_code: int | None = None
    oom_killed: bool | None = None
    torch_allocated_bytes: int | None = None
    torch_reserved_bytes: int | None = None
    oom_tried_bytes: int | None = None
    own_gpu_process_bytes: int | None = None
    newly_initialized: tuple[str, ...] | None = None
    unused_weights: tuple[str, ...] | None = None
    mean_abs_diff: float | None = None
    max_abs_diff: float | None = None
    output_scale: float | None = None


class InspectedFile(Record, frozen=True):
    path: str
    kind: str = ""
    """text, checkpoint, vocab, library, script, folder ..."""
    encoding: str | None = None
    """utf-8, utf-8-bom, gb18030, utf-16, mixed, binary."""
    bad_lines: int | None = None
    lines: int | None = None
    size_bytes: int | None = None
    problem: str = ""
    """What an inspection found wrong: ``zip end-of-central-directory missing``; empty: nothing."""
    pickle_globals: tuple[str, ...] | None = None
    note: str = ""


class Data(Section, frozen=True):
    """What a look into data, labels, vocabulary and checkpoints found."""

    files: tuple[InspectedFile, ...] = ()
    num_labels: int | None = None
    label_values: tuple[int, ...] | None = None
    tokenizer: str | None = None
    tokenizer_size: int | None = None
    embedding_rows: int | None = None
    max_token_id: int | None = None
    unknown_token_share: float | None = None
    unknown_characters: tuple[str, ...] = ()
    vanishing_characters: tuple[str, ...] = ()
    sample: str | None = None
