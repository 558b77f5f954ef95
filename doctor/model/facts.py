"""Everything known of a machine, and the file that holds it."""

from __future__ import annotations

from doctor.model.deep import Deep
from doctor.model.installed import Environment, Libraries, Packages, Processes, Python, Storage, Torch
from doctor.model.machine import Container, Driver, GpuProcesses, Gpus, Host, KernelLog, Platform
from doctor.model.origin import Provenance
from doctor.model.purpose import Data, Incident, Project, Workload
from doctor.model.readings import SCHEMA, Reading, Record, Section
from runner.text import Text


class Facts(Record, frozen=True):
    """Everything known of a machine. Field names are what a check's parameters are called."""

    host: Reading[Host] = Reading(status="skipped")
    container: Reading[Container] = Reading(status="skipped")
    platform: Reading[Platform] = Reading(status="skipped")
    driver: Reading[Driver] = Reading(status="skipped")
    gpus: Reading[Gpus] = Reading(status="skipped")
    gpu_processes: Reading[GpuProcesses] = Reading(status="skipped")
    kernel_log: Reading[KernelLog] = Reading(status="skipped")
    python: Reading[Python] = Reading(status="skipped")
    packages: Reading[Packages] = Reading(status="skipped")
    torch: Reading[Torch] = Reading(status="skipped")
    libraries: Reading[Libraries] = Reading(status="skipped")
    storage: Reading[Storage] = Reading(status="skipped")
    environment: Reading[Environment] = Reading(status="skipped")
    processes: Reading[Processes] = Reading(status="skipped")
    project: Reading[Project] = Reading(status="skipped")
    workload: Reading[Workload] = Reading(status="skipped")
    incident: Reading[Incident] = Reading(status="skipped")
    data: Reading[Data] = Reading(status="skipped")
    deep: Reading[Deep] = Reading(status="skipped")
    provenance: Reading[Provenance] = Reading(status="skipped")


SECTIONS: dict[str, type[Section]] = {
    "host": Host,
    "container": Container,
    "platform": Platform,
    "driver": Driver,
    "gpus": Gpus,
    "gpu_processes": GpuProcesses,
    "kernel_log": KernelLog,
    "python": Python,
    "packages": Packages,
    "torch": Torch,
    "libraries": Libraries,
    "storage": Storage,
    "environment": Environment,
    "processes": Processes,
    "project": Project,
    "workload": Workload,
    "incident": Incident,
    "data": Data,
    "deep": Deep,
    "provenance": Provenance,
}


class KnownGood(Record, frozen=True):
    """What is known of an environment that comes with the doctor."""

    tested: bool = False
    """It was restored from the very file, compared file by file, and trained with; else `restore` wants --untested."""
    how: Text | None = None
    """What was done with it, on what machine; of an untested one, what could not be."""
    before: str = ""
    """No release in it is younger than this day: they existed together."""
    evidence: tuple[str, ...] = ()
    """Where a digest comes from that no index within reach confirmed."""


class Snapshot(Record, frozen=True):
    """A machine as a file. Ours is read by probes, anyone else's from disk; from there on nobody can tell."""

    schema: int = SCHEMA
    taken_at: str = ""
    """UTC, ISO 8601."""
    tool: str = ""
    label: str = ""
    redacted: bool = False
    facts: Facts = Facts()
    known_good: KnownGood | None = None
    """Only of those in snapshots/."""
    unknown_keys: tuple[str, ...] = ()
    """Paths in the file that this version does not know; never judged."""
