"""The host's parts that need more than one look: C library, hypervisor, passwd, services."""

from __future__ import annotations

import os
import pwd
import re
import threading
from typing import TYPE_CHECKING

from doctor.model import t
from doctor.probes.bounded import names_in, read_bytes
from doctor.probes.gaps import Gaps, is_file, is_folder
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

SERVICES = ("nvidia-fabricmanager", "nvidia-persistenced")
_LIBC_PATHS = ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib/aarch64-linux-gnu", "/usr/lib", "/lib")
_NAME_SERVICE_DEADLINE_S = 0.5


def parse_os_release(text: str) -> str | None:
    """Return ``NAME VERSION_ID`` of an os-release file; the name alone where there is no version (Arch)."""
    # VERSION_ID="22.04"
    rows = dict(re.findall(r"^(NAME|VERSION_ID)=(.*)$", text, re.MULTILINE))
    parts = [rows.get(key, "").strip().strip("\"'") for key in ("NAME", "VERSION_ID")]
    return printable(" ".join(part for part in parts if part)) or None


def parse_cpu_model(cpuinfo: str) -> str | None:
    # model name      : AMD EPYC 7763 64-Core Processor
    match = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return printable(match[1].strip()) if match else None


# ---------------------------------------------------------------------------------------- C library
def glibc_version(gaps: Gaps) -> str | None:
    """Return ``2.35``, empty on musl, None (with the reason) when neither C library shows."""
    if str(gaps.context.root) == "/":
        try:
            return parse_libc_answer(os.confstr("CS_GNU_LIBC_VERSION") or "")
        except (ValueError, OSError):
            pass  # this interpreter was built against another C library: look for it in the files
    return _glibc_from_files(gaps)


def parse_libc_answer(text: str) -> str | None:
    # glibc 2.36
    name, _, version = text.partition(" ")
    return version.strip() if name == "glibc" and version else None


def _glibc_from_files(gaps: Gaps) -> str | None:
    for folder in _LIBC_PATHS:
        try:
            body = read_bytes(gaps.context.path(f"{folder}/libc.so.6"), 8 << 20)
        except OSError:
            continue
        # GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3) stable release version 2.35.
        if match := re.search(rb"GNU C Library [^\n\0]{0,80}release version (\d+\.\d+)", body):
            return match[1].decode("ascii")
    if any(name.startswith("ld-musl-") for name in names_in(gaps.context.path("/lib"))):
        return ""
    gaps.note("glibc", t("no C library was found where systems keep it"))
    return None


# ---------------------------------------------------------------------------------------- hypervisor
def virtual_machine(gaps: Gaps, cpuinfo: str) -> str | None:
    """Return the hypervisor as DMI names it, ``unnamed`` where only the CPU tells, empty for bare metal."""
    names = [_dmi(gaps.context, entry) for entry in ("sys_vendor", "product_name")]
    return judge_virtual(" ".join(name for name in names if name), cpuinfo, gaps)


_HYPERVISORS = re.compile(
    r"KVM|QEMU|VMware|VirtualBox|innotek|Xen\b|Virtual Machine|OpenStack|Amazon EC2|Google Compute Engine"
    r"|Alibaba Cloud|Tencent Cloud|Bochs|BHYVE|Parallels|Firecracker|Cloud Hypervisor|RHEV|Nutanix",
    re.IGNORECASE,
)


def judge_virtual(dmi: str, cpuinfo: str, gaps: Gaps) -> str | None:
    """Decide from DMI and the CPU's ``hypervisor`` flag (x86 only: other processors do not carry it)."""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    flagged = None if flags is None else "hypervisor" in flags[1].split()
    if flagged:
        return printable(dmi) or "unnamed"
    if _HYPERVISORS.search(dmi) and ".metal" not in dmi:
        return printable(dmi)
    if flagged is False or dmi:
        return ""
    gaps.note("virtual_machine", t("neither DMI nor the CPU's flags could be read"))
    return None


def _dmi(context: Context, entry: str) -> str:
    try:
        return context.read(f"/sys/class/dmi/id/{entry}").strip()
    except OSError:
        return ""


# ---------------------------------------------------------------------------------------- user
def has_passwd_entry(gaps: Gaps, uid: int) -> bool | None:
    """Return whether the uid has a name; the name service is asked only where the file does not tell."""
    passwd = gaps.text("has_passwd_entry", "/etc/passwd")
    if passwd is None:
        return None
    if uid in parse_passwd_uids(passwd):
        return True
    try:
        switch = gaps.context.read("/etc/nsswitch.conf")
    except OSError:
        switch = "passwd: files"
    if only_files_name_users(switch):
        return False
    if str(gaps.context.root) == "/":
        return _ask_name_service(gaps, uid)
    gaps.note("has_passwd_entry", t("users of this machine come from a name service that was not asked"))
    return None


def parse_passwd_uids(text: str) -> set[int]:
    # alice:x:1000:1000::/home/alice:/bin/bash
    return {int(number) for number in re.findall(r"^[^:\n]*:[^:\n]*:(\d+):", text, re.MULTILINE)}


def parse_passwd_homes(text: str) -> dict[int, tuple[str, str]]:
    """Return uid -> (account, home folder); of several accounts of one uid the first, as getpwuid does."""
    # alice:x:1000:1000::/home/alice:/bin/bash
    rows = re.findall(r"^([^:\n]*):[^:\n]*:(\d+):[^:\n]*:[^:\n]*:([^:\n]*):", text, re.MULTILINE)
    found: dict[int, tuple[str, str]] = {}
    for name, uid, home in rows:
        found.setdefault(int(uid), (name, home))
    return found


def only_files_name_users(nsswitch: str) -> bool:
    # passwd:         files systemd
    match = re.search(r"^passwd:(.*)$", nsswitch, re.MULTILINE)
    return match is None or set(match[1].partition("#")[0].split()) <= {"files", "compat", "systemd"}


def _ask_name_service(gaps: Gaps, uid: int) -> bool | None:
    answers: list[bool] = []

    def ask() -> None:
        try:
            pwd.getpwuid(uid)
        except KeyError:
            answers.append(False)
        else:
            answers.append(True)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_NAME_SERVICE_DEADLINE_S)
    if answers:
        return answers[0]
    why = t("the name service did not answer within {seconds} s", seconds=_NAME_SERVICE_DEADLINE_S)
    gaps.note("has_passwd_entry", why)
    return None


# ---------------------------------------------------------------------------------------- services
def service_states(context: Context) -> dict[str, str]:
    """Return unit -> ``active`` or ``inactive`` where systemd runs here and the unit is installed or running.

    A unit that failed reads ``inactive``: without asking systemd only its processes can be seen.
    """
    if not is_folder(context.path("/run/systemd/system")):
        return {}
    states = {unit: _service_state(context, unit) for unit in SERVICES}
    return {unit: state for unit, state in states.items() if state}


def _service_state(context: Context, unit: str) -> str:
    for hierarchy in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd"):
        try:
            if context.read(f"{hierarchy}/system.slice/{unit}.service/cgroup.procs").strip():
                return "active"
        except OSError:
            continue
    folders = ("/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system")
    installed = any(is_file(context.path(f"{folder}/{unit}.service")) for folder in folders)
    return "inactive" if installed else ""
