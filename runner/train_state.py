"""Where a run is, beside its weights and moments: ``state.json`` of a checkpoint. No torch."""

from __future__ import annotations

import msgspec


class TrainState(msgspec.Struct, kw_only=True):
    """Where a run is, beside its weights and moments. Everything else is a function of the plan and these
    numbers."""

    plan_digest: str
    torch_version: str
    threads: int
    device_name: str
    micro_batch_size: int
    """As learnt from running out of memory, or the plan's."""
    eval_batch_size: int
    gradient_checkpointing: bool
    windows_done: int = 0
    """Windows consumed, skipped ones too: the position in the data."""
    updates_done: int = 0
    """Optimizer updates made: the position in the schedule."""
    samples_done: int = 0
    evaluated_at: int = -1
    """``windows_done`` of the last finished evaluation."""
    best_value: float | None = None
    best_window: int | None = None
    evaluations_since_best: int = 0
    stopped_early: bool = False
    non_finite_windows: int = 0
    bad_windows_in_a_row: int = 0
    scaler: dict[str, float] = {}
    aliases: dict[str, str] = {}
    """Tied weights: name to the name under which the tensor is stored."""
    metrics: dict[str, float] = {}
    cpu_capability: str = ""
    """The widest instructions torch uses here (``AVX512``): they add in another order. Empty: not recorded."""
    transformers_version: str = ""
    world_size: int = 1
    """Processes that train together; 0 in none: a sum over them is made in the order of their number."""
    strategy: str = ""
    """``ddp``, ``fsdp`` or ``deepspeed``; empty: one process."""
    deepspeed_version: str = ""
    """Where it trains: it puts gradients into other buckets from release to release."""
    base: str = ""
    """Name and revision of the model whose weights partly stand still; those are not stored but opened again."""
    base_sha256: str = ""
    """Of the weights that stand still (see :func:`runner.base.base_hash`); empty: all weights are stored here."""
    approximate: list[str] = []
    """What was different when the run was continued with ``--approximate``: since then it is not exact."""
