"""Which rental platform this is, by the markers of tables/platforms.toml: variables, paths, the host name's beginning."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from doctor.model import Platform, Reading, Text, ok, t
from doctor.probes import cgroup
from doctor.probes.gaps import Gaps, reason_of
from doctor.probes.mountinfo import parse_mountinfo
from doctor.tables.platforms import PlatformRow, recognise

if TYPE_CHECKING:
    from doctor.probes import Context

_SMALL_INSTANCE_BYTES = 4 << 30
"""AutoDL's no-card mode has about 2 GB; no instance with a card has so little."""


def probe(context: Context) -> Reading[Platform]:
    """Recognise the platform. *absent*: looked, and it is none that we know."""
    first, trouble = first_process_variables(context)
    hidden: list[str] = []
    found = recognise(
        {*context.environ, *first}, lambda path: _exists(context, path, hidden), _hostname(context)
    )
    if found is None:
        return Reading(status="absent", why=_why_none(trouble, hidden), source="tables/platforms.toml")
    row, evidence = found
    platform = Platform(
        name=row.name,
        evidence=evidence,
        no_gpu_mode=no_gpu_mode(context) if row.name == "autodl" else None,
        gpus_rented=parse_count({**first, **context.environ}.get(row.gpu_count_variable, "")),
        network_turbo=_exists(context, "/etc/network_turbo", hidden),
        unread={} if trouble is None or _has_count(row, context) else {"gpus_rented": trouble},
    )
    return ok(platform, "variables, marker files, host name")


def _has_count(row: PlatformRow, context: Context) -> bool:
    return not row.gpu_count_variable or row.gpu_count_variable in context.environ


def _why_none(trouble: Text | None, hidden: list[str]) -> Text:
    if hidden:
        return t(
            "no known rental platform shows, but {paths} could not be looked at", paths=", ".join(hidden)
        )
    if trouble is not None:
        return t("no known rental platform shows; the variables of process 1 could not be read")
    return t("no known rental platform shows")


def first_process_variables(context: Context) -> tuple[dict[str, str], Text | None]:
    """Return the variables that the container was started with, which an SSH session often lacks.

    Only names and GPU counts are used of them; nothing of it is stored.
    """
    path = "/proc/1/environ"
    try:
        return parse_environ(context.read(path)), None
    except OSError as error:
        return {}, t("{path} could not be read: {error}", path=path, error=reason_of(error))


def parse_environ(text: str) -> dict[str, str]:
    """Return the variables of a /proc/PID/environ."""
    pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs if name}


def parse_count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,3}", text.strip()) else None


def no_gpu_mode(context: Context) -> bool | None:
    """Return whether an AutoDL instance was started without a card; None where that cannot be told from a fault.

    No card's device file and a memory limit that no instance with a card has.
    """
    try:
        names = os.listdir(context.path("/dev"))  # noqa: PTH208 - names are what is wanted
    except OSError:
        return None
    if any(re.fullmatch(r"nvidia\d+", name) for name in names):
        return False
    limit = _memory_limit(context)
    return True if limit is not None and limit <= _SMALL_INSTANCE_BYTES else None


def _memory_limit(context: Context) -> float | None:
    gaps = Gaps(context)
    mounts = gaps.parse("memory", "/proc/self/mountinfo", parse_mountinfo) or ()
    groups = gaps.parse("memory", "/proc/self/cgroup", cgroup.parse_cgroup) or {}
    controller = cgroup.find_controller(context, "memory", groups, mounts)
    limit = cgroup.memory_limit(gaps, controller, "memory") if controller else None
    return limit.value if limit else None


def _exists(context: Context, path: str, hidden: list[str]) -> bool:
    """Return whether a marker is there; one behind a folder that may not be entered is added to ``hidden``."""
    try:
        context.path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        hidden.append(path)
        return False
    return True


def _hostname(context: Context) -> str:
    for path in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        try:
            return context.read(path, 256).strip()
        except OSError:
            continue
    return ""
