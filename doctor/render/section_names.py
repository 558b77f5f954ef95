"""The sections of the facts in a reader's words: what was not looked at, or could not be."""

from __future__ import annotations

from doctor.language import current_language, say
from doctor.model import t

_NAMES = {
    "host": t("host"),
    "container": t("container"),
    "platform": t("rental platform"),
    "driver": t("driver"),
    "gpus": t("GPUs"),
    "gpu_processes": t("processes on the GPUs"),
    "kernel_log": t("kernel log"),
    "python": t("Python"),
    "packages": t("installed packages"),
    "torch": t("torch"),
    "libraries": t("CUDA libraries"),
    "storage": t("disks"),
    "environment": t("environment variables"),
    "processes": t("processes"),
    "project": t("working directory"),
    "workload": t("the run"),
    "incident": t("the failure"),
    "data": t("data"),
    "deep": t("the trial of --deep"),
    "provenance": t("where packages came from"),
}


def section_name(section: str) -> str:
    """Return what a person calls ``section``; one that is not known here keeps its own name."""
    return say(_NAMES[section]) if section in _NAMES else section


def listed(names: list[str]) -> str:
    """Return the names one after the other, parted as the reader's language does."""
    return ("、" if current_language() == "zh" else ", ").join(names)
