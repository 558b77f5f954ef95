"""Checks on what several processes or machines need to find each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.model import Container, Environment, Finding, Gpus, Host, Reading, t


@check("nccl-interface-missing")
def the_named_interface_exists(
    host: Host, environment: Environment, gpus: Reading[Gpus]
) -> Iterator[Finding]:
    """Does NCCL_SOCKET_IFNAME name a network interface that is there?"""
    if host.network_interfaces is None:
        return
    several = (gpus.value is not None and len(gpus.value.items) > 1) or (
        environment.get("WORLD_SIZE") or "1"
    ) != "1"
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = environment.get(name)
        if value and not _matches(value, host.network_interfaces, prefixes=name.startswith("NCCL")):
            yield Finding(
                id="nccl-interface-missing",
                level="warn" if several else "note",
                subject=name,
                title=t(
                    "{name}={value} names no network interface of this machine ({have})",
                    name=name,
                    value=value,
                    have=", ".join(host.network_interfaces),
                ),
                evidence=evidence(
                    **{f"environment__variables__{name}": value},
                    host__network_interfaces=", ".join(host.network_interfaces),
                ),
                advice=t("unset {name} (one machine needs none), or name one that is there", name=name),
                cause_of=("nccl-round-trip-fails",),
            )


def _matches(value: str, interfaces: tuple[str, ...], prefixes: bool) -> bool:
    """Return whether NCCL would find an interface: a list of prefixes, ``=`` for exact names, ``^`` for all but these."""
    if not prefixes:
        return any(part in interfaces for part in value.split(","))
    exact, exclude = value.lstrip("^").startswith("="), value.startswith("^")
    wanted = [part for part in value.lstrip("^=").split(",") if part]
    hit = [
        one for one in interfaces if any(one == part if exact else one.startswith(part) for part in wanted)
    ]
    return len(hit) < len(interfaces) if exclude else bool(hit)


_LAUNCHER = (
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "KUBERNETES_SERVICE_HOST",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "RUNPOD_POD_ID",
)


@check("rendezvous-variables-left-over")
def no_rendezvous_is_left_over(environment: Environment) -> Iterator[Finding]:
    """Are RANK, WORLD_SIZE or MASTER_ADDR of an earlier job still set in this session?"""
    names = [
        name
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        if environment.get(name) is not None
    ]
    if not names or any(environment.get(name) or name in environment.names for name in _LAUNCHER):
        return
    size = environment.get("WORLD_SIZE") or ""
    waits = (size.isdigit() and int(size) > 1) or (
        environment.get("LOCAL_RANK") not in (None, "-1") and not size
    )
    yield Finding(
        id="rendezvous-variables-left-over",
        level="warn" if waits else "note",
        subject=", ".join(names),
        title=t(
            "{names} are set and no launcher is: a script started by hand waits for {size} {size:process that never comes|processes that never come}",
            names=", ".join(names),
            size=size or "?",
        )
        if waits
        else t("{names} are set in this session, as an earlier job leaves them", names=", ".join(names)),
        evidence=evidence(**{f"environment__variables__{name}": environment.get(name) for name in names}),
        advice=t("unset {name}", name=" ".join(names)),
    )


@check("memlock-too-small")
def rdma_can_lock_memory(host: Host) -> Iterator[Finding]:
    """May a process lock enough memory for InfiniBand?"""
    limit = host.memlock_soft_limit_bytes
    if host.infiniband_devices and limit is not None and 0 <= limit < 1 << 30:
        yield Finding(
            id="memlock-too-small",
            level="warn",
            subject="ulimit -l",
            title=t(
                "InfiniBand is here ({devices}), and a process may lock {limit} KB only: NCCL fails to register memory",
                devices=", ".join(host.infiniband_devices),
                limit=limit >> 10,
            ),
            evidence=evidence(
                host__memlock_soft_limit_bytes=limit,
                host__infiniband_devices=", ".join(host.infiniband_devices),
            ),
            advice=t(
                "Start the container with --ulimit memlock=-1; on a machine of your own set memlock unlimited in /etc/security/limits.conf."
            ),
        )


@check("transport-switched-off")
def fast_transports_are_used(
    environment: Environment, host: Reading[Host], gpus: Reading[Gpus], container: Reading[Container]
) -> Iterator[Finding]:
    """Is a fast way between cards or machines switched off that this machine has?"""
    link = gpus.value.topology_worst_link if gpus.value else None
    if environment.get("NCCL_P2P_DISABLE") == "1" and (link or "").startswith("NV"):
        yield Finding(
            id="transport-switched-off",
            level="warn",
            subject="NCCL_P2P_DISABLE",
            title=t(
                "NCCL_P2P_DISABLE=1 keeps NCCL off the NVLink between the cards ({link})", link=link or ""
            ),
            evidence=evidence(environment__variables__NCCL_P2P_DISABLE="1", gpus__topology_worst_link=link),
            advice=t("unset {name}", name="NCCL_P2P_DISABLE"),
        )
    devices = host.value.infiniband_devices if host.value else None
    if environment.get("NCCL_IB_DISABLE") == "1" and devices:
        yield Finding(
            id="transport-switched-off",
            level="note",
            subject="NCCL_IB_DISABLE",
            title=t(
                "NCCL_IB_DISABLE=1 keeps NCCL off InfiniBand ({devices}); it matters with several machines only",
                devices=", ".join(devices),
            ),
            evidence=evidence(
                environment__variables__NCCL_IB_DISABLE="1", host__infiniband_devices=", ".join(devices)
            ),
            advice=t("unset {name}", name="NCCL_IB_DISABLE"),
        )
