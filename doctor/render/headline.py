"""The two lines above every answer: which environment was judged, and on what machine."""

from __future__ import annotations

from doctor.language import say
from doctor.model import Gpu, Snapshot, t
from doctor.render.layout import human_bytes
from runner.strings import shown

PART_LIMIT = 400
"""No version, place or reason is longer; what is, came from a broken or hostile file."""
NAME_LIMIT = 80


def environment_line(snapshot: Snapshot) -> str:
    """Return ``Judged: /root/venv/bin/python 3.11.7 (VIRTUAL_ENV) · torch 2.6.0+cu124 · transformers 4.49.0``."""
    python, torch, packages = snapshot.facts.python, snapshot.facts.torch, snapshot.facts.packages
    parts = []
    if python.value is not None:
        name = shown(python.value.executable or "python")
        chosen = f" ({shown(python.value.chosen_by)})" if python.value.chosen_by else ""
        parts.append(f"{name} {python.value.version or ''}".strip() + chosen)
        if dead := python.value.unread.get("executable"):
            parts.append(say(t("IT CANNOT RUN: {why}", why=say(dead))))
    elif python.status == "failed" and python.why:
        parts.append(say(t("Python: could not look ({why})", why=say(python.why))))
    if torch.value is not None:
        parts.append(f"torch {torch.value.version}" if torch.value.version else "torch ?")
    elif torch.status == "absent":
        parts.append(say("no torch"))
    transformers = packages.value.version("transformers") if packages.value else None
    if transformers:
        parts.append(f"transformers {shown(transformers)}")
    nothing = say("not recorded") if python.status == "skipped" else say("no Python environment")
    return say(t("Judged: {what}", what=_joined(parts) or nothing))


def machine_line(snapshot: Snapshot) -> str:
    """Return ``Machine: AutoDL · 2 x RTX 4090 24.0 GB · driver 550.90.07 (CUDA 12.4) · 16 CPUs · 62.0 GB memory``."""
    facts = snapshot.facts
    parts = [shown(snapshot.label)] if snapshot.label else []
    if facts.platform.value and facts.platform.value.name:
        parts.append(shown(facts.platform.value.name))
    parts.append(_cards(snapshot))
    driver = facts.driver.value
    if driver and (driver.version or driver.kernel_module_version):
        cuda = f" (CUDA {driver.cuda_version})" if driver.cuda_version else ""
        unloaded = driver.nvml_error == 9 and not driver.kernel_module_version
        version = driver.version or driver.kernel_module_version or ""
        words = t("driver {version}, not loaded", version=version) if unloaded else t("driver {version}", version=version)  # fmt: skip
        parts.append(say(words) + cuda)
    parts += _limits(snapshot)
    return say(t("Machine: {what}", what=_joined(parts) or say("not recorded")))


def _joined(parts: list[str]) -> str:
    """Return the parts on one line, safe for a terminal, none of them without end."""
    return " · ".join(_cut(shown(part), PART_LIMIT) for part in parts if part)


def _cut(part: str, limit: int) -> str:
    return part if len(part) <= limit else part[: limit - 1] + "…"


def _cards(snapshot: Snapshot) -> str:
    gpus, driver = snapshot.facts.gpus, snapshot.facts.driver
    if gpus.status == "failed":
        return say(t("GPUs: could not look ({why})", why=say(gpus.why) if gpus.why else "?"))
    if gpus.value is None or not gpus.value.items:
        looked = gpus.status == "absent" or (gpus.value is not None) or driver.status == "absent"
        return say("no NVIDIA GPU") if looked else ""
    groups: dict[tuple[str, str], int] = {}
    for gpu in gpus.value.items:
        key = (_card_name(gpu), human_bytes(gpu.memory_total_bytes) if gpu.memory_total_bytes else "")
        groups[key] = groups.get(key, 0) + 1
    return ", ".join(_card(count, name, memory) for (name, memory), count in groups.items())


def _card(count: int, name: str, memory: str) -> str:
    if not name:
        return say(t("{count} x no answer", count=count))
    return f"{count} x {_cut(name, NAME_LIMIT)} {memory}".strip()


def _card_name(gpu: Gpu) -> str:
    """Return a card's name, short; empty for one that does not even tell it."""
    return shown(gpu.name).removeprefix("NVIDIA ") or ("" if gpu.error else "GPU")


def _limits(snapshot: Snapshot) -> list[str]:
    host, container = snapshot.facts.host.value, snapshot.facts.container.value
    cores = container.cpu_quota_cores if container else None
    if cores is None and host:
        cores = host.affinity_count or host.cpu_count
    memory = container.memory_limit_bytes if container else None
    if memory is None and host:
        memory = host.memory_total_bytes
    out = [say(t("{count} {count:CPU|CPUs}", count=f"{cores:g}"))] if cores else []
    return out + ([say(t("{size} memory", size=human_bytes(memory)))] if memory else [])
