"""torchvision, torchaudio and xformers belong to one torch, as long as they say so."""

from __future__ import annotations

import pytest

from doctor.model import Distribution, Packages
from tests.checks.judged import loud, packages, the, torch

VISION = "torchvision-torch-mismatch"


@pytest.mark.parametrize(
    ("torch_version", "versions", "expected"),
    [
        pytest.param("2.4.0+cu121", {"torchvision": "0.20.1+cu124"}, {VISION: "fail"}, id="another minor"),
        pytest.param(
            "2.5.0+cu124", {"torchvision": "0.20.1+cu124"}, {VISION: "warn"}, id="another patch mostly works"
        ),
        pytest.param("2.5.1+cu124", {"torchvision": "0.20.1+cu124"}, {}, id="the pair"),
        pytest.param("2.5.1+cu124", {"torchvision": "0.20.1+cu121"}, {}, id="another CUDA minor is harmless"),
        pytest.param(
            "2.5.1+cu124", {"torchvision": "0.20.1+cu118"}, {VISION: "fail"}, id="another CUDA major is not"
        ),
        pytest.param(
            "2.5.1+cu124", {"torchvision": "0.20.1+cpu"}, {VISION: "warn"}, id="CPU build beside CUDA"
        ),
        pytest.param("2.15.0+cu132", {"torchvision": "0.29.1"}, {}, id="0.29.1 names a lower bound only"),
        pytest.param("2.14.0+cu130", {"torchvision": "0.29.0"}, {}, id="the last exact pair"),
        pytest.param("2.15.0+cu132", {"torchvision": "0.29.0"}, {VISION: "fail"}, id="and off it"),
        pytest.param("2.4.0+cu121", {"torchaudio": "2.5.1+cu121"}, {VISION: "fail"}, id="torchaudio too"),
        pytest.param("2.13.0+cu130", {"torchaudio": "2.11.0"}, {}, id="torchaudio serves every later torch"),
        pytest.param(
            "2.6.0a0+ecd3434604.nv25.01", {"torchvision": "0.20.0a0"}, {}, id="an image builder's own pair"
        ),
        pytest.param("2.30.0", {"torchvision": "0.45.0"}, {}, id="a future that no table knows"),
        pytest.param(
            "2.6.0+cu124",
            {"xformers": "0.0.27.post2"},
            {"xformers-torch-mismatch": "fail"},
            id="xformers of another minor",
        ),
        pytest.param("2.4.0+cu121", {"xformers": "0.0.27.post2"}, {}, id="xformers with its torch"),
        pytest.param(
            "2.4.1+cu121",
            {"xformers": "0.0.27.post2"},
            {"xformers-torch-mismatch": "warn"},
            id="xformers off by a patch",
        ),
        pytest.param("2.14.1+cu130", {"xformers": "0.0.35"}, {}, id="xformers 0.0.35 names a lower bound"),
        pytest.param("2.4.1+cu121", {"xformers": "0.0.27.dev792"}, {}, id="an xformers that no table knows"),
    ],
)
def test_mates_are_held_against_the_imported_torch(
    torch_version: str, versions: dict[str, str], expected: dict[str, str]
) -> None:
    assert loud(torch=torch(torch_version), packages=packages(**versions)) == expected


def test_what_the_wheel_itself_says_goes_before_our_table() -> None:
    own = Distribution(name="torchvision", version="0.20.1+mine", requires_dist=("numpy", "torch==2.4.0"))
    installed = Packages(items=(own,), complete=False)
    assert loud(torch=torch("2.4.0+cu121"), packages=installed) == {}
    assert loud(torch=torch("2.5.1+cu121"), packages=installed) == {VISION: "fail"}


def test_the_advice_changes_the_mate_and_not_torch() -> None:
    found = the(VISION, torch=torch("2.6.0+cu124"), packages=packages(torchvision="0.23.0"))
    advice = str(found.advice)
    assert "torchvision==0.21.0" in advice
    assert "--no-deps" in advice
    assert "https://download.pytorch.org/whl/cu124" in advice
