"""Cards that work below what was paid for, and busy ones that do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checks.gpu_box import cards
from tests.checks.judged import said


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"throttle_reasons": ("hw-thermal",), "temperature_c": 91.0}, {"gpu-throttled": "warn"}, id="hot"),
        pytest.param({"throttle_reasons": ("sw-thermal",), "utilization_pct": 99.0}, {"gpu-throttled": "warn"}, id="hot by software's limit"),
        pytest.param({"throttle_reasons": ("power-brake",), "utilization_pct": 80.0}, {"gpu-throttled": "warn"}, id="brake while busy"),
        pytest.param({"throttle_reasons": ("hw-slowdown",), "utilization_pct": 0.0}, {}, id="slowdown while idle"),
        pytest.param({"throttle_reasons": ("idle",)}, {}, id="idle"),
        pytest.param({"throttle_reasons": ("power-cap",), "utilization_pct": 100.0}, {}, id="at its power limit, as it should be"),
        pytest.param({"throttle_reasons": ("applications-clocks",), "utilization_pct": 100.0}, {}, id="clocks set"),
        pytest.param({"power_limit_w": 250.0, "power_default_limit_w": 450.0}, {"gpu-power-capped": "warn"}, id="a 4090 at 250 W"),
        pytest.param({"power_limit_w": 350.0, "power_default_limit_w": 450.0}, {"gpu-power-capped": "note"}, id="a little less"),
        pytest.param({"power_limit_w": 450.0, "power_default_limit_w": 450.0}, {}, id="its own limit"),
        pytest.param({"power_limit_w": 480.0, "power_default_limit_w": 450.0}, {}, id="more than usual"),
    ],
)  # fmt: skip
def test_heat_and_power(fields: dict[str, Any], expected: dict[str, str]) -> None:
    assert said(gpus=cards(**fields)) == expected


def link(generation: int, width: int, busy: float = 90.0) -> dict[str, Any]:
    return {"pcie_generation": generation, "pcie_width": width, "pcie_generation_max": 4, "pcie_width_max": 16, "utilization_pct": busy}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        pytest.param(link(4, 1), "warn", id="a mining riser"),
        pytest.param(link(1, 16), "warn", id="first generation while busy"),
        pytest.param(link(4, 8), "note", id="half the lanes"),
        pytest.param(link(4, 16), None, id="all of it"),
        pytest.param(link(1, 16, busy=0.0), None, id="an idle card lowers its link"),
        pytest.param({"pcie_width": 1, "utilization_pct": 90.0}, None, id="what it could have is not known"),
    ],
)
def test_the_pcie_link_of_a_busy_card(fields: dict[str, Any], level: str | None) -> None:
    assert said(gpus=cards(**fields)).get("gpu-pcie-narrow") == level
