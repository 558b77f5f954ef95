"""The machine's facts in short, beside the findings: what was read, what is not there, what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.model import (
    Container,
    Driver,
    Gpus,
    Host,
    Packages,
    Platform,
    Python,
    Reading,
    Snapshot,
    Storage,
    Torch,
)
from doctor.render.layout import human_bytes, indent, pad
from doctor.tui.words import LEVEL_STYLES, words_of
from runner.strings import printable
from runner.text import t

_LABEL = 12
PACKAGES = (
    "transformers",
    "accelerate",
    "datasets",
    "numpy",
    "peft",
    "deepspeed",
    "bitsandbytes",
    "flash-attn",
)
"""Named with their versions when they are installed: what a training environment stands or falls with."""


def fact_rows(snapshot: Snapshot, width: int) -> list[Styled]:
    """Return the rows of the panel."""
    facts = snapshot.facts
    table: Sequence[tuple[str, Reading[Any], Callable[[Any], Iterator[str]]]] = (
        (say("Platform"), facts.platform, _platform),
        (say("Container"), facts.container, _container),
        ("GPU", facts.gpus, _gpus),
        (say("Driver"), facts.driver, _driver),
        ("Python", facts.python, _python),
        ("torch", facts.torch, _torch),
        (say("Packages"), facts.packages, _packages),
        (say("Host"), facts.host, _host),
        (say("Disks"), facts.storage, _disks),
    )
    return [row for label, reading, lines in table for row in _section(label, reading, lines, width)]


def _section(
    label: str, reading: Reading[Any], lines: Callable[[Any], Iterator[str]], width: int
) -> Iterator[Styled]:
    words, style = _answer(reading, lines)
    head = pad(label, _LABEL)
    for index, entry in enumerate(words):
        for row in indent(printable(entry), max(20, width - _LABEL), "", "  "):
            yield Styled.assemble((head, "bold"), (row, style))
            head = " " * _LABEL
        if index > 30:
            return


def _answer(reading: Reading[Any], lines: Callable[[Any], Iterator[str]]) -> tuple[list[str], str]:
    """Return what is known and how it is shown; the four answers of a reading never look the same."""
    if reading.status == "ok":
        return list(lines(reading.value)) or [say("read; nothing to show")], ""
    if reading.status == "absent":
        return [say("looked for, not there")], "dim"
    if reading.status == "failed":
        why = words_of(reading.why) or say("it could not be read")
        return [say(t("? could not look: {why}", why=why))], LEVEL_STYLES["unknown"]
    return [say("nobody looked")], "dim"


def _platform(platform: Platform) -> Iterator[str]:
    yield platform.name or say("none recognised")


def _container(container: Container) -> Iterator[str]:
    if container.inside is None:
        return
    yield (container.kind or say("inside one")) if container.inside else say("outside any")
    if container.cpu_quota_cores:
        yield say(t("quota: {cores} {cores:core|cores}", cores=f"{container.cpu_quota_cores:g}"))
    if container.memory_limit_bytes:
        yield say(t("memory limit: {size}", size=human_bytes(container.memory_limit_bytes)))


def _gpus(gpus: Gpus) -> Iterator[str]:
    for gpu in gpus.items:
        memory = f"{human_bytes(gpu.memory_used_bytes)} / {human_bytes(gpu.memory_total_bytes)}"
        yield f"{gpu.index} {gpu.name or '?'} · {memory}" + (f" · {gpu.error}" if gpu.error else "")


def _driver(driver: Driver) -> Iterator[str]:
    version = driver.version or driver.kernel_module_version
    if version:
        yield version + (f" · CUDA {driver.cuda_version}" if driver.cuda_version else "")
    if driver.kernel_module_version and driver.version not in (None, driver.kernel_module_version):
        yield say(t("kernel module: {version}", version=driver.kernel_module_version))


def _python(python: Python) -> Iterator[str]:
    yield f"{python.version or '?'} · {python.kind or '?'}"
    if python.executable:
        yield python.executable


def _torch(torch: Torch) -> Iterator[str]:
    built = say("built without CUDA") if torch.cuda == "" else f"CUDA {torch.cuda or '?'}"
    yield f"{torch.version or '?'} · {built}"


def _packages(packages: Packages) -> Iterator[str]:
    yield say(t("{count} installed", count=len(packages.items))) + (
        "" if packages.complete else " · " + say("the list is not whole")
    )
    named = [f"{name} {packages.version(name)}" for name in PACKAGES if packages.version(name)]
    if named:
        yield " · ".join(named)


def _host(host: Host) -> Iterator[str]:
    parts = [host.os_name, host.kernel and f"Linux {host.kernel}", host.glibc and f"glibc {host.glibc}"]
    yield " · ".join(part for part in parts if part)
    if host.cpu_model or host.cpu_count:
        cores = host.affinity_count or host.cpu_count or "?"
        yield f"{cores} × {host.cpu_model or 'CPU'}"
    if host.memory_total_bytes:
        free = human_bytes(host.memory_available_bytes)
        yield say(
            t("memory: {free} of {total} available", free=free, total=human_bytes(host.memory_total_bytes))
        )


def _disks(storage: Storage) -> Iterator[str]:
    seen: set[str] = set()
    for place in storage.places:
        mount = storage.mount(place.mount or place.path)
        if mount is None or mount.path in seen:
            continue
        seen.add(mount.path)
        if mount.error:
            yield f"{mount.path} · {mount.error}"
            continue
        free, size = human_bytes(mount.free_bytes), human_bytes(mount.size_bytes)
        yield say(t("{path}: {free} of {size} free", path=mount.path, free=free, size=size))
