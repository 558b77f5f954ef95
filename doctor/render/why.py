"""``doctor check --why ID``: what was read, where, how a person can see it themselves, and which check asked."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import all_checks
from doctor.language import say
from doctor.model import Facts, Finding, Reading, Report, Snapshot, t
from doctor.render.layout import indent
from doctor.render.text import finding_lines, printable_text
from runner.strings import shown

# Fact path (longest prefix wins) -> the command that shows the same value.
SEE_IT_YOURSELF = {
    "host.cpu_count": "nproc --all",
    "host.affinity_count": "nproc",
    "host.memory_total_bytes": "free -b",
    "host.glibc": "ldd --version | head -1",
    "host.capabilities_effective": "grep CapEff /proc/self/status",
    "host.yama_ptrace_scope": "cat /proc/sys/kernel/yama/ptrace_scope",
    "host.uid": "id",
    "host.locale_encoding": "python3 -c 'import locale; print(locale.getpreferredencoding(False))'",
    "host.services": "systemctl is-active nvidia-fabricmanager",
    "host": "uname -a; cat /etc/os-release",
    "container.cpu_quota_cores": "cat /sys/fs/cgroup/cpu.max",
    "container.memory_limit_bytes": "cat /sys/fs/cgroup/memory.max",
    "container.oom_kill_count": "cat /sys/fs/cgroup/memory.events",
    "container": "cat /proc/self/cgroup; ls -la /.dockerenv",
    "platform": "env | cut -d= -f1 | sort",
    "driver.kernel_module_version": "cat /sys/module/nvidia/version",
    "driver.device_nodes": "ls -l /dev/nvidia*",
    "driver": "nvidia-smi --query-gpu=driver_version --format=csv",
    "gpus": "nvidia-smi -q",
    "gpu_processes": "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
    "kernel_log": "dmesg | grep -E 'NVRM|Xid|AER|Out of memory'",
    "python": "which -a python; python -VV",
    "packages": "python -m pip list -v",
    "torch.arch_list": "python -c 'import torch; print(torch.cuda.get_arch_list())'",
    "torch.cuda": "python -c 'import torch; print(torch.version.cuda)'",
    "torch": "python -m pip show -f torch",
    "libraries": "echo $LD_LIBRARY_PATH; ldconfig -p | grep -E 'cuda|cudnn|stdc'",
    "storage": "df -hT; df -i; findmnt",
    "environment": "env",
    "processes": "ps -ef; ls -l /proc/*/fd 2>/dev/null | grep nvidia",
    "project": "ls; cat requirements*.txt",
    "deep": "doctor check --deep",
}


def why_lines(finding_id: str, report: Report, snapshot: Snapshot, width: int, colour: bool) -> Iterator[str]:
    """Yield what is known of ``finding_id`` on this machine, whether it was found or not."""
    found = [item for item in report.findings() if item.id == finding_id]
    for item in found:
        yield from finding_lines(item, width, colour)
        yield from _evidence_lines(item, snapshot.facts, width)
        yield ""
    asked = next((one for one in all_checks() if finding_id in one.ids), None)
    if asked is None:
        yield say(t("No check gives {id}. `doctor help` lists the ids.", id=shown(finding_id)))
        return
    yield from indent(say(t("The check asks: {question}", question=asked.question)), width, "", "  ")
    for section in (*asked.needs, *asked.looks_at):
        yield from _section_lines(section, snapshot.facts, width)
    if not found:
        yield say(t("Not found on this machine: {why}", why=_silence(asked.name, report)))


def _silence(name: str, report: Report) -> str:
    if name in report.passed:
        return say("the check looked, and all is well")
    if name in report.not_applicable:
        return say("the check does not apply here (what it judges is not there, or nobody looked)")
    return say("the check could not look")


def _section_lines(section: str, facts: Facts, width: int) -> Iterator[str]:
    reading: Reading[object] = getattr(facts, section)
    source = f", {shown(reading.source)}" if reading.source else ""
    took = f", {reading.took_ms:g} ms" if reading.took_ms is not None else ""
    why = f": {say(reading.why)}" if reading.why else ""
    yield from indent(f"{section}: {reading.status}{source}{took}{printable_text(why)}", width, "  ", "    ")


def _evidence_lines(item: Finding, facts: Facts, width: int) -> Iterator[str]:
    for row in item.evidence:
        yield from indent(f"{row.fact} = {shown(row.value)}", width, "         ", "           ")
        command = _command(row.fact)
        if command:
            yield f"           $ {command}"


def _command(fact: str) -> str:
    above = [path for path in SEE_IT_YOURSELF if fact == path or fact.startswith((path + ".", path + "["))]
    return SEE_IT_YOURSELF[max(above, key=len)] if above else ""
