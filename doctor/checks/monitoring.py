"""Checks on what can be seen of a run from here: the cards' figures, the stacks of a process. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.gpu import card_name
from doctor.model import Container, Evidence, Finding, Gpus, Host, Platform, Reading, Text, t

SYS_PTRACE = 1 << 19
"""Its bit in CapEff."""

_SHOWN = {
    "utilization_pct": "utilization",
    "memory_used_bytes": "used memory",
    "power_w": "power",
    "temperature_c": "temperature",
    "processes": "process list",
}


@check("nvml-field-not-supported")
def cards_report_what_is_watched(gpus: Gpus) -> Iterator[Finding]:
    """Does every card report the figures that a watcher shows?"""
    for index, gpu in enumerate(gpus.items):
        missing = [name for name in _SHOWN if name in gpu.unread]
        if not missing or gpu.error:
            continue
        names = ", ".join(_SHOWN[name] for name in missing)
        yield Finding(
            id="nvml-field-not-supported",
            level="note",
            subject=card_name(gpu),
            title=t("GPU {index} is in MIG mode and does not report its {names}: shown as n/a", index=gpu.index, names=names)
            if gpu.mig_enabled
            else t("GPU {index} does not report its {names} ({why}): shown as n/a", index=gpu.index, names=names, why=gpu.unread[missing[0]]),
            evidence=tuple(Evidence(fact=f"gpus.items[{index}].unread.{name}", value=gpu.unread[name]) for name in missing),
            advice=t("Judge the run by its step rate and by torch.cuda.memory_allocated()."),
        )  # fmt: skip


@check("pyspy-needs-ptrace")
def stacks_can_be_read(
    host: Host, container: Reading[Container], platform: Reading[Platform]
) -> Iterator[Finding]:
    """May the stacks of a running process be read from outside (py-spy)?"""
    capabilities, scope = host.capabilities_effective, host.yama_ptrace_scope
    inside = container.value.inside if container.value else None
    if capabilities is None or capabilities & SYS_PTRACE or scope == 0:
        return
    if not inside and not scope:
        return
    yield Finding(
        id="pyspy-needs-ptrace",
        level="note",
        subject="CAP_SYS_PTRACE",
        title=t("stacks of a running process cannot be read from outside here (py-spy needs CAP_SYS_PTRACE)"),
        evidence=evidence(host__capabilities_effective=f"{capabilities:#x}", host__yama_ptrace_scope=scope, host__uid=host.uid),
        advice=_ptrace_advice(host, container, platform, bool(inside)),
    )  # fmt: skip


def _ptrace_advice(
    host: Host, container: Reading[Container], platform: Reading[Platform], inside: bool
) -> Text:
    name = platform.value.name if platform.value else ""
    pod = name == "kubernetes" or (container.value is not None and container.value.kind == "kubernetes")
    if pod:
        return t(
            "In the pod's spec: securityContext.capabilities.add: [SYS_PTRACE]. Without it, let the training dump its own stacks: faulthandler.register(signal.SIGUSR1)."
        )
    if inside and name:
        return t(
            "A rented container does not get it. Let the training dump its own stacks: faulthandler.register(signal.SIGUSR1), then kill -USR1 PID."
        )
    if inside:
        return t(
            "Where you start the container yourself: --cap-add SYS_PTRACE. Otherwise let the training dump its own stacks: faulthandler.register(signal.SIGUSR1), then kill -USR1 PID."
        )
    if host.uid == 0:
        return t("Allow it until the next boot: sysctl kernel.yama.ptrace_scope=0")
    return t("Start py-spy with sudo, or allow it until the next boot: sudo sysctl kernel.yama.ptrace_scope=0")  # fmt: skip
