"""What differs, and whether the result will be the same: every kind of difference with its meaning."""

from __future__ import annotations

import msgspec
import pytest

from doctor.machine import with_facts
from doctor.model import (
    DataFingerprint,
    Environment,
    GitState,
    Host,
    Packages,
    Reading,
    RunSettings,
    Snapshot,
    Torch,
    ok,
    t,
)
from doctor.snapshots.diff import Diff, diff
from doctor.snapshots.meanings import kind_of
from tests.snapshots.boxes import box, content, dist

CUDA = Torch(version="2.6.0+cu124", cuda="12.4")


def between(a: Snapshot, b: Snapshot) -> Diff:
    return diff(a, b, "a", "b")


def test_a_snapshot_and_itself_are_the_same_bits() -> None:
    one = box(dist("torch", "2.6.0"), contents=(content("torch", "2.6.0", "a"),))
    found = between(one, one)
    assert (found.verdict, found.differences, found.complete) == ("same-bits", (), True)
    assert (found.packages_equal, found.packages_equal_by_content) == (1, 1)


def test_equal_versions_without_digests_are_not_called_complete() -> None:
    found = between(box(dist("torch", "2.6.0")), box(dist("torch", "2.6.0")))
    assert found.verdict == "same-bits" and not found.complete


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        pytest.param(dist("torch", "2.6.0+cu124"), dist("torch", "2.7.0+cu124"), "other-numbers", id="another torch minor"),
        pytest.param(dist("torch", "2.6.0+cu124"), dist("torch", "2.6.0+cu126"), "same-numbers", id="torch for another CUDA"),
        pytest.param(dist("torch", "2.6.0+cu124"), dist("torch", "2.6.0+cpu"), "other-numbers", id="torch for the CPU"),
        pytest.param(dist("torch", "2.6.0"), dist("torch", "2.6.1"), "same-numbers", id="a patch release of torch"),
        pytest.param(dist("transformers", "4.49.0"), dist("transformers", "4.50.0"), "other-numbers", id="another transformers"),
        pytest.param(dist("nvidia-cublas-cu12", "12.4.5.8"), dist("nvidia-cublas-cu12", "12.6.0"), "same-numbers", id="another cuBLAS"),
        pytest.param(dist("numpy", "1.26.4"), dist("numpy", "2.1.0"), "other-numbers", id="NumPy 1 and 2"),
        pytest.param(dist("pytest", "8.0"), dist("pytest", "9.0"), "same-bits", id="a bystander"),
        pytest.param(dist("some-lib", "1.0"), dist("some-lib", "2.0"), "same-numbers", id="a package nobody knows"),
    ],
)  # fmt: skip
def test_another_version_means(a: object, b: object, verdict: str) -> None:
    found = between(box(a), box(b))  # type: ignore[arg-type]
    assert [one.verdict for one in found.differences] == [verdict] and found.verdict == verdict


@pytest.mark.parametrize(("a", "b"), [("1.0", "1.0.0"), ("1.0.0rc1", "1.0rc1")])
def test_one_version_in_two_spellings_is_one(a: str, b: str) -> None:
    assert between(box(dist("lib", a)), box(dist("lib", b))).differences == ()


def test_the_same_version_with_other_bytes_is_found() -> None:
    a = box(dist("torch", "2.6.0"), contents=(content("torch", "2.6.0", "a"),))
    b = box(dist("torch", "2.6.0"), contents=(content("torch", "2.6.0", "b"),))
    found = between(a, b)
    assert [(one.subject, one.verdict) for one in found.differences] == [("torch", "other-numbers")]
    assert "other files" in str(found.differences[0].why)


def test_a_missing_torch_will_not_run_and_an_added_one_is_named() -> None:
    assert between(box(dist("torch", "2.6.0")), box()).verdict == "will-not-run"
    assert between(box(), box(dist("flash-attn", "2.7"))).verdict == "same-numbers"


def test_an_excerpt_of_packages_misses_nothing_for_sure() -> None:
    excerpt = with_facts(box(), packages=ok(Packages(complete=False)))
    assert between(box(dist("torch", "2.6.0")), excerpt).differences == ()


@pytest.mark.parametrize(
    ("a", "b", "subject", "verdict"),
    [
        pytest.param({"cards": ("RTX 4090",), "driver": "550.1"}, {"cards": ("RTX 3090",), "driver": "550.1"}, "GPU", "other-numbers", id="another card"),
        pytest.param({"cards": ("RTX 4090",)}, {"cards": ("RTX 4090", "RTX 4090")}, "GPU", "other-numbers", id="another number of cards"),
        pytest.param({"cards": ("RTX 4090",)}, {}, "GPU", "will-not-run", id="no card"),
        pytest.param({}, {"cards": ("RTX 4090",)}, "GPU", "other-numbers", id="a card where there was none"),
        pytest.param({"driver": "550.1"}, {"driver": "560.2"}, "driver", "same-numbers", id="another driver"),
        pytest.param({"python": "3.11.7"}, {"python": "3.11.9"}, "Python", "same-numbers", id="another patch of Python"),
        pytest.param({"host": Host(glibc="2.35")}, {"host": Host(glibc="2.36")}, "glibc", "same-numbers", id="another C library"),
        pytest.param({"host": Host(arch="x86_64")}, {"host": Host(arch="aarch64")}, "arch", "other-numbers", id="another processor"),
        pytest.param({"host": Host(kernel="5")}, {"host": Host(kernel="6")}, "kernel", "same-bits", id="another kernel"),
        pytest.param({"variables": {"PYTHONHASHSEED": "0"}}, {}, "PYTHONHASHSEED", "other-numbers", id="no hash seed"),
        pytest.param({"variables": {"OMP_NUM_THREADS": "1"}}, {"variables": {"OMP_NUM_THREADS": "2"}}, "OMP_NUM_THREADS", "same-numbers", id="other threads"),
        pytest.param({"variables": {"HF_HOME": "/a"}}, {"variables": {"HF_HOME": "/b"}}, "HF_HOME", "same-bits", id="another cache"),
    ],
)  # fmt: skip
def test_another_machine_means(
    a: dict[str, object], b: dict[str, object], subject: str, verdict: str
) -> None:
    found = between(box(**a), box(**b))  # type: ignore[arg-type]
    assert (subject, verdict) in [(one.subject, one.verdict) for one in found.differences]


def test_the_session_s_own_variables_are_not_compared() -> None:
    assert between(box(variables={"TERM": "xterm", "LC_ALL": "C"}), box()).differences == ()


def test_cards_that_nobody_looked_at_are_no_difference_and_are_said() -> None:
    blind = with_facts(box(), gpus=Reading(status="failed", why=t("NVML hangs")))
    found = between(box(cards=("RTX 4090",)), blind)
    assert not [one for one in found.differences if one.subject == "GPU"] and not found.complete
    assert [(one.section, "NVML hangs" in str(one.why)) for one in found.not_compared] == [("gpus", True)]


def test_a_credential_that_is_set_on_one_side_is_named() -> None:
    a = with_facts(box(), environment=ok(Environment(names=("HF_TOKEN", "EDITOR"))))
    found = between(a, box())
    assert [str(one.why) for one in found.not_compared] == [
        "set in A and not in B, values not kept: HF_TOKEN"
    ]


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        pytest.param(GitState(commit="a" * 40), GitState(commit="a" * 40), False, id="the same commit"),
        pytest.param(GitState(commit="a" * 40), GitState(commit="b" * 40), True, id="another commit"),
        pytest.param(GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:1"), GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:1"), False, id="the same changes"),
        pytest.param(GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:1"), GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:2"), True, id="other changes"),
        pytest.param(GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:1"), GitState(commit="a" * 40, dirty=False), True, id="changes on one side"),
        pytest.param(GitState(commit="a" * 40, dirty=True), GitState(commit="a" * 40, dirty=True), True, id="changes that nobody kept"),
    ],
)  # fmt: skip
def test_code(a: GitState, b: GitState, differs: bool) -> None:
    found = between(box(git=a), box(git=b)).differences
    assert [one.verdict for one in found] == (["other-numbers"] if differs else [])


def test_data_is_found_by_its_name_and_compared_by_content() -> None:
    mine = DataFingerprint(path="/a/rows.csv", size_bytes=4, sha256="sha256:1", how="whole")
    moved = msgspec.structs.replace(mine, path="/b/rows.csv")
    other = msgspec.structs.replace(moved, sha256="sha256:2")
    assert between(box(data=(mine,)), box(data=(moved,))).differences == ()
    assert [one.section for one in between(box(data=(mine,)), box(data=(other,))).differences] == ["data"]


def test_settings_of_a_run() -> None:
    a = RunSettings(seeds={"init": 1}, settings={"threads": 2, "precision": "bf16"}, profile={"run.name": "a", "train.lr": 1e-4})  # fmt: skip
    b = RunSettings(seeds={"init": 2}, settings={"threads": 4, "precision": "bf16"}, profile={"run.name": "b", "train.lr": 2e-4})  # fmt: skip
    found = {one.subject: one.verdict for one in between(box(run=a), box(run=b)).differences}
    assert found == {"seed init": "other-numbers", "threads": "same-numbers", "run.name": "same-bits", "train.lr": "other-numbers"}  # fmt: skip


def test_what_the_doctor_fails_there_will_not_run() -> None:
    a = box(torch=CUDA, driver="550.54.14", cards=("NVIDIA GeForce RTX 4090",))
    b = box(torch=CUDA, driver="470.57.02", cards=("NVIDIA GeForce RTX 4090",))
    failing = [one for one in between(a, b).differences if one.section == "check"]
    assert (
        failing
        and {one.verdict for one in failing} == {"will-not-run"}
        and failing[0].source.startswith("doctor help ")
    )


def test_worst_comes_first() -> None:
    a = box(dist("torch", "2.6.0"), dist("pytest", "8"), python="3.11.7")
    b = box(dist("torch", "2.7.0"), dist("pytest", "9"), python="3.11.9")
    assert [one.verdict for one in between(a, b).differences] == [
        "other-numbers",
        "same-numbers",
        "same-bits",
    ]


@pytest.mark.parametrize("name", ["torch", "nvidia-cudnn-cu12", "pip", "unheard-of"])
def test_every_package_is_of_one_kind(name: str) -> None:
    assert kind_of(name) in ("algorithms", "kernels", "bystanders", "other")
