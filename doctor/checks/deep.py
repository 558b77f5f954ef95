"""Checks on what happened when torch was really used (``doctor check --deep``). Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.model import Deep, DeepStep, Evidence, Finding, Gpus, Level, Python, Reading, Text, Workload, t

MB = 1 << 20
SLOW_BYTES_PER_S = 50 * MB
ENOUGH_BYTES = 16 * MB
"""Less than this, read in less than a second, says nothing of a disk."""
_NATIVE_BF16 = 8.0
_BROKEN = ("failed", "crashed")


def _places(deep: Deep, *names: str) -> Iterator[tuple[int, DeepStep]]:
    for index, step in enumerate(deep.steps):
        if step.name in names:
            yield index, step


def _proof(index: int, step: DeepStep) -> tuple[Evidence, ...]:
    rows = (("status", step.status), ("detail", step.detail))
    return tuple(Evidence(fact=f"deep.steps[{index}].{name}", value=value) for name, value in rows if value)


def _error(text: str) -> str:
    """Return what an error says on one line: its first, with the next where that one only announces it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])[:300]


def _python(python: Reading[Python]) -> str:
    executable = python.value.executable if python.value else None
    return shlex.quote(executable) if executable else "python"


@check("torch-import-fails")
def torch_can_be_imported(deep: Deep, python: Reading[Python]) -> Iterator[Finding]:
    """Can the examined interpreter import torch?"""
    for index, step in _places(deep, "import", "begin"):
        if step.subject not in ("torch", "python") or step.status not in _BROKEN:
            continue
        said = _error(step.detail)
        yield Finding(
            id="torch-import-fails",
            level="fail",
            subject=step.subject,
            title=t("import torch ends the interpreter itself ({how})", how=said)
            if step.status == "crashed" and step.subject == "torch"
            else t("the interpreter ended before anything could be tried ({how})", how=said)
            if step.subject == "python"
            else t("import torch fails: {error}", error=said),
            evidence=_proof(index, step),
            advice=t("See it whole: {python} -X faulthandler -c 'import torch'; `doctor explain` says what the message means.", python=_python(python)),
            cause_of=("transformers-import-fails", "nccl-round-trip-fails"),
        )  # fmt: skip


@check("torch-sees-no-gpu")
def torch_sees_the_cards(deep: Deep, gpus: Gpus, python: Reading[Python]) -> Iterator[Finding]:
    """Does torch see a GPU, where the driver has one?"""
    cards = [gpu for gpu in gpus.items if not gpu.error]
    if deep.cuda_available is not False or not cards:
        return
    tried = next(_places(deep, "see-gpus"), None)
    said = _error(tried[1].detail) if tried else ""
    yield Finding(
        id="torch-sees-no-gpu",
        level="fail",
        subject="torch",
        title=t("torch sees no GPU, the driver has {count}: {error}", count=len(cards), error=said)
        if said
        else t("torch sees no GPU, the driver has {count}", count=len(cards)),
        evidence=(
            *evidence(deep__cuda_available=deep.cuda_available, deep__torch_version=deep.torch_version, deep__torch_cuda=deep.torch_cuda or '""'),
            *(_proof(*tried) if tried and said else ()),
            Evidence(fact="gpus.items[0].name", value=cards[0].name),
        ),
        advice=t("See the reason: {python} -c 'import torch; torch.cuda.init()'. When nothing else is found here, restart the container or the instance.", python=_python(python)),
    )  # fmt: skip


@check("gpu-matmul-fails", "cpu-matmul-fails")
def devices_compute(deep: Deep) -> Iterator[Finding]:
    """Does a product and a backward pass work on every device, with the right result?"""
    told: set[str] = set()
    for index, step in _places(deep, "start", "matmul", "backward", "fp16", "bf16"):
        if step.status not in _BROKEN or step.subject in told or not _counts(deep, step):
            continue
        told.add(step.subject)
        yield _does_not_compute(deep, index, step)


def _counts(deep: Deep, step: DeepStep) -> bool:
    """bf16 is only promised by cards that have it in hardware."""
    if step.name != "bf16":
        return True
    capability = _device_field(deep, step.subject, "compute_capability")
    return step.status == "crashed" or (bool(capability) and float(capability) >= _NATIVE_BF16)


def _device_field(deep: Deep, subject: str, field: str) -> str:
    found = next((item for item in deep.devices if subject == f"cuda:{item.index}"), None)
    return str(getattr(found, field)) if found else ""


def _does_not_compute(deep: Deep, index: int, step: DeepStep) -> Finding:
    name = _device_field(deep, step.subject, "name")
    device = f"{step.subject} ({name})" if name else step.subject
    said = _error(step.detail)
    full = "out of memory" in step.detail.lower()
    title = (
        t("{device} has no memory left for one small product: {error}", device=device, error=said)
        if full
        else t("{device} computes wrongly ({what}): {error}", device=device, what=step.name, error=said)
        if "result is wrong" in step.detail
        else t("{device} cannot do {what}: {error}", device=device, what=step.name, error=said)
    )
    on_cpu = step.subject == "cpu"
    return Finding(
        id="cpu-matmul-fails" if on_cpu else "gpu-matmul-fails",
        level="fail",
        subject=device,
        title=title,
        evidence=_proof(index, step),
        advice=_what_to_do(on_cpu, full, step),
        cause_of=() if on_cpu else ("nccl-round-trip-fails",),
    )


def _what_to_do(on_cpu: bool, full: bool, step: DeepStep) -> Text:
    if on_cpu:
        return t("The torch build and this CPU do not fit (SIGILL), or a library of it is damaged: install torch again, or take another machine.")  # fmt: skip
    if full:
        return t("See who holds the memory (`nvidia-smi`), and free it before the run starts.")
    if "result is wrong" in step.detail:
        return t("Do not train on this card: take another machine, and tell the provider.")
    return t("`doctor explain` says what the message means. Where another torch works on this card it is the build, where none does the card: take another machine.")  # fmt: skip


@check("transformers-import-fails")
def companions_can_be_imported(deep: Deep, python: Reading[Python]) -> Iterator[Finding]:
    """Can transformers and accelerate be imported, with their Trainer and models?"""
    for index, step in _places(deep, "import"):
        if step.subject == "torch" or step.status not in _BROKEN:
            continue
        yield Finding(
            id="transformers-import-fails",
            level="fail",
            subject=step.subject,
            title=t("import {package} fails: {error}", package=step.subject, error=_error(step.detail)),
            evidence=_proof(index, step),
            advice=t("See it whole: {python} -c 'from transformers import Trainer'; the last file named in it belongs to the package that does not fit.", python=_python(python)),
        )  # fmt: skip


@check("nccl-round-trip-fails")
def processes_reach_each_other(deep: Deep, python: Reading[Python]) -> Iterator[Finding]:
    """Do the processes of one run reach each other: NCCL between cards, gloo where there is one card or none?"""
    for index, step in _places(deep, "round-trip"):
        if step.status == "ok":
            continue
        together = step.detail.startswith(f"{deep.ranks} of {deep.ranks} ")
        sure = step.status != "timed-out" or together
        level: Level = "note" if step.subject != "nccl" else "fail" if sure else "warn"
        yield Finding(
            id="nccl-round-trip-fails",
            level=level,
            subject=step.subject,
            title=t("{ranks} {ranks:process|processes} that {ranks:adds|add} up a tensor over {backend} {ranks:was|were} not done after {seconds} s ({how})",
                    ranks=deep.ranks or 0, backend=step.subject, seconds=round(step.seconds or 0), how=step.detail)
            if step.status == "timed-out"
            else t("{ranks} {ranks:process|processes} could not add up a tensor over {backend}: {error}",
                   ranks=deep.ranks or 0, backend=step.subject, error=_error(step.detail)),
            evidence=_proof(index, step) + evidence(deep__ranks=deep.ranks),
            advice=t("Run it again with NCCL_DEBUG=INFO and read the first WARN. A hang between GeForce cards: export NCCL_P2P_DISABLE=1; in a container look at /dev/shm too.")
            if step.subject == "nccl"
            else t("It matters only for runs of several processes: `unset GLOO_SOCKET_IFNAME`, and see that this host's name is in /etc/hosts."),
        )  # fmt: skip


@check("deep-check-timed-out")
def every_step_ended(deep: Deep, python: Reading[Python]) -> Iterator[Finding]:
    """Did every step of the deep check end in time?"""
    for index, step in enumerate(deep.steps):
        if step.status != "timed-out" or step.name == "round-trip":
            continue
        what = f"{step.name} {step.subject}"
        yield Finding(
            id="deep-check-timed-out",
            level="warn",
            subject=what,
            title=t("{what} did not end within {seconds} s (it was in: {where})", what=what, seconds=step.seconds or 0, where=step.detail)
            if step.detail
            else t("{what} did not end within {seconds} s", what=what, seconds=step.seconds or 0),
            evidence=_proof(index, step) + evidence(deep__limit_s=deep.limit_s),
            advice=t("It hangs, or the disk it reads from is very slow: try once more with --deep-timeout 300, and watch it with `doctor stacks PID`."),
            cause_of=("torch-sees-no-gpu",),
        )  # fmt: skip


@check("data-read-speed")
def the_data_is_read_fast(deep: Deep, workload: Reading[Workload]) -> Iterator[Finding]:
    """How fast is the data read from its disk, and does that hold up the run that reads it?"""
    for index, step in _places(deep, "read"):
        if step.status in _BROKEN:
            yield Finding(
                id="data-read-speed",
                level="warn",
                subject=step.subject,
                title=t("{path} cannot be read: {error}", path=step.subject, error=_error(step.detail)),
                evidence=_proof(index, step),
            )
    speed, count = deep.read_bytes_per_s, deep.read_bytes or 0
    step_s = next((step.seconds or 0.0 for _, step in _places(deep, "read")), 0.0)
    if speed is None or deep.read_path is None or (count < ENOUGH_BYTES and step_s < 1.0):
        return
    mine = _reads_there(workload.value.data_path if workload.value else None, deep.read_path)
    slow = speed < SLOW_BYTES_PER_S and deep.read_past_cache is not False
    fields: dict[str, str | int | float] = {"path": deep.read_path, "speed": round(speed / MB, 1), "files": deep.read_files or 0}  # fmt: skip
    yield Finding(
        id="data-read-speed",
        level="warn" if slow and mine else "note",
        subject=deep.read_path,
        title=t("{path} reads at {speed} MB/s from its disk, and the run reads its data there ({files} {files:file|files} measured)", **fields)
        if slow and mine
        else t("{path} reads at {speed} MB/s ({files} {files:file|files} measured; a part may have come from memory)", **fields)
        if deep.read_past_cache is False
        else t("{path} reads at {speed} MB/s from its disk ({files} {files:file|files} measured)", **fields),
        evidence=evidence(deep__read_bytes_per_s=speed, deep__read_bytes=deep.read_bytes, deep__read_files=deep.read_files, deep__read_past_cache=deep.read_past_cache),
        advice=t("Copy it to a faster disk before the run, or pack many small files into few large ones (tar, Parquet, Arrow).") if slow else None,
    )  # fmt: skip


def _reads_there(data_path: str | None, read_path: str) -> bool:
    if not data_path:
        return False
    one, other = data_path.rstrip("/") + "/", read_path.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)
