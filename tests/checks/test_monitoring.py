"""What can be seen of a run from here: figures that a card refuses, stacks that may not be read."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Container, Host
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards, rented
from tests.checks.judged import said, the

DOCKER_DEFAULT, ALL = 0xA80425FB, 0x1FFFFFFFFFF


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param(
            {"unread": {"utilization_pct": "Not Supported"}, "mig_enabled": True},
            True,
            id="utilisation under MIG",
        ),
        pytest.param(
            {"unread": {"memory_used_bytes": "Not Supported"}}, True, id="memory of a shared-memory board"
        ),
        pytest.param({"unread": {"ecc_enabled": "Not Supported"}}, False, id="a GeForce has no ECC"),
        pytest.param({"utilization_pct": 0.0}, False, id="idle is not unsupported"),
    ],
)
def test_figures_that_a_card_refuses(fields: dict[str, Any], found: bool) -> None:
    assert ("nvml-field-not-supported" in said(gpus=cards("NVIDIA A100-SXM4-80GB", "8.0", **fields))) is found


@pytest.mark.parametrize(
    ("host", "container", "found"),
    [
        pytest.param(Host(capabilities_effective=DOCKER_DEFAULT, uid=0), INSIDE, True, id="docker's default set"),
        pytest.param(Host(capabilities_effective=DOCKER_DEFAULT | 1 << 19), INSIDE, False, id="with SYS_PTRACE"),
        pytest.param(Host(capabilities_effective=DOCKER_DEFAULT, yama_ptrace_scope=0), INSIDE, False, id="own processes may be read"),
        pytest.param(Host(capabilities_effective=0, yama_ptrace_scope=1, uid=1000), OUTSIDE, True, id="a user on Ubuntu"),
        pytest.param(Host(capabilities_effective=0, uid=1000), OUTSIDE, False, id="a kernel without Yama"),
        pytest.param(Host(capabilities_effective=ALL, yama_ptrace_scope=1, uid=0), OUTSIDE, False, id="root"),
        pytest.param(Host(uid=0), INSIDE, False, id="capabilities not read"),
    ],
)  # fmt: skip
def test_stacks_from_outside(host: Host, container: Container, found: bool) -> None:
    assert ("pyspy-needs-ptrace" in said(host=host, container=container)) is found


@pytest.mark.parametrize(
    ("sections", "has", "lacks"),
    [
        pytest.param({"host": Host(capabilities_effective=DOCKER_DEFAULT, uid=0), "container": INSIDE}, "--cap-add", "sudo", id="a container of ones own"),
        pytest.param({"host": Host(capabilities_effective=DOCKER_DEFAULT, uid=0), "container": INSIDE, "platform": rented("kubernetes")}, "securityContext", "--cap-add", id="a pod"),
        pytest.param({"host": Host(capabilities_effective=DOCKER_DEFAULT, uid=0), "container": INSIDE, "platform": rented("autodl")}, "faulthandler", "--cap-add", id="a rented container"),
        pytest.param({"host": Host(capabilities_effective=0, yama_ptrace_scope=1, uid=1000), "container": OUTSIDE}, "sudo", "--cap-add", id="a user"),
    ],
)  # fmt: skip
def test_what_to_do_about_stacks_depends_on_where(sections: dict[str, Any], has: str, lacks: str) -> None:
    advice = str(the("pyspy-needs-ptrace", **sections).advice)
    assert has in advice
    assert lacks not in advice
