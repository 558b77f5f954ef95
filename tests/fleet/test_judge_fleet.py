"""Machines that should be alike: what is said where they are not, and what is never said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from doctor.fleet import judge_fleet
from doctor.fleet_records import FleetReport, Member, with_hosts
from doctor.machine import load_snapshot, with_facts
from doctor.model import (
    DataFingerprint,
    Environment,
    GitState,
    Host,
    Provenance,
    Reading,
    Snapshot,
    Torch,
    ok,
    t,
)

MACHINES = Path(__file__).parent.parent / "machines"
GOOD = load_snapshot(MACHINES / "healthy-4090-runpod.json")


def fleet(*changes: dict[str, Any], **member: Any) -> FleetReport:
    """Judge machines that are GOOD but for the sections of each ``changes``."""
    members = [
        Member(name=f"rank {rank}", snapshot=with_facts(GOOD, **change))
        for rank, change in enumerate(changes)
    ]
    return judge_fleet(members)


def said(report: FleetReport) -> dict[str, str]:
    return {one.id: str(one.title) for one in report.differences}


def torch(version: str, nccl: str = "2.27.5") -> dict[str, Any]:
    return {"torch": ok(Torch(version=version, cuda="12.8", nccl_version=nccl))}


def environment(**variables: str) -> dict[str, Any]:
    return {"environment": ok(Environment(variables=variables, names=tuple(variables)))}


def provenance(
    commit: str = "a" * 40, dirty: bool = False, sha256: str = "", how: str = "whole"
) -> dict[str, Any]:
    data = (DataFingerprint(path="data/train.csv", sha256=sha256, how=how),) if sha256 else ()
    return {"provenance": ok(Provenance(git=GitState(root="/w", commit=commit, dirty=dirty), data=data))}


def test_machines_that_are_alike_get_no_difference() -> None:
    report = fleet({}, {}, {}, {})
    assert report.differences == ()
    assert "fleet-torch-differs" in report.alike


def test_the_one_that_is_unlike_is_named() -> None:
    report = fleet(torch("2.9.1+cu128"), torch("2.9.1+cu128"), torch("2.8.0+cu128"), torch("2.9.1+cu128"))
    assert said(report)["fleet-torch-differs"] == (
        "torch is not the same everywhere: 2.9.1+cu128 (3), 2.8.0+cu128 (rank 2)"
    )


@pytest.mark.parametrize(
    ("changes", "finding", "words"),
    [
        pytest.param((torch("2.9.1"), torch("2.9.1", "2.26.2")), "fleet-nccl-differs", "2.26.2 (rank 1)", id="NCCL"),
        pytest.param((provenance(), provenance("b" * 40)), "fleet-code-differs", "bbbbbbbbbbbb (rank 1)", id="another commit"),
        pytest.param((provenance(), provenance(dirty=True)), "fleet-code-differs", "aaaaaaaaaaaa+ (rank 1)", id="changes that are not committed"),
        pytest.param((provenance(sha256="1" * 64), provenance(sha256="2" * 64)), "fleet-data-differs", "222222222222 (rank 1)", id="other data"),
        pytest.param((environment(MASTER_ADDR="a"), environment(MASTER_ADDR="b")), "fleet-variable-differs", "MASTER_ADDR", id="two rendezvous"),
        pytest.param((environment(NCCL_IB_DISABLE="1"), environment()), "fleet-variable-differs", "NCCL_IB_DISABLE", id="NCCL told differently"),
        pytest.param(({"host": ok(Host(infiniband_devices=("uverbs0",)))}, {"host": ok(Host(infiniband_devices=()))}), "fleet-infiniband-differs", "- (rank 1)", id="a container without InfiniBand"),
    ],
)  # fmt: skip
def test_a_difference_that_matters_is_found(changes: Any, finding: str, words: str) -> None:
    assert words in said(fleet(*changes))[finding]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((provenance(sha256="1" * 64), provenance(sha256="2" * 64, how="sampled")), id="hashes made in two ways"),
        pytest.param((environment(CUDA_VISIBLE_DEVICES="0"), environment(CUDA_VISIBLE_DEVICES="1")), id="each rank its card"),
        pytest.param((environment(NCCL_SOCKET_IFNAME="eth0"), environment(NCCL_SOCKET_IFNAME="ens3")), id="each its interface"),
        pytest.param((environment(RANK="0", LOCAL_RANK="0"), environment(RANK="1", LOCAL_RANK="1")), id="each its rank"),
        pytest.param(({"environment": Reading(status="failed", why=t("no"))}, environment(MASTER_ADDR="b")), id="an environment that could not be read"),
        pytest.param(({"torch": Reading(status="failed", why=t("no"))}, torch("2.9.1")), id="a torch that could not be read"),
    ],
)  # fmt: skip
def test_what_may_differ_or_is_not_known_is_no_difference(changes: Any) -> None:
    assert said(fleet(*changes)) == {}


def test_what_could_not_be_read_is_said_and_not_called_alike() -> None:
    report = fleet({"torch": Reading(status="failed", why=t("no"))}, {}, {})
    assert "fleet-torch-differs" not in report.alike
    assert [(one.section, one.members) for one in report.unread] == [("torch", ("rank 0",))]


def test_an_interface_that_one_machine_lacks_is_named() -> None:
    asked = environment(NCCL_SOCKET_IFNAME="eth0")
    report = fleet(
        {**asked, "host": ok(Host(network_interfaces=("lo", "eth0")))},
        {**asked, "host": ok(Host(network_interfaces=("lo", "ens3")))},
    )
    assert (
        said(report)["fleet-interface-missing"]
        == "NCCL_SOCKET_IFNAME names an interface that is not there: rank 1"
    )


@pytest.mark.parametrize("asked", ["^lo,docker", "=eth0", "eth", "ens3,eth0"])
def test_an_interface_is_asked_for_in_nccls_words(asked: str) -> None:
    one = {**environment(NCCL_SOCKET_IFNAME=asked), "host": ok(Host(network_interfaces=("lo", "eth0")))}
    assert "fleet-interface-missing" not in said(fleet(one, one))


def test_ranks_are_named_with_their_machines_where_there_are_several() -> None:
    hosts = ("node01", "node01", "node02")
    members = [Member(name=f"rank {rank}", snapshot=GOOD, host=host) for rank, host in enumerate(hosts)]
    assert [one.name for one in with_hosts(members)] == [
        "rank 0 (node01)",
        "rank 1 (node01)",
        "rank 2 (node02)",
    ]
    assert with_hosts(members[:2]) == members[:2]


def test_a_disk_is_slow_only_where_it_is_much_slower() -> None:
    def disks(*seconds: float) -> dict[str, str]:
        members = [
            Member(name=f"rank {n}", snapshot=GOOD, measures={"disk_write": one})
            for n, one in enumerate(seconds)
        ]
        return said(judge_fleet(members))

    assert disks(0.1, 0.1, 0.25) == {}
    assert "rank 2 took 9.0 times as long" in disks(0.1, 0.1, 0.9)["fleet-straggler"]


LINKS = {
    "ranks on one machine": (["a", "a", "a"], ""),
    "loopback beside the network": (["a", "a", "b"], ""),
    "one of two ways over the network": (["a", "b", "c"], "rank 2 took 4.0 times"),
}  # fmt: skip


@pytest.mark.parametrize(("hosts", "words"), LINKS.values(), ids=LINKS.keys())
def test_ways_to_rank_0_are_compared_where_they_leave_its_machine(hosts: list[str], words: str) -> None:
    members = [
        Member(name=f"rank {n}", snapshot=GOOD, host=host, measures={"link_to_rank_0": 0.005 * n**2})
        for n, host in enumerate(hosts)
    ]
    assert words in said(judge_fleet(members)).get("fleet-straggler", "")
    assert bool(said(judge_fleet(members))) == bool(words)


def test_of_two_the_slow_one_is_named() -> None:
    assert "rank 1 took 2.0 times" in said(measured(matmul=[0.010, 0.020]))["fleet-straggler"]


def measured(**seconds: Any) -> FleetReport:
    members = [
        Member(name=f"rank {rank}", snapshot=GOOD, measures={"matmul_gpu": value})
        for rank, value in enumerate(seconds["matmul"])
    ]
    return judge_fleet(members)


def test_the_straggler_is_named_with_how_much_slower_it_is() -> None:
    report = measured(matmul=[0.010, 0.011, 0.031, 0.010])
    assert said(report)["fleet-straggler"] == "rank 2 took 3.0 times as long as most for matmul_gpu"


def test_noise_is_no_straggler() -> None:
    assert said(measured(matmul=[0.010, 0.011, 0.013, 0.010])) == {}


def test_clocks_are_compared_with_the_middle_of_all() -> None:
    members = [Member(name=f"rank {rank}", snapshot=GOOD, clock_s=value) for rank, value in enumerate([0.0, 90.1, 90.0, 89.9])]  # fmt: skip
    assert (
        said(judge_fleet(members))["fleet-clock-skew"] == "clocks differ by more than 2.0 s: rank 0 -90.0 s"
    )


def test_what_single_machines_suffer_from_is_said_once_with_who() -> None:
    bad = load_snapshot(MACHINES / "drv-535-cuda13-build.json")
    report = judge_fleet(
        [Member(name=name, snapshot=one) for name, one in (("a", bad), ("b", GOOD), ("c", bad))]
    )
    shared = {one.finding.id: one.members for one in report.shared}
    assert shared["driver-too-old-for-torch-cuda"] == ("a", "c")


def test_sixty_four_machines_are_judged_alike_whatever_their_order() -> None:
    names = sorted(path.name for path in MACHINES.glob("*.json"))
    members = [
        Member(name=f"{number}", snapshot=load_snapshot(MACHINES / names[number % len(names)]))
        for number in range(64)
    ]
    first = judge_fleet(members)
    again = judge_fleet(list(reversed(members)))
    assert [one.id for one in first.differences] == [one.id for one in again.differences]
    assert {one.finding.id: len(one.members) for one in first.shared} == {one.finding.id: len(one.members) for one in again.shared}  # fmt: skip


def test_a_machine_is_not_judged_by_another_ones_facts() -> None:
    alone: Snapshot = replace(GOOD, label="x")
    assert judge_fleet([Member(name="a", snapshot=alone), Member(name="b", snapshot=alone)]).differences == ()
