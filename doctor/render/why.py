"""``doctor check --why ID``: what was read, where, how a person sees it, the rule with its source, and what silences it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from doctor.checks import Check, all_checks
from doctor.language import current_language, say
from doctor.model import Facts, Finding, Reading, Report, Snapshot, t
from doctor.pages import proof_of, rule_of
from doctor.render.layout import indent
from doctor.render.rule_source import function_of, lint_file_of, tables_of
from doctor.render.section_names import listed, section_name
from doctor.render.text import finding_lines, printable_text, shown_value
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
    "driver.cuda_version": "nvidia-smi -q | grep 'CUDA Version'",
    "driver.other_vendor_gpus": "lspci | grep -iE 'vga|3d|display'",
    "driver.pci_gpu_count": "lspci -d 10de:",
    "driver": "nvidia-smi --query-gpu=driver_version --format=csv",
    "gpus": "nvidia-smi -q",
    "gpu_processes": "nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
    "kernel_log": "dmesg | grep -E 'NVRM|Xid|AER|Out of memory'",
    "python.pip_command": "which -a pip; head -1 $(which pip)",
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
    "workload": "cat {source}",
    "incident": "tail -n 100 LOG",
    "data": "file FILE; head -c 300 FILE",
    "provenance": "doctor snapshot export",
}


# train.py:42, the fact of a finding on a script
_LINE_OF_A_FILE = re.compile(r"(.*[/.].*):(\d+)", re.S)


def why_lines(finding_id: str, report: Report, snapshot: Snapshot, width: int, colour: bool) -> Iterator[str]:
    """Yield what is known of ``finding_id`` on this machine, whether it was found or not."""
    found = [item for item in report.findings() if item.id == finding_id]
    for item in found:
        yield from finding_lines(item, width, colour)
        yield from _evidence_lines(item, snapshot.facts, width)
        yield ""
    asked = next((one for one in all_checks() if finding_id in one.ids), None)
    in_script = lint_file_of(finding_id)
    if asked is None and not in_script:
        yield say(t("No check gives {id}. `doctor help` lists the ids.", id=shown(finding_id)))
        return
    yield from _rule_lines(finding_id, asked, in_script, width)
    sections = (*asked.needs, *asked.looks_at) if asked else ()
    for section in sections:
        yield from _section_lines(section, snapshot.facts, width)
    if found:
        yield from _silent_when(found, sections, width)
    else:
        why = _silence(asked.name, report) if asked else _unlinted(snapshot)
        yield from indent(say(t("Not found on this machine: {why}", why=why)), width, "", "  ")


def _rule_lines(finding_id: str, asked: Check | None, in_script: str, width: int) -> Iterator[str]:
    yield from indent(
        say(t("The rule: {rule}", rule=rule_of(finding_id, current_language()))), width, "", "  "
    )
    for place in filter(None, (function_of(asked) if asked else "", in_script)):
        yield from indent(say(t("It stands in: {place}", place=place)), width, "  ", "    ")
    for table in tables_of(asked) if asked else ():
        words = t("compared with: {table}, whose head names its sources", table=table)
        yield from indent(say(words), width, "  ", "    ")
    yield from indent(say(t("more on it: doctor help {id}", id=finding_id)), width, "  ", "    ")


def _unlinted(snapshot: Snapshot) -> str:
    """Say why a rule on scripts found nothing."""
    workload = snapshot.facts.workload.value
    if workload is not None and workload.source:
        return say("the script was read, and the rule does not fit it")
    return say("it is a rule on scripts, and none was given: --script FILE, or doctor lint FILE")


def _silent_when(found: list[Finding], sections: tuple[str, ...], width: int) -> Iterator[str]:
    """Yield what has to read otherwise for the check to be silent, and how a person proves that it does."""
    facts = list(dict.fromkeys(row.fact for item in found for row in item.evidence))
    facts = facts or [section_name(section) for section in sections]
    yield from indent(
        say(
            t("It falls silent once the rule no longer fits what is read here: {facts}", facts=listed(facts))
        ),
        width,
        "",
        "  ",
    )
    if proof := proof_of(found[0].id, current_language()):
        yield from indent(proof, width, "  ", "    ")


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
    words = f"{section_name(section)}: {_status(reading)}{source}{took}{printable_text(why)}"
    yield from indent(words, width, "  ", "    ")


def _status(reading: Reading[object]) -> str:
    if reading.status == "ok":
        return say("was read")
    if reading.status == "absent":
        return say("looked for, not there")
    return say("could not be read") if reading.status == "failed" else say("nobody looked")


def _evidence_lines(item: Finding, facts: Facts, width: int) -> Iterator[str]:
    for row in item.evidence:
        yield from indent(f"{row.fact} = {shown_value(row, exact=True)}", width, "         ", "           ")
        if command := command_of(row.fact, facts):
            yield f"           $ {command}"


def command_of(fact: str, facts: Facts) -> str:
    """Return the command that shows the value of ``fact``, with the judged interpreter and the script in it."""
    if line := _LINE_OF_A_FILE.fullmatch(fact):
        return f"sed -n {line[2]}p {quote(shown(line[1]))}"
    above = [path for path in SEE_IT_YOURSELF if fact == path or fact.startswith((path + ".", path + "["))]
    command = SEE_IT_YOURSELF[max(above, key=len)] if above else ""
    workload, python = facts.workload.value, facts.python.value
    if command.startswith("python ") and python is not None and python.executable:
        command = quote(shown(python.executable)) + command.removeprefix("python")
    source = workload.source if workload is not None else ""
    return command.replace("{source}", quote(shown(source)) if source else "FILE")
