"""``doctor env create``: the torch for this machine and what goes with it, in a folder of its own, made and unmade for real."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from doctor.acts.installer import ask_place
from doctor.acts.packages import versions
from doctor.apply import apply_fix
from doctor.journal import Journal, locked
from doctor.machine import load_snapshot
from doctor.model import Driver, Facts, Fix, Gpu, Gpus, InstallPackages, Python, Run, Snapshot, ok
from doctor.new_environment import recommended_environment
from tests.commands_run import doctor
from tests.curing import quiet, take_back
from tests.wheels import make_wheel, torch_files

MACHINES = Path(__file__).parent / "machines"


def planned(snapshot: Snapshot, folder: Path, version: str = "3.11.7") -> Fix:
    found = recommended_environment(snapshot, str(folder), sys.executable, version)
    assert isinstance(found, Fix), found
    return found


def test_torch_comes_first_and_is_frozen_for_the_rest(tmp_path: Path) -> None:
    snapshot = load_snapshot(MACHINES / "cpu-wheel-on-4090.json")
    make, torch, rest = planned(snapshot, tmp_path / "new").steps
    assert isinstance(make, Run) and make.argv[1:] == ("-m", "venv", str(tmp_path / "new"))
    assert isinstance(torch, InstallPackages) and isinstance(rest, InstallPackages)
    assert torch.requirements[0].startswith("torch==") and "torch" in torch.imports
    assert rest.frozen == torch.requirements
    assert rest.requirements[0].startswith("transformers==") and "accelerate" in rest.requirements


def test_where_nothing_fits_it_says_what_would(tmp_path: Path) -> None:
    old = Snapshot(
        facts=Facts(
            driver=ok(Driver(version="470.82.01", cuda_version="11.4")),
            gpus=ok(Gpus(items=(Gpu(name="NVIDIA H100", compute_capability="9.0"),))),
            python=ok(Python(version="3.12.1")),
        )
    )
    found = recommended_environment(old, str(tmp_path / "new"), "python", "3.12.1")
    assert not isinstance(found, Fix) and found.msgid


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheel(folder, "torch", "2.6.0", files=torch_files("2.6.0", None))
    for name, version in (("transformers", "4.49.0"), ("accelerate", "1.3.0"), ("datasets", "3.2.0"), ("safetensors", "0.5.0"), ("msgspec", "0.19.0")):  # fmt: skip
        make_wheel(folder, name, version, ("torch",) if name in ("transformers", "accelerate") else ())
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(name, value)
    return folder


def small(fix: Fix) -> Fix:
    """The same steps with what the folder of hand-made wheels holds."""
    make, torch, rest = fix.steps
    assert isinstance(torch, InstallPackages) and isinstance(rest, InstallPackages)
    torch = msgspec.structs.replace(torch, requirements=("torch==2.6.0",), imports=("torch",), needs_bytes=0)
    wanted = ("transformers", *rest.requirements[1:])
    return msgspec.structs.replace(
        fix, steps=(make, torch, msgspec.structs.replace(rest, requirements=wanted, frozen=("torch==2.6.0",)))
    )


def test_an_environment_is_made_and_unmade(tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "new"
    fix = small(planned(load_snapshot(MACHINES / "cpu-wheel-on-4090.json"), folder))
    with locked(tmp_path / "state") as journal:
        applied = apply_fix(journal, fix, lambda number, step: True, quiet)
    assert applied.outcome == "done", applied.error
    have = versions(ask_place(str(folder / "bin/python")))
    assert {"torch": "2.6.0", "transformers": "4.49.0", "msgspec": "0.19.0"}.items() <= have.items()
    assert take_back(tmp_path / "state", applied.change) is None
    assert not folder.exists()


def test_an_environment_whose_torch_does_not_import_is_not_left_behind(tmp_path: Path, index: Path) -> None:
    make_wheel(
        index, "torch", "2.6.0", files=torch_files("2.6.0", None, "raise ImportError('no such symbol')")
    )
    folder = tmp_path / "new"
    fix = small(planned(load_snapshot(MACHINES / "cpu-wheel-on-4090.json"), folder))
    with locked(tmp_path / "state") as journal:
        applied = apply_fix(journal, fix, lambda number, step: True, quiet)
    assert applied.outcome == "failed" and "no such symbol" in str(applied.error)
    assert not folder.exists()
    assert Journal(tmp_path / "state").half_done() == []


def test_the_command_shows_every_step_and_does_nothing_without_a_yes(tmp_path: Path) -> None:
    done = doctor(
        "env", "create", "--recommended", "--venv", str(tmp_path / "new"), "--python", sys.executable
    )
    assert done.returncode == 0, done.stderr
    assert "-m venv" in done.stdout and "torch==" in done.stdout and "Nothing was changed" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    done = doctor("env", "create", "--recommended", "--venv", str(tmp_path))
    assert done.returncode == 2 and "is there already" in done.stderr
