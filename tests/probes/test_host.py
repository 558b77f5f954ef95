"""The host probe: what it reads of a recorded tree, and what it says of what it cannot read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.probes import host, host_locale, host_system
from doctor.probes.gaps import Gaps
from tests.probes.roots import STATUS, context_of, forbid, write_tree

MEMINFO = (
    "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   20000000 kB\nHugePages_Total:       0\n"
)
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 524288               files
Max locked memory         unlimited            unlimited            bytes
"""
CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu sse2 avx2\n"
FILES = {
    "/etc/os-release": 'NAME="Ubuntu"\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/bash\n",
    "/etc/nsswitch.conf": "passwd:         files systemd\n",
    "/proc/sys/kernel/osrelease": "5.15.0-116-generic\n",
    "/proc/sys/kernel/arch": "x86_64\n",
    "/proc/sys/kernel/yama/ptrace_scope": "1\n",
    "/proc/self/status": STATUS,
    "/proc/self/limits": LIMITS,
    "/proc/meminfo": MEMINFO,
    "/proc/cpuinfo": CPUINFO,
    "/sys/devices/system/cpu/online": "0-127\n",
    "/sys/class/net/eth0/mtu": "1500\n",
    "/lib/x86_64-linux-gnu/libc.so.6": "\x7fELF GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3) stable release version 2.35.\n",
}


def test_a_whole_host_is_read_from_its_files(tmp_path: Path) -> None:
    reading = host.probe(
        context_of(write_tree(tmp_path, FILES), {"TMUX": "/tmp/tmux", "SSH_CONNECTION": "a b"})
    )
    found = reading.value
    assert reading.status == "ok" and found is not None
    assert (found.os_name, found.kernel, found.arch, found.glibc) == (
        "Ubuntu 22.04",
        "5.15.0-116-generic",
        "x86_64",
        "2.35",
    )
    assert (found.cpu_model, found.cpu_count, found.affinity_count) == (
        "AMD EPYC 7763 64-Core Processor",
        128,
        5,
    )
    assert found.memory_total_bytes == 24684084 * 1024 and found.memory_available_bytes == 20000000 * 1024
    assert (found.uid, found.has_passwd_entry, found.yama_ptrace_scope, found.seccomp_mode) == (
        1000,
        True,
        1,
        2,
    )
    assert found.capabilities_effective == 0xA80425FB
    assert (found.open_files_soft_limit, found.memlock_soft_limit_bytes) == (1024, -1)
    assert (found.network_interfaces, found.infiniband_devices) == (("eth0",), ())
    assert (found.wsl, found.virtual_machine) == (False, "")
    assert found.in_terminal_multiplexer is True and found.interrupted_over_ssh is True
    assert found.unread == {}


def test_without_permission_on_proc_the_rest_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, FILES)
    forbid(monkeypatch, tmp_path / "proc/self")
    found = host.probe(context_of(tmp_path)).value
    assert found is not None
    assert found.uid is None and "Permission denied" in str(found.unread["uid"])
    assert {
        "affinity_count",
        "capabilities_effective",
        "open_files_soft_limit",
        "memlock_soft_limit_bytes",
    } <= set(found.unread)
    assert found.memory_total_bytes == 24684084 * 1024


def test_a_host_of_which_nothing_can_be_read_is_failed_not_fine(tmp_path: Path) -> None:
    reading = host.probe(context_of(tmp_path))
    assert reading.status == "failed" and reading.why is not None


def test_a_fifo_where_a_file_should_be_is_a_reason_not_a_wait(tmp_path: Path) -> None:
    write_tree(tmp_path, {path: text for path, text in FILES.items() if path != "/proc/meminfo"})
    os.mkfifo(tmp_path / "proc/meminfo")
    found = host.probe(context_of(tmp_path)).value
    assert found is not None and found.memory_total_bytes is None
    assert "not a regular file" in str(found.unread["memory_total_bytes"])


def test_undecodable_bytes_in_a_name_are_kept_as_escapes(tmp_path: Path) -> None:
    odd = {"/proc/cpuinfo": "model name\t: Zh\udcc1aoxin\x1b[31m\n"}
    found = host.probe(context_of(write_tree(tmp_path, {**FILES, **odd}))).value
    assert found is not None and found.cpu_model == "Zh\\xc1aoxin\\x1b[31m"


def test_a_kernel_without_yama_is_no_gap(tmp_path: Path) -> None:
    files = {path: text for path, text in FILES.items() if "yama" not in path}
    found = host.probe(context_of(write_tree(tmp_path, files))).value
    assert found is not None and found.yama_ptrace_scope is None and "yama_ptrace_scope" not in found.unread


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('NAME="Debian GNU/Linux"\nVERSION_ID="12"\n', "Debian GNU/Linux 12", id="quoted"),
        pytest.param("NAME=Fedora\nVERSION_ID=41\n", "Fedora 41", id="bare"),
        pytest.param('NAME="Arch Linux"\n', "Arch Linux", id="rolling, no version"),
        pytest.param("\n", None, id="says nothing"),
    ],
)
def test_os_release(text: str, expected: str | None) -> None:
    assert host_system.parse_os_release(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [("0-3,8", 5), ("0", 1), ("0-127", 128), ("", None), ("a-b", None), ("0-", None)],
)
def test_cpu_lists(text: str, count: int | None) -> None:
    assert host.count_cpu_list(text) == count


@pytest.mark.parametrize(
    ("dmi", "flags", "expected"),
    [
        pytest.param("QEMU Standard PC", "flags : fpu hypervisor", "QEMU Standard PC", id="flag and DMI"),
        pytest.param("", "flags : fpu hypervisor", "unnamed", id="flag only (Firecracker)"),
        pytest.param("Amazon EC2 p4d.24xlarge", "flags : fpu", "Amazon EC2 p4d.24xlarge", id="flag hidden"),
        pytest.param("Amazon EC2 c5.metal", "flags : fpu", "", id="a cloud's bare metal"),
        pytest.param("Supermicro SYS-420GP", "flags : fpu", "", id="bare metal"),
        pytest.param("QEMU KVM", "Features : fp asimd", "QEMU KVM", id="arm, by DMI"),
        pytest.param("", "Features : fp asimd", None, id="arm without DMI: unknown"),
    ],
)
def test_hypervisors(tmp_path: Path, dmi: str, flags: str, expected: str | None) -> None:
    gaps = Gaps(context_of(tmp_path))
    assert host_system.judge_virtual(dmi, flags, gaps) == expected
    assert ("virtual_machine" in gaps.reasons) is (expected is None)


@pytest.mark.parametrize(
    ("nsswitch", "expected"),
    [
        pytest.param("passwd: files systemd\n", False, id="files only: certainly none"),
        pytest.param("passwd: files sss # ldap\n", None, id="a name service not asked: unknown"),
    ],
)
def test_a_uid_without_an_entry(tmp_path: Path, nsswitch: str, expected: bool | None) -> None:
    files = {"/etc/passwd": "root:x:0:0::/root:/bin/sh\n", "/etc/nsswitch.conf": nsswitch}
    gaps = Gaps(context_of(write_tree(tmp_path, files)))
    assert host_system.has_passwd_entry(gaps, 4711) is expected
    assert ("has_passwd_entry" in gaps.reasons) is (expected is None)


def test_musl_is_no_glibc(tmp_path: Path) -> None:
    assert (
        host_system.glibc_version(Gaps(context_of(write_tree(tmp_path, {"/lib/ld-musl-x86_64.so.1": ""}))))
        == ""
    )


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param({}, {}, id="not installed"),
        pytest.param({"/lib/systemd/system/nvidia-fabricmanager.service": ""}, {"nvidia-fabricmanager": "inactive"}, id="installed, not running"),
        pytest.param(
            {"/sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs": "812\n"},
            {"nvidia-fabricmanager": "active"},
            id="running",
        ),
    ],
)  # fmt: skip
def test_services_where_systemd_runs(tmp_path: Path, extra: dict[str, str], expected: dict[str, str]) -> None:
    context = context_of(write_tree(tmp_path, {"/run/systemd/system/x": "", **extra}))
    assert host_system.service_states(context) == expected


def test_services_are_not_looked_at_in_a_container(tmp_path: Path) -> None:
    files = {"/lib/systemd/system/nvidia-fabricmanager.service": ""}
    assert host_system.service_states(context_of(write_tree(tmp_path, files))) == {}


HERE = {"c.utf8", "zh_cn.gbk", "zh_cn"}


@pytest.mark.parametrize(
    ("environ", "minor", "expected"),
    [
        pytest.param({"LANG": "zh_CN.GBK"}, 11, "GBK", id="a GBK locale that is installed"),
        pytest.param({"LANG": "zh_CN.GB18030"}, 11, "UTF-8", id="one that is not: C locale, UTF-8 mode"),
        pytest.param({"LANG": "zh_CN"}, 11, None, id="no charset in the name: unknown"),
        pytest.param({"LC_ALL": "POSIX", "LANG": "zh_CN.GBK"}, 11, "UTF-8", id="LC_ALL first"),
        pytest.param({"LC_CTYPE": "", "LANG": "zh_CN.GBK"}, 11, "GBK", id="an empty variable is none"),
        pytest.param({"LANG": "zh_CN.GBK", "PYTHONUTF8": "1"}, 11, "UTF-8", id="UTF-8 mode on"),
        pytest.param({"LANG": "zh_CN.GBK", "PYTHONUTF8": "1"}, 6, "GBK", id="3.6 has no UTF-8 mode"),
        pytest.param({}, 6, "ANSI_X3.4-1968", id="3.6 in the C locale"),
        pytest.param({"LANG": "C.UTF-8"}, 6, "UTF-8", id="3.6 with C.UTF-8"),
        pytest.param(
            {"LC_ALL": "C", "PYTHONUTF8": "0"}, 11, "ANSI_X3.4-1968", id="UTF-8 mode off, LC_ALL not coerced"
        ),
        pytest.param({"LANG": "C", "PYTHONUTF8": "0"}, 11, "UTF-8", id="UTF-8 mode off, LANG coerced"),
    ],
)
def test_the_encoding_follows_cpythons_rules(
    environ: dict[str, str], minor: int, expected: str | None
) -> None:
    assert host_locale.python_encoding(environ, minor, lambda: HERE) == expected


@pytest.mark.parametrize(
    "environ",
    [{}, {"LANG": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LANG": "xx_YY.GBK"}, {"LANG": "C.UTF-8"}],
    ids=str,
)
def test_the_encoding_is_what_a_fresh_interpreter_says(environ: dict[str, str]) -> None:
    code = "import locale; print(locale.getpreferredencoding(False))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    ours = host_locale.python_encoding(environ, sys.version_info.minor, lambda: {"c.utf8"})
    assert ours is not None and ours.lower() == done.stdout.strip().lower()


def test_this_machine_can_be_read() -> None:
    from doctor.probes import Context

    context = Context()
    context.__dict__["target"] = context_of(Path("/")).target
    found = host.probe(context).value
    assert found is not None
    assert found.cpu_count == os.cpu_count() and found.affinity_count == len(os.sched_getaffinity(0))
    assert (
        found.uid == os.getuid() and found.kernel == os.uname().release and found.arch == os.uname().machine
    )


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    assert isinstance(host.parse_meminfo(text), dict) and isinstance(host.parse_limits(text), dict)
    assert host.parse_affinity(text) is None or "Cpus_allowed_list" in text
    assert isinstance(host_system.parse_passwd_uids(text), set)
    assert isinstance(host_system.parse_passwd_homes(text), dict)
    host_system.parse_os_release(text), host_system.parse_cpu_model(text), host.count_cpu_list(text)
