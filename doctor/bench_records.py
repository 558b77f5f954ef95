"""What a comparison of settings gave: each variant's figures and how it stands against *before*. Pure."""

from __future__ import annotations

from typing import Any, Literal

from doctor.bench_stats import Interval
from doctor.model import Record
from runner.text import Text

Loss = Literal["equal", "rounding", "other rows", "differs", "not compared"]


class Measured(Record, frozen=True, kw_only=True):
    """One variant in one fresh process: ``bench.json`` of :mod:`runner.child.bench_steps`."""

    wall_s: float
    cpu_s: float
    windows: int
    samples: int
    tokens: int
    padded_tokens: int
    warm_up_s: float
    """The passes before the steps: compiling, where something is compiled."""
    loss: float
    """Of the first samples, without dropout, before any update."""
    grad_norm: float
    losses: list[float]
    """Of each step, with dropout, in the variant's own order."""
    peak_bytes: int
    """During the steps: of tensors on a GPU, resident in the process on a CPU."""
    peak_is_exact: bool = True
    """False: this kernel counts the peak from the process's start, loading the model included."""

    @property
    def samples_per_s(self) -> float:
        return self.samples / self.wall_s


class Row(Record, frozen=True, kw_only=True):
    """One line of the table."""

    name: str
    title: Text
    settings: dict[str, Any] = {}
    runs: int = 0
    speed: Interval | None = None
    """Samples a second, by before's of the same pair; packed rows: tokens a second."""
    cpu: Interval | None = None
    """CPU seconds a sample, by before's."""
    memory_ratio: float | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    """Real ones: padding is not counted."""
    padding_share: float | None = None
    peak_bytes: int | None = None
    warm_up_s: float | None = None
    final_loss: float | None = None
    """The mean over the last third of the steps."""
    loss: Loss = "not compared"
    loss_difference: float | None = None
    """Relative, of the first samples' loss or gradient norm: the larger."""
    verdict: Literal[
        "before", "faster", "slower", "no proven difference", "too few pairs", "skipped", "failed"
    ]
    why: Text | None = None


class Comparison(Record, frozen=True, kw_only=True):
    """A whole comparison."""

    profile: str
    device: str
    model: str
    batch_size: int
    max_length: int
    steps: int
    pairs_wanted: int
    rows: list[Row]
    is_command: bool = False
    """A command of the user's own: ``model`` is the command, and of the figures only ratios are known."""
    by_steps: bool | None = None
    """Of a command: compared by the steps that its log told; false: by whole runs."""
    winners: dict[str, Any] = {}
    """The settings that were proven faster, together; of a command: the variables."""
    change: dict[str, Any] = {}
    """What of them the profile has not, and what of its own was proven slower, with the value to take instead."""
    in_profile: list[str] = []
    """The names of the rows that were proven faster and are the profile's way already."""
    notes: list[Text] = []
    """What was otherwise than asked for: smaller micro-batches, pairs taken over from before."""
    is_kept: bool = False
    """For a day: the same command takes over what was measured, goes on with what is missing, and writes what it is asked to."""
    seconds: float = 0.0
    stopped: Text | None = None
    """Why it ended before every pair was measured."""
    load_begin: float | None = None
    load_end: float | None = None
    """``uptime``'s first figure: other work on this machine."""
