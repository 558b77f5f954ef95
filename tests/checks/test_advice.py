"""Which torch builds run on a driver and its cards: every one that is named really does, and the best comes first."""

from __future__ import annotations

import pytest

from doctor.checks.advice import TorchBuild, best_torch_builds, install_torch, likeliest_build
from doctor.model import Python, Reading, ok
from doctor.tables.drivers import runs_cuda
from doctor.tables.torch_builds import arch_of, releases, runs_by_ptx, runs_natively
from tests.checks.judged import packages


@pytest.mark.parametrize(
    ("driver", "cuda", "capabilities", "torch", "best"),
    [
        pytest.param("580.95.05", "13.0", ["8.9"], None, "2.15.0+cu132", id="newest for a new driver"),
        pytest.param(
            "550.90.07", "12.4", ["8.6"], None, "2.14.1+cu126", id="newest that a CUDA 12 driver runs"
        ),
        pytest.param(
            "470.57.02", "11.4", ["8.6"], None, "2.7.1+cu118", id="newest that a CUDA 11 driver runs"
        ),
        pytest.param("580.95.05", "13.0", ["6.1", "8.6"], None, "2.14.1+cu126", id="a mixed box: all cards"),
        pytest.param(
            "570.124.06", "12.8", ["12.0"], None, "2.11.0+cu128", id="Blackwell under a CUDA 12 driver"
        ),
        pytest.param(
            "570.124.06", "12.8", ["12.0"], "2.6.0+cu124", "2.7.1+cu128", id="close to what is installed"
        ),
        pytest.param("550.90.07", "12.4", ["9.0"], "2.11.0+cu130", "2.11.0+cu126", id="the same release"),
        pytest.param(None, None, ["7.0"], None, "2.14.1+cu126", id="no driver in particular"),
        pytest.param(
            "440.33.01", "10.2", ["7.0"], None, "1.12.1+cu102", id="before minor version compatibility"
        ),
    ],
)
def test_the_best_build(
    driver: str | None, cuda: str | None, capabilities: list[str], torch: str | None, best: str
) -> None:
    builds = best_torch_builds(driver, capabilities, torch, driver_cuda=cuda)
    assert f"{builds[0].torch}+{builds[0].tag}" == best


@pytest.mark.parametrize(
    ("python", "newest"), [("3.8.10", "2.4.1"), ("3.9", "2.8.0"), ("3.10", "2.14.1"), ("3.14", "2.15.0")]
)
def test_a_python_limits_the_releases(python: str, newest: str) -> None:
    assert best_torch_builds("595.45.04", ["8.6"], python=python)[0].torch == newest


@pytest.mark.parametrize(
    ("driver", "capabilities"),
    [("470.57.02", ["12.0"]), ("390.12", ["8.6"]), ("580.95.05", ["6.1", "12.0"])],
)
def test_nothing_is_named_where_nothing_runs(driver: str, capabilities: list[str]) -> None:
    assert best_torch_builds(driver, capabilities) == ()


def test_for_a_card_newer_than_the_tables_no_build_is_known_and_the_newest_is_the_likeliest() -> None:
    assert best_torch_builds("580.95.05", ["14.0"]) == ()
    newest = likeliest_build("580.95.05", "13.0", "3.12")
    assert newest is not None
    assert newest.torch == releases()[0].version
    older = likeliest_build("550.90.07", "12.4", "3.12")
    assert older is not None
    assert older.torch == next(one for one in releases() if "12.6" in one.cuda).version, (
        "what this driver runs"
    )


def test_a_new_minor_of_a_known_major_still_finds_its_family() -> None:
    """sm_120 runs on 12.1."""
    assert best_torch_builds("580.95.05", ["12.1"])[0].native


@pytest.mark.parametrize(
    "driver", ["418.39", "450.80.02", "470.57.02", "525.60.13", "575.57.08", "595.45.04"]
)
@pytest.mark.parametrize(
    "capability", ["6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0", "12.1"]
)
def test_every_build_that_is_named_runs(driver: str, capability: str) -> None:
    for build in best_torch_builds(driver, [capability]):
        arch = arch_of(build.torch, build.cuda)
        assert arch is not None
        assert runs_natively(arch.names, capability) or runs_by_ptx(arch.names, capability)
        assert runs_cuda(driver, None, build.cuda) is True


def test_a_windows_driver_is_held_against_the_windows_minimum() -> None:
    assert best_torch_builds("527.41", ["8.6"], windows=True)[0].cuda == "12.6"
    assert best_torch_builds("526.98", ["8.6"], windows=True)[0].cuda == "11.8"


@pytest.mark.parametrize(
    ("installed", "command"),
    [
        (
            {"torch": "2.5.1"},
            "python -m pip install torch==2.7.1+cu128 --index-url https://download.pytorch.org/whl/cu128",
        ),
        (
            {"torch": "2.5.1", "torchvision": "0.20.1", "torchaudio": "2.5.1"},
            "python -m pip install torch==2.7.1+cu128 torchvision==0.22.1+cu128 torchaudio==2.7.1+cu128"
            " --index-url https://download.pytorch.org/whl/cu128",
        ),
    ],
)
def test_the_command_brings_the_mates_that_are_installed(installed: dict[str, str], command: str) -> None:
    build = TorchBuild(torch="2.7.1", cuda="12.8", on_pypi=False, confidence="verified")
    unknown: Reading[Python] = Reading(status="skipped")
    assert install_torch(build, unknown, ok(packages(**installed))) == command
