"""Checks on the CPUs a process really gets, and on the threads and workers that are started for more. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.model import Container, Environment, Finding, Gpus, Host, Reading, Workload, t


def allowed_cpus(host: Host, container: Container | None) -> int | None:
    """Return how many CPUs this process may keep busy: the smaller of affinity mask and quota; None: unknown."""
    known = [host.affinity_count] if host.affinity_count else []
    if container and container.cpu_quota_cores:
        known.append(max(1, math.ceil(container.cpu_quota_cores)))
    return min(known, default=None)


@check("cpu-quota-below-host-count")
def workers_fit_the_cpus(
    host: Host, container: Reading[Container], workload: Reading[Workload]
) -> Iterator[Finding]:
    """May this process use fewer CPUs than os.cpu_count() says, and does the run start workers for all of them?"""
    allowed, shown = allowed_cpus(host, container.value), host.cpu_count
    if not allowed or not shown or allowed >= shown:
        return
    workers = workload.value.num_workers if workload.value else None
    too_many = workers is not None and workers > allowed
    quota = container.value.cpu_quota_cores if container.value else None
    yield Finding(
        id="cpu-quota-below-host-count",
        level="warn" if too_many else "note",
        subject=f"{allowed}",
        title=t(
            "{workers} loader {workers:worker|workers} for {allowed} {allowed:CPU|CPUs}: os.cpu_count() says {shown}, this container or process may use {allowed}",
            workers=workers or 0,
            allowed=allowed,
            shown=shown,
        )
        if too_many
        else t(
            "this process may use {allowed} of the {shown} CPUs that os.cpu_count() shows",
            allowed=allowed,
            shown=shown,
        ),
        evidence=evidence(
            container__cpu_quota_cores=quota,
            host__affinity_count=host.affinity_count,
            host__cpu_count=shown,
            workload__num_workers=workers,
        ),
        advice=t(
            "num_workers={allowed} at most, and export OMP_NUM_THREADS={allowed} (divided by the number of training processes).",
            allowed=allowed,
        ),
    )


@check("thread-count-above-cpus")
def threads_fit_the_cpus(
    host: Host, container: Reading[Container], environment: Environment, gpus: Reading[Gpus]
) -> Iterator[Finding]:
    """Do the thread variables ask for more threads than there are CPUs, or leave them to the host's count?"""
    allowed, shown = allowed_cpus(host, container.value), host.cpu_count
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        value = environment.get(name)
        if value is None:
            continue
        first = value.split(",")[0].strip()
        if not first.isdigit() or int(first) == 0:
            yield Finding(
                id="thread-count-above-cpus",
                level="note",
                subject=name,
                title=t(
                    "{name}={value} is not a positive number: libgomp complains and takes its default",
                    name=name,
                    value=value or "''",
                ),
                evidence=evidence(**{f"environment__variables__{name}": value or "''"}),
                advice=t("export {name}={count}", name=name, count=allowed or shown or 1),
            )
        elif allowed and int(first) > allowed:
            yield Finding(
                id="thread-count-above-cpus",
                level="warn" if int(first) >= 2 * allowed else "note",
                subject=name,
                title=t(
                    "{name}={value}, but this process may use {allowed} {allowed:CPU|CPUs}: the threads wait for each other",
                    name=name,
                    value=value,
                    allowed=allowed,
                ),
                evidence=evidence(
                    **{f"environment__variables__{name}": value},
                    host__affinity_count=host.affinity_count,
                    container__cpu_quota_cores=container.value.cpu_quota_cores if container.value else None,
                ),
                advice=t("export {name}={count}", name=name, count=allowed),
            )
    quota = container.value.cpu_quota_cores if container.value else None
    if (
        environment.complete
        and environment.get("OMP_NUM_THREADS") is None
        and "OMP_NUM_THREADS" not in environment.names
        and quota
        and shown
        and shown >= 4 * quota
    ):
        cards = max(1, len(gpus.value.items)) if gpus.value else 1
        count = max(1, int(quota) // cards)
        yield Finding(
            id="thread-count-above-cpus",
            level="note",
            subject="OMP_NUM_THREADS",
            title=t(
                "OMP_NUM_THREADS is not set: each process starts threads for the host's {shown} {shown:CPU|CPUs}, the quota is {quota}",
                shown=shown,
                quota=round(quota, 1),
            ),
            evidence=evidence(host__cpu_count=shown, container__cpu_quota_cores=quota),
            advice=t("export {name}={count}", name="OMP_NUM_THREADS", count=count),
        )
