"""What short real work on each device gave (``doctor check --deep``)."""

from __future__ import annotations

from typing import Literal

from doctor.model.readings import Record, Section

StepStatus = Literal["ok", "failed", "crashed", "timed-out"]


class DeepStep(Record, frozen=True):
    """One thing that was tried in the examined interpreter."""

    name: str
    """import, see-gpus, start, matmul, backward, fp16, bf16, round-trip, read."""
    subject: str
    """The package, the device (cpu, cuda:0), the backend (nccl, gloo), the path."""
    status: StepStatus
    """``crashed``: the process died in it. ``timed-out``: it did not end."""
    seconds: float | None = None
    detail: str = ""
    """The version, the error's own text, the signal, or where it hung."""


class DeepDevice(Record, frozen=True):
    """A card as torch sees it."""

    index: int
    name: str = ""
    compute_capability: str = ""
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None


class Deep(Section, frozen=True):
    """What happened when torch was really used (``doctor check --deep``)."""

    steps: tuple[DeepStep, ...] = ()
    finished: bool = False
    """False: it was ended before the last step."""
    limit_s: float | None = None
    not_installed: tuple[str, ...] = ()
    torch_version: str | None = None
    torch_cuda: str | None = None
    """``torch.version.cuda``; "" for a build without CUDA."""
    cuda_available: bool | None = None
    device_count: int | None = None
    devices: tuple[DeepDevice, ...] = ()
    backend: str | None = None
    ranks: int | None = None
    read_path: str | None = None
    read_bytes: int | None = None
    read_files: int | None = None
    read_bytes_per_s: float | None = None
    read_past_cache: bool | None = None
    """False: the file system has no direct reads, so memory may have served a part."""

    def step(self, name: str, subject: str) -> DeepStep | None:
        return next((item for item in self.steps if (item.name, item.subject) == (name, subject)), None)
