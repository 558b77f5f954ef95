"""The host: system, processor, memory, this process's rights, limits and session. Nothing is spawned."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

from doctor.model import Host, Reading, ok, t
from doctor.probes.clock import behind_s, behind_windows_s
from doctor.probes.cpu_flags import parse_cpu_flags
from doctor.probes.gaps import Gaps, is_folder, is_there
from doctor.probes.host_locale import locale_encoding
from doctor.probes.host_system import (
    glibc_version,
    has_passwd_entry,
    parse_cpu_model,
    parse_os_release,
    service_states,
    virtual_machine,
)
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context


def probe(context: Context) -> Reading[Host]:
    """Read the host. What cannot be read stands in ``unread``; the rest still answers."""
    gaps = Gaps(context)
    status = _status(gaps)
    uid = parse_status_number(status, "Uid", 10)
    kernel = gaps.parse("kernel", "/proc/sys/kernel/osrelease", str.strip)
    memory = gaps.parse("memory_total_bytes", "/proc/meminfo", parse_meminfo) or {}
    limits = gaps.parse("open_files_soft_limit", "/proc/self/limits", parse_limits) or {}
    gaps.same("memory_total_bytes", "memory_available_bytes")
    gaps.same("open_files_soft_limit", "memlock_soft_limit_bytes")
    cpuinfo = gaps.text("cpu_model", "/proc/cpuinfo") or ""
    infiniband = gaps.names("infiniband_devices", "/sys/class/infiniband")
    interfaces = gaps.names("network_interfaces", "/sys/class/net")
    if infiniband is None and interfaces is not None and not is_there(context.path("/sys/class/infiniband")):
        infiniband = ()
    values: dict[str, Any] = {
        "os_name": _os_name(gaps),
        "kernel": printable(kernel) if kernel else None,
        "arch": _arch(gaps),
        "glibc": glibc_version(gaps),
        "wsl": None if kernel is None else "microsoft" in kernel.lower(),
        "virtual_machine": virtual_machine(gaps, cpuinfo),
        "cpu_model": parse_cpu_model(cpuinfo),
        "cpu_flags": parse_cpu_flags(cpuinfo),
        "cpu_count": _cpu_count(gaps, cpuinfo),
        "affinity_count": parse_affinity(status),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "uid": uid,
        "has_passwd_entry": None if uid is None else has_passwd_entry(gaps, uid),
        "capabilities_effective": parse_status_number(status, "CapEff", 16),
        "yama_ptrace_scope": _yama(gaps),
        "seccomp_mode": parse_status_number(status, "Seccomp", 10),
        "locale_encoding": locale_encoding(gaps),
        "open_files_soft_limit": limits.get("Max open files"),
        "memlock_soft_limit_bytes": limits.get("Max locked memory"),
        "network_interfaces": interfaces,
        "infiniband_devices": infiniband,
        "in_terminal_multiplexer": bool(context.environ.get("TMUX") or context.environ.get("STY")),
        "interrupted_over_ssh": bool(context.environ.get("SSH_CONNECTION")),
        "clock_skew_s": _clock_skew(gaps, kernel),
    }
    if values["cpu_model"] is None:
        gaps.note("cpu_model", t("{path} does not say, or not in a form that is known", path="/proc/cpuinfo"))
    host = Host(**values, services=service_states(context), unread=gaps.unread(**values))
    if host.kernel is None and host.memory_total_bytes is None and host.uid is None:
        return Reading(status="failed", why=gaps.reasons["kernel"], source="/proc")
    return ok(host, "/proc, /sys, /etc")


def _clock_skew(gaps: Gaps, kernel: str | None) -> float | None:
    now = time.time()
    late = behind_s(now)
    if late is not None or kernel is None or "microsoft" not in kernel.lower():
        return late
    try:
        return behind_windows_s(now, gaps.context.read("/sys/class/rtc/rtc0/since_epoch"))
    except (OSError, ValueError):  # an older WSL kernel has none
        return None


def _status(gaps: Gaps) -> str:
    text = gaps.text("uid", "/proc/self/status")
    if text is None:
        gaps.same("uid", "affinity_count", "capabilities_effective", "seccomp_mode", "has_passwd_entry")
    return text or ""


def _os_name(gaps: Gaps) -> str | None:
    text = gaps.text("os_name", "/etc/os-release", "/usr/lib/os-release")
    name = None if text is None else parse_os_release(text)
    if text is not None and name is None:
        gaps.note("os_name", t("{path} does not say, or not in a form that is known", path="/etc/os-release"))
    return name


def _yama(gaps: Gaps) -> int | None:
    """A kernel without Yama restricts nothing here: nothing is missing then, so nothing is noted."""
    if is_folder(gaps.context.path("/proc/sys/kernel")) and not is_folder(
        gaps.context.path("/proc/sys/kernel/yama")
    ):
        return None
    return gaps.parse("yama_ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", int)


def _arch(gaps: Gaps) -> str | None:
    """/proc/sys/kernel/arch exists from Linux 6.1 on; before it only the system call knows."""
    try:
        return gaps.context.read("/proc/sys/kernel/arch").strip()
    except OSError:
        if str(gaps.context.root) == "/":
            return os.uname().machine
    gaps.note("arch", t("{path} is not there", path="/proc/sys/kernel/arch"))
    return None


def _cpu_count(gaps: Gaps, cpuinfo: str) -> int | None:
    online = gaps.text("cpu_count", "/sys/devices/system/cpu/online")
    count = count_cpu_list(online.strip()) if online else None
    return count or len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or None


def parse_status_number(status: str, key: str, base: int) -> int | None:
    """Return the first number of a line of /proc/PID/status, written in ``base``."""
    # Uid:    1000    1000    1000    1000
    match = re.search(rf"^{key}:\s*([0-9a-fA-F]+)", status, re.MULTILINE)
    return int(match[1], base) if match else None


def parse_affinity(status: str) -> int | None:
    """Return how many CPUs ``Cpus_allowed_list`` of /proc/PID/status names."""
    # Cpus_allowed_list:      0-3,8
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return count_cpu_list(match[1]) if match else None


def count_cpu_list(text: str) -> int | None:
    """Return how many CPUs a kernel list (``0-3,8``) names; None when it is no such list."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        return None
    ends = [part.partition("-") for part in text.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def parse_meminfo(text: str) -> dict[str, int]:
    """Return /proc/meminfo in bytes by its own names."""
    # MemTotal:       24684084 kB
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(number) * 1024 for name, number in rows}


def parse_limits(text: str) -> dict[str, int]:
    """Return the soft limits of /proc/PID/limits by its own names; -1 is unlimited."""
    # Max open files            1024                 524288               files
    rows = re.findall(r"^(Max [a-z ]+?)\s{2,}(\d+|unlimited)\s", text, re.MULTILINE)
    return {name: -1 if soft == "unlimited" else int(soft) for name, soft in rows}
