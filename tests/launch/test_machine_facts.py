"""What of a machine decides a plan."""

from __future__ import annotations

import pytest

from doctor.machine_facts import machine_facts
from doctor.model import Container, Environment, Facts, Gpu, Gpus, Host, Torch, ok

CARDS = (
    Gpu(index=0, name="RTX 3090", uuid="GPU-aaaa", compute_capability="8.6"),
    Gpu(index=1, name="RTX 4090", uuid="GPU-bbbb", compute_capability="8.9"),
)


def machine(
    visible: str | None = None, cuda: str = "12.4", cards: tuple[Gpu, ...] = CARDS, quota: float | None = None
) -> Facts:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return Facts(
        host=ok(Host(cpu_count=64, affinity_count=32)),
        container=ok(Container(cpu_quota_cores=quota)),
        gpus=ok(Gpus(items=cards)),
        torch=ok(Torch(version="2.6.0", cuda=cuda)),
        environment=ok(Environment(variables=variables)),
    )


@pytest.mark.parametrize(
    ("facts", "device", "name", "count"),
    [
        pytest.param(machine(), "cuda", "RTX 3090", 2, id="every card"),
        pytest.param(machine("1"), "cuda", "RTX 4090", 1, id="one made visible"),
        pytest.param(machine("GPU-bb,0"), "cuda", "RTX 4090", 2, id="by UUID prefix, in its order"),
        pytest.param(machine(""), "cpu", "", 0, id="all hidden"),
        pytest.param(machine("-1"), "cpu", "", 0, id="hidden by -1"),
        pytest.param(machine("7,0"), "cpu", "", 0, id="nothing behind a wrong entry"),
        pytest.param(machine(cuda=""), "cpu", "RTX 3090", 2, id="a CPU-only torch"),
        pytest.param(machine(cards=()), "cpu", "", 0, id="no card"),
        pytest.param(machine(cards=(Gpu(index=0, error="GPU is lost"),)), "cpu", "", 0, id="a lost card"),
        pytest.param(Facts(), "cpu", "", 0, id="nothing known"),
    ],
)
def test_the_device_is_what_torch_would_see(facts: Facts, device: str, name: str, count: int) -> None:
    found = machine_facts(facts)
    assert (found.device, found.gpu_name, found.gpu_count) == (device, name, count)


@pytest.mark.parametrize(
    ("facts", "cores"),
    [
        pytest.param(machine(), 32.0, id="affinity"),
        pytest.param(machine(quota=6.5), 6.5, id="quota below affinity"),
        pytest.param(machine(quota=100), 32.0, id="quota above affinity"),
        pytest.param(Facts(), 1.0, id="unknown"),
    ],
)
def test_usable_cores_are_the_least_limit(facts: Facts, cores: float) -> None:
    assert machine_facts(facts).cpu_cores_usable == cores
