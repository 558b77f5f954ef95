"""Packages mended for real: environments of hand-made wheels broken, mended by an installer, judged, undone, compared."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.acts.installer import ask_place
from doctor.acts.packages import versions
from doctor.apply import apply_fix
from doctor.cure import look_again
from doctor.fixes import fix_for
from doctor.journal import Journal, locked
from doctor.judge import judge
from doctor.machine import load_snapshot, with_facts
from doctor.model import Finding, Fix, InstallPackages, Snapshot
from doctor.probes import Context, read_facts
from tests.curing import Picture, carry_out, picture, quiet, take_back
from tests.wheels import make_venv, make_wheel, torch_files

MACHINES = Path(__file__).parent.parent / "machines"
SECTIONS = ("python", "packages", "torch")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an index holds: torch for the CPU and for several CUDAs, its mates, and what stands on them."""
    folder = tmp_path_factory.mktemp("index")
    for torch, vision in (("2.6.0", "0.21.0"), ("2.1.0", "0.16.0"), ("2.5.1", "0.20.1")):
        for tag, cuda in (("cpu", None), ("cu124", "12.4"), ("cu126", "12.6"), ("cu118", "11.8"), ("cu121", "12.1")):  # fmt: skip
            make_wheel(folder, "torch", f"{torch}+{tag}", ("numpy",), torch_files(f"{torch}+{tag}", cuda))
            make_wheel(folder, "torchvision", f"{vision}+{tag}", (f"torch=={torch}",))
    for version in ("1.26.4", "2.1.0"):
        make_wheel(folder, "numpy", version)
    make_wheel(folder, "transformers", "4.49.0", ("tokenizers>=0.21,<0.22", "torch"))
    for version in ("0.19.1", "0.21.0"):
        make_wheel(folder, "tokenizers", version)
    return folder


@pytest.fixture(params=["uv", "our pip"])
def installer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, wheels: Path, tmp_path: Path) -> None:
    """The index is a folder; no installer may ask anything else."""
    for name, value in {
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_CACHE_DIR": "1", "UV_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_LINK_MODE": "copy",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)


def use(installer: str, python: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (
        installer == "uv"
        and not shutil.which("uv", path=str(Path(sys.executable).parent))
        and not shutil.which("uv")
    ):
        pytest.skip("there is no uv here")
    if installer != "uv":
        monkeypatch.setattr("doctor.acts.installer.shutil.which", lambda name, path=None: None)
    if installer == "its own pip":
        subprocess.run([str(python), "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)


def seen(python: Path, machine: str = "cpu-wheel-on-4090") -> Snapshot:
    """Return a recorded machine with this environment on it."""
    snapshot = load_snapshot(MACHINES / f"{machine}.json")
    facts = read_facts(Context(python=str(python)), SECTIONS)
    return with_facts(snapshot, **{name: getattr(facts, name) for name in SECTIONS})


def the(snapshot: Snapshot, finding_id: str) -> Finding | None:
    return next((one for one in judge(snapshot).findings() if one.id == finding_id), None)


def cure(snapshot: Snapshot, finding_id: str) -> Fix:
    finding = the(snapshot, finding_id)
    assert finding is not None, [one.id for one in judge(snapshot).findings()]
    found = fix_for(finding, snapshot)
    assert isinstance(found, Fix), found
    return found


def content(python: Path) -> Picture:
    """Return the environment's bytes; caches of compiled code and times of folders are no part of it."""
    root = python.parent.parent
    return {name: item for name, item in picture(root).items() if "__pycache__" not in name}


CASES = {
    "torch-cpu-only-build": ("torch==2.6.0+cpu", "torchvision==0.21.0+cpu", "numpy==1.26.4"),
    "numpy2-torch-abi": ("torch==2.1.0+cu121", "numpy==2.1.0"),
    "torchvision-torch-mismatch": ("torch==2.6.0+cu124", "torchvision==0.16.0+cu121", "numpy==1.26.4"),
    "transformers-requirement-out-of-range": ("torch==2.6.0+cu124", "numpy==1.26.4", "transformers==4.49.0", "tokenizers==0.19.1"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("installer", "finding_id"),
    [
        *(("uv", name) for name in CASES),
        ("our pip", "torch-cpu-only-build"),
        ("its own pip", "numpy2-torch-abi"),
    ],
)
def test_a_broken_environment_is_mended_and_comes_back_to_the_byte(
    finding_id: str,
    installer: str,
    tmp_path: Path,
    wheels: Path,
    offline: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES[finding_id])
    use(installer, python, wheels, monkeypatch)
    snapshot, before = seen(python), content(python)
    had = versions(ask_place(str(python)))
    found = cure(snapshot, finding_id)
    with locked(tmp_path / "state") as journal:
        applied = apply_fix(journal, found, lambda number, step: True, quiet)
    assert applied.outcome == "done", applied.error
    assert the(look_again(snapshot, found.touches, {}, str(python)), finding_id) is None
    if finding_id != "torch-cpu-only-build":
        assert versions(ask_place(str(python)))["torch"] == had["torch"]
    assert take_back(tmp_path / "state", applied.change) is None
    assert content(python) == before
    assert versions(ask_place(str(python))) == had


def test_the_build_that_is_installed_is_the_one_the_check_advised(
    tmp_path: Path, wheels: Path, offline: None
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["torch-cpu-only-build"])
    found = cure(seen(python), "torch-cpu-only-build")
    (step,) = found.steps
    assert isinstance(step, InstallPackages)
    assert [one.partition("==")[0] for one in step.requirements] == ["torch", "torchvision"]
    assert all("+cu12" in one for one in step.requirements)
    assert (
        step.imports == ("torch", "torchvision")
        and step.index_url
        and step.index_url.endswith(("cu124", "cu126"))
    )


def test_a_build_that_does_not_import_is_rolled_back(
    tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheel(folder, "torch", "2.6.0+cpu", files=torch_files("2.6.0+cpu", None))
    broken = "raise ImportError('libcudart.so.12: cannot open shared object file')"
    for tag in ("cu124", "cu126"):
        make_wheel(folder, "torch", f"2.6.0+{tag}", files=torch_files(f"2.6.0+{tag}", "12.4", broken))
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    python = make_venv(tmp_path / "venv", folder, "torch==2.6.0+cpu")
    before = content(python)
    applied = carry_out(tmp_path / "state", *cure(seen(python), "torch-cpu-only-build").steps)
    assert applied.outcome == "failed" and "libcudart.so.12" in str(applied.error)
    assert content(python) == before
    assert Journal(tmp_path / "state").half_done() == []


def test_a_release_that_no_index_has_changes_nothing(
    installer: str, tmp_path: Path, wheels: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_venv(tmp_path / "venv", wheels, "numpy==1.26.4")
    use(installer, python, wheels, monkeypatch)
    before = content(python)
    applied = carry_out(tmp_path / "state", InstallPackages(python=str(python), requirements=("numpy==9",)))
    assert applied.outcome == "failed" and "numpy==9" in str(applied.error)
    assert content(python) == before


def test_a_frozen_torch_is_not_moved_for_anything(tmp_path: Path, wheels: Path, offline: None) -> None:
    python = make_venv(tmp_path / "venv", wheels, "torch==2.6.0+cu124", "numpy==1.26.4")
    before = content(python)
    step = InstallPackages(
        python=str(python), requirements=("torchvision==0.16.0+cu121",), frozen=("torch==2.6.0+cu124",)
    )
    applied = carry_out(tmp_path / "state", step)
    assert applied.outcome == "failed"
    assert content(python) == before


def test_where_files_cannot_be_kept_the_versions_come_back(
    installer: str, tmp_path: Path, wheels: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doctor.acts.packages.can_link", lambda folder: False)
    python = make_venv(tmp_path / "venv", wheels, *CASES["torch-cpu-only-build"])
    use(installer, python, wheels, monkeypatch)
    had = versions(ask_place(str(python)))
    applied = carry_out(tmp_path / "state", *cure(seen(python), "torch-cpu-only-build").steps)
    assert applied.outcome == "done", applied.error
    assert versions(ask_place(str(python))) != had
    assert take_back(tmp_path / "state", applied.change) is None
    assert versions(ask_place(str(python))) == had


def test_undo_refuses_when_packages_were_changed_since(tmp_path: Path, wheels: Path, offline: None) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["numpy2-torch-abi"])
    applied = carry_out(tmp_path / "state", *cure(seen(python), "numpy2-torch-abi").steps)
    assert applied.outcome == "done", applied.error
    carry_out(tmp_path / "other", InstallPackages(python=str(python), requirements=("tokenizers==0.21.0",)))
    why = take_back(tmp_path / "state", applied.change)
    assert why is not None and "+ tokenizers 0.21.0" in str(why)
    assert versions(ask_place(str(python)))["numpy"] == "1.26.4"


def test_kept_files_that_were_written_over_are_not_put_back(
    tmp_path: Path, wheels: Path, offline: None
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["numpy2-torch-abi"])
    applied = carry_out(tmp_path / "state", *cure(seen(python), "numpy2-torch-abi").steps)
    assert applied.outcome == "done", applied.error
    (kept,) = (tmp_path / "venv").glob(".rundoctor-kept/*/0/numpy/__init__.py")
    kept.write_text("spoilt")
    before = content(python)
    why = take_back(tmp_path / "state", applied.change)
    assert why is not None and "numpy/__init__.py" in str(why)
    assert content(python) == before


def test_a_guard_of_ours_does_not_stand_in_the_way_of_its_own_fix(
    tmp_path: Path, wheels: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constraints.txt").write_text("torch==2.6.0+cpu\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "constraints.txt"))
    python = make_venv(tmp_path / "venv", wheels, *CASES["torch-cpu-only-build"])
    applied = carry_out(tmp_path / "state", *cure(seen(python), "torch-cpu-only-build").steps)
    assert applied.outcome == "done", applied.error


# ---------------------------------------------------------------------------------------- remains
def test_remains_of_an_install_are_put_aside_and_come_back(
    tmp_path: Path, wheels: Path, offline: None
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["torch-cpu-only-build"])
    site = ask_place(str(python)).sites[0]
    (site / "~orch/lib").mkdir(parents=True)
    (site / "~orch/lib/libtorch.so").write_bytes(b"\x7fELF")
    (site / "~orch-2.5.0.dist-info").mkdir()
    snapshot, before = seen(python), content(python)
    applied = carry_out(tmp_path / "state", *cure(snapshot, "leftover-of-an-install").steps)
    assert applied.outcome == "done"
    assert the(look_again(snapshot, ("packages",), {}, str(python)), "leftover-of-an-install") is None
    assert take_back(tmp_path / "state", applied.change) is None
    assert content(python) == before


def test_a_second_set_of_metadata_goes_and_the_package_is_whole_again(
    tmp_path: Path, wheels: Path, offline: None
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["transformers-requirement-out-of-range"])
    site = ask_place(str(python)).sites[0]
    shutil.copytree(site / "tokenizers-0.19.1.dist-info", site / "tokenizers-0.21.0.dist-info")
    metadata = site / "tokenizers-0.21.0.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("0.19.1", "0.21.0"))
    snapshot, before = seen(python), content(python)
    applied = carry_out(tmp_path / "state", *cure(snapshot, "duplicate-distribution-metadata").steps)
    assert applied.outcome == "done", applied.error
    again = look_again(snapshot, SECTIONS, {}, str(python))
    assert the(again, "duplicate-distribution-metadata") is None
    assert "0.21.0" in (site / "tokenizers/__init__.py").read_text()
    assert take_back(tmp_path / "state", applied.change) is None
    assert content(python) == before


# ---------------------------------------------------------------------------------------- killed
_DOCTOR = """
import sys
from pathlib import Path
from tests.curing import carry_out
from doctor.model import InstallPackages
carry_out(Path(sys.argv[1]), InstallPackages(
    python=sys.argv[2], requirements=("torch==2.6.0+cu124", "torchvision==0.21.0+cu124"), imports=("torch",)))
"""


_UNDO = """
import sys
from pathlib import Path
from tests.curing import take_back
assert take_back(Path(sys.argv[1]), "1") is None
"""


@pytest.mark.parametrize("after_s", [0.15, 0.22, 0.3])
def test_an_undo_that_is_killed_is_done_by_the_next(
    after_s: float, tmp_path: Path, wheels: Path, offline: None
) -> None:
    files = {f"big/m{number}.py": f"x = {number}\n" for number in range(800)}
    make_wheel(tmp_path, "big", "1.0", files={**files, "big/__init__.py": ""})
    make_wheel(tmp_path, "big", "2.0", files={name: text + "y = 1\n" for name, text in files.items()})
    python, root = make_venv(tmp_path / "venv", tmp_path, "big==1.0"), Path(__file__).parent.parent.parent
    before, wheel = content(python), str(tmp_path / "big-2.0-py3-none-any.whl")
    step = InstallPackages(python=str(python), requirements=(wheel,), no_deps=True)
    assert carry_out(tmp_path / "state", step).outcome == "done"
    doctor = subprocess.Popen([sys.executable, "-c", _UNDO, str(tmp_path / "state")], cwd=root)
    time.sleep(after_s)
    os.kill(doctor.pid, signal.SIGKILL)
    doctor.wait()
    assert take_back(tmp_path / "state", "1") is None
    assert content(python) == before
    assert Journal(tmp_path / "state").half_done() == []


@pytest.mark.parametrize("after_s", [0.2, 0.4, 0.6, 0.9])
def test_an_installation_whose_doctor_is_killed_is_waited_for_and_gone_back_from(
    after_s: float, tmp_path: Path, wheels: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = make_venv(tmp_path / "venv", wheels, *CASES["torch-cpu-only-build"])
    before, root = content(python), Path(__file__).parent.parent.parent
    doctor = subprocess.Popen([sys.executable, "-c", _DOCTOR, str(tmp_path / "state"), str(python)], cwd=root)
    time.sleep(after_s)
    os.kill(doctor.pid, signal.SIGKILL)
    doctor.wait()
    with locked(tmp_path / "state", wait_s=60) as journal:  # the installer that outlived its doctor holds it
        half = journal.half_done()
    for change in half:
        assert take_back(tmp_path / "state", change.id) is None
    if half or not journal.changes():
        assert content(python) == before
    assert Journal(tmp_path / "state").half_done() == []
