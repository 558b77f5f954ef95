"""What processes need to find each other."""

from __future__ import annotations

import pytest

from doctor.model import Gpu, Gpus, Host
from tests.checks.judged import said, variables

TWO = Gpus(items=(Gpu(), Gpu(index=1)))
HOST = Host(network_interfaces=("lo", "eth0", "docker0"))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param("eth", False, id="a prefix"),
        pytest.param("eth0,ens3", False, id="a list of which one is there"),
        pytest.param("=eth", True, id="exact names are exact"),
        pytest.param("^docker,lo", False, id="all but some"),
        pytest.param("^docker,lo,eth", True, id="all but all"),
        pytest.param("ib0", True, id="not there"),
    ],
)
def test_the_interface_nccl_is_told_to_use(value: str, found: bool) -> None:
    given = said(host=HOST, environment=variables(NCCL_SOCKET_IFNAME=value), gpus=TWO)
    assert given.get("nccl-interface-missing") == ("warn" if found else None)


def test_one_card_needs_no_interface_and_unknown_interfaces_say_nothing() -> None:
    one = Gpus(items=(Gpu(),))
    wrong = variables(NCCL_SOCKET_IFNAME="ib0")
    assert said(host=HOST, environment=wrong, gpus=one) == {"nccl-interface-missing": "note"}
    assert said(host=Host(arch="x86_64"), environment=wrong, gpus=TWO) == {}


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        pytest.param(
            {"WORLD_SIZE": "8", "RANK": "0", "MASTER_ADDR": "10.0.0.1"}, "warn", id="a job of eight left over"
        ),
        pytest.param({"LOCAL_RANK": "0"}, "warn", id="a rank without a size"),
        pytest.param({"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}, "note", id="an address alone"),
        pytest.param({"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"}, "note", id="a job of one"),
        pytest.param({"WORLD_SIZE": "8", "RANK": "0", "SLURM_JOB_ID": "7"}, None, id="SLURM set them"),
        pytest.param(
            {"WORLD_SIZE": "8", "RANK": "0", "TORCHELASTIC_RUN_ID": "x"}, None, id="torchrun set them"
        ),
        pytest.param(
            {"WORLD_SIZE": "2", "RANK": "0", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            None,
            id="an operator set them",
        ),
        pytest.param({}, None, id="nothing set"),
    ],
)
def test_a_rendezvous_left_over(environment: dict[str, str], level: str | None) -> None:
    assert said(environment=variables(**environment)).get("rendezvous-variables-left-over") == level


def test_infiniband_wants_locked_memory() -> None:
    card = ("mlx5_0",)
    assert said(host=Host(infiniband_devices=card, memlock_soft_limit_bytes=65536)) == {
        "memlock-too-small": "warn"
    }
    assert said(host=Host(infiniband_devices=card, memlock_soft_limit_bytes=-1)) == {}
    assert said(host=Host(infiniband_devices=(), memlock_soft_limit_bytes=65536)) == {}


def test_a_transport_switched_off_where_it_is_there() -> None:
    off = variables(NCCL_P2P_DISABLE="1")
    assert said(environment=off, gpus=Gpus(items=TWO.items, topology_worst_link="NV12")) == {
        "transport-switched-off": "warn"
    }
    assert said(environment=off, gpus=Gpus(items=TWO.items, topology_worst_link="PHB")) == {}
