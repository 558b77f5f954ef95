"""The nearest set that runs: asked of the indexes only when wanted, each difference with its reason, said again by verify."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from doctor import service
from doctor.machine import encode_snapshot
from doctor.model import Driver, Facts, Gpu, Gpus, Host, Python, Reading, Snapshot, Torch, ok
from doctor.restore_commands import Options, our_uv
from doctor.restore_nearest import find_nearest, kept_changes
from doctor.snapshots.formats.sources import TORCH_INDEX
from doctor.snapshots.nearest import Change, Nearest, explained, nearest
from doctor.snapshots.nearest_wishes import NoTorch, Wish, blamed, loosened, torch_swap, wishes_of
from doctor.snapshots.restore_plan import RestoreError, plan_restore
from doctor.snapshots.verify import verify
from runner.text import t
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import contents_of, make_wheel

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
needs_uv = pytest.mark.skipif(our_uv() is None, reason="uv is not here")


def machine(
    driver: str | None = None,
    card: str = "",
    capability: str = "",
    glibc: str = "2.35",
    cuda: str | None = None,
) -> Snapshot:
    gpus = Gpus(items=(Gpu(index=0, name=card, compute_capability=capability),))
    facts: dict[str, Reading[Any]] = {
        "host": ok(Host(arch="x86_64", glibc=glibc)),
        "python": ok(Python(version="3.11.7")),
    }
    if driver:
        facts |= {"driver": ok(Driver(version=driver, cuda_version=cuda)), "gpus": ok(gpus)}
    return Snapshot(facts=Facts(**facts))


def quiet(line: str) -> None: ...


def ask(snapshot: Snapshot, here: Snapshot, links: Path) -> Nearest:
    return find_nearest(
        snapshot,
        here,
        Path(sys.executable),
        Options(find_links=(str(links),), no_index=True),
        (),
        TORCH_INDEX,
        quiet,
    )


def told(found: Nearest) -> dict[str, tuple[str, str]]:
    return {one.name: (one.wanted, one.got) for one in found.changes}


# ---------------------------------------------------------------------------------------- torch for another driver
CUDA_13 = box(
    dist("torch", "2.13.0", "cp311-cp311-manylinux_2_28_x86_64"), dist("torchvision", "0.28.0"), dist("triton", "3.7.1"),
    dist("nvidia-cublas", "13.1"), dist("nvidia-ml-py", "13.0"), dist("cuda-toolkit", "13.0"), dist("numpy", "2.1.0"),
    torch=Torch(version="2.13.0+cu130", cuda="13.0", arch_list=("sm_75", "sm_80", "sm_90", "compute_90")),
)  # fmt: skip


def test_the_nearest_torch_is_the_same_release_for_the_cuda_of_that_driver() -> None:
    swap = torch_swap(CUDA_13, machine("550.90.07", "NVIDIA GeForce RTX 4090", "8.9", cuda="12.4"))
    assert swap is not None and (swap.version, swap.index) == ("2.13.0+cu126", f"{TORCH_INDEX}cu126")
    wishes = {one.name: one.requirement for one in wishes_of(CUDA_13, swap)}
    assert wishes == {
        "torch": "torch==2.13.0+cu126",
        "torchvision": "torchvision==0.28.0+cu126",
        "numpy": "numpy==2.1.0",
        "nvidia-ml-py": "nvidia-ml-py==13.0",
    }


def test_what_runs_is_not_swapped() -> None:
    assert torch_swap(CUDA_13, machine("580.82.07", "NVIDIA GeForce RTX 4090", "8.9", cuda="13.0")) is None


def test_where_no_torch_runs_it_says_what_would_help() -> None:
    with pytest.raises(NoTorch):
        torch_swap(CUDA_13, machine("390.48", "NVIDIA GeForce RTX 4090", "8.9"))


def test_every_package_of_the_other_build_goes_with_it_and_says_why() -> None:
    here = machine("550.90.07", "NVIDIA GeForce RTX 4090", "8.9", cuda="12.4")
    swap = torch_swap(CUDA_13, here)
    chosen = {
        "torch": "2.13.0+cu126",
        "torchvision": "0.28.0+cu126",
        "numpy": "2.1.0",
        "nvidia-ml-py": "13.0",
        "triton": "3.7.1",
        "nvidia-cublas-cu12": "12.6.4",
    }
    found = nearest(CUDA_13, here, wishes_of(CUDA_13, swap), chosen, swap)
    changes = told(found)
    assert changes["torch"] == ("2.13.0", "2.13.0+cu126") and changes["nvidia-cublas"] == ("13.1", "")
    assert (
        changes["nvidia-cublas-cu12"] == ("", "12.6.4") and "numpy" not in changes and "triton" not in changes
    )
    reasons = {one.name: str(one.why) for one in found.changes}
    assert "driver" in reasons["torch"] and "does not run here" in reasons["nvidia-cublas"]
    plan = plan_restore(found.snapshot)
    phase = next(one for one in plan.phases if one.name == "torch")
    assert phase.indexes == (f"{TORCH_INDEX}cu126",) and "torch==2.13.0+cu126" in phase.lines


# ---------------------------------------------------------------------------------------- what uv says
@pytest.mark.parametrize(
    ("said", "names", "gone"),
    [
        ("Because there is no version of lib==1.0 and you require lib==1.0, we can conclude that", {"lib"}, True),
        ("Because lib==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_36_x86_64`) and you require lib==1.0", {"lib"}, True),
        ("Because lib==1.0 has no usable wheels and you require lib==1.0", {"lib"}, True),
        ("Because lib was not found in the provided package locations and you require lib==1.0", {"lib"}, True),
        ("Because a==1.0 depends on b<2 and you require a==1.0, we can conclude that you require b<2.\n And because you require b==2.0, we", {"a", "b"}, False),
        ("error: cannot connect", set(), False),
    ],
)  # fmt: skip
def test_a_resolvers_words_say_which_package_it_is_about(said: str, names: set[str], gone: bool) -> None:
    assert blamed(said) == (names, gone)


def test_one_step_is_given_up_at_a_time_and_torch_last() -> None:
    wishes = [Wish(name=name, version="1.0", requirement=f"{name}==1.0") for name in ("torch", "lib")]
    first = loosened(wishes, {"torch", "lib"}, gone=False)
    assert first is not None and [one.requirement for one in first] == ["torch==1.0", "lib<=1.0"]
    second = loosened(first, {"lib"}, gone=True)
    assert second is not None and [one.requirement for one in second] == ["torch==1.0", "lib"]
    third = loosened(second, {"lib"}, gone=True)
    assert third is not None and [one.name for one in third] == ["torch"]
    assert loosened(third, {"lib"}, gone=True) is None


# ---------------------------------------------------------------------------------------- asked for real, of a folder of wheels
def require(folder: Path, name: str, version: str, needs: str) -> None:
    """A wheel that needs another."""
    info = f"{name}-{version}.dist-info/METADATA"
    text = contents_of(name, version, {})[info].decode().rstrip() + f"\nRequires-Dist: {needs}\n\n"
    path = make_wheel(folder, name, version)
    with zipfile.ZipFile(path) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, raw in files.items():
            archive.writestr(one, text if one == info else raw)


@needs_uv
def test_what_can_be_had_is_kept_as_it_was(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.0")
    make_wheel(tmp_path, "one", "2.0")
    assert ask(box(dist("one", "1.0")), machine(), tmp_path).changes == ()


@needs_uv
def test_a_release_that_is_gone_gives_way_to_the_one_before_it(tmp_path: Path) -> None:
    for version in ("0.8", "0.9", "1.1"):
        make_wheel(tmp_path, "one", version)
    found = ask(box(dist("one", "1.0")), machine(), tmp_path)
    assert told(found) == {"one": ("1.0", "0.9")} and "no index asked here has a file of one 1.0" in str(
        found.changes[0].why
    )


@needs_uv
def test_where_only_newer_ones_are_left_the_newest_is_taken(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.5")
    assert told(ask(box(dist("one", "1.0")), machine(), tmp_path)) == {"one": ("1.0", "1.5")}


@needs_uv
def test_a_package_of_which_nothing_is_left_is_left_out_and_named(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.0")
    assert told(ask(box(dist("one", "1.0"), dist("gone", "3")), machine(), tmp_path)) == {"gone": ("3", "")}


@needs_uv
def test_a_wheel_for_a_newer_c_library_gives_way(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "2.0", tag="py3-none-manylinux_2_99_x86_64")
    make_wheel(tmp_path, "one", "1.0")
    assert told(ask(box(dist("one", "2.0", "py3-none-manylinux_2_99_x86_64")), machine(), tmp_path)) == {
        "one": ("2.0", "1.0")
    }


@needs_uv
def test_the_same_version_in_another_file_is_a_difference_too(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.0")
    held = content(
        "one", "1.0", "a", file_url="https://f.example/one-1.0.whl", file_sha256="sha256:" + "b" * 64
    )
    snapshot = box(dist("one", "1.0", "py3-none-manylinux_2_99_x86_64"), contents=(held,))
    found = ask(snapshot, machine(glibc="2.31"), tmp_path)
    assert told(found) == {"one": ("1.0", "1.0")} and "2.99" in str(found.changes[0].why)
    assert plan_restore(found.snapshot).phases[0].hashed is False


@needs_uv
def test_what_conflicts_with_a_replacement_gives_way(tmp_path: Path) -> None:
    require(tmp_path, "app", "1.0", "lib<2")
    make_wheel(tmp_path, "lib", "1.9")
    make_wheel(tmp_path, "lib", "2.0")
    changes = told(ask(box(dist("app", "1.1"), dist("lib", "2.0")), machine(), tmp_path))
    assert changes == {"app": ("1.1", "1.0"), "lib": ("2.0", "1.9")}


@needs_uv
def test_where_nothing_fits_it_says_what_the_resolver_said(tmp_path: Path) -> None:
    require(tmp_path, "torch", "1.0", "lib<2")
    require(tmp_path, "transformers", "1.0", "lib>=2")
    with pytest.raises(RestoreError, match="no set that runs here can be had"):
        ask(box(dist("torch", "1.0"), dist("transformers", "1.0")), machine(), tmp_path)


# ---------------------------------------------------------------------------------------- restored and verified
@needs_uv
def test_verify_says_again_what_was_chosen_and_why(tmp_path: Path) -> None:
    make_wheel(tmp_path / "links", "one", "0.9")
    make_wheel(tmp_path / "links", "two", "2.0")
    snapshot = box(dist("one", "1.0"), dist("two", "2.0"), python=f"{HERE}.0")
    (tmp_path / "s.json").write_bytes(encode_snapshot(snapshot))
    options = Options(find_links=(str(tmp_path / "links"),), no_index=True, uv=our_uv())
    found = ask(snapshot, machine(), tmp_path / "links")
    plan = service.plan_nearest(found)
    first = service.restore_snapshot(str(tmp_path / "s.json"), plan, tmp_path / "venv", Path(sys.executable), options, quiet, found.changes)  # fmt: skip
    again = service.verify_snapshot(str(tmp_path / "s.json"), "versions", str(tmp_path / "venv"))
    for verified in (first, again):
        assert verified.differs and verified.chosen == 1
        row = next(one for one in verified.deviations if one.name == "one")
        assert (row.outcome, row.found) == (
            "version",
            "0.9",
        ) and "no index asked here has a file of one 1.0" in str(row.why)
    assert [one.name for one in kept_changes(tmp_path / "venv")] == ["one"]


def test_a_deviation_that_nobody_chose_gets_no_excuse() -> None:
    wanted, there = box(dist("one", "1.0")), box(dist("one", "0.5"))
    changes = (Change(name="one", wanted="1.0", got="0.9", why=t("{name}: {why}", name="one", why="x")),)
    row = explained(verify(wanted, there, "versions"), changes).deviations[0]
    assert row.why is None
