"""Before renting: can that machine take this environment, and what would have to change."""

from __future__ import annotations

import pytest

from doctor.model import Host, Snapshot, Torch
from doctor.snapshots.fit import Fit, described_target, fit
from doctor.snapshots.wheel_tags import Need, need_of, wheel_file_name
from tests.snapshots.boxes import box, dist

LINUX = "cp311-cp311-manylinux_2_28_x86_64"


def environment(torch: str = "2.6.0+cu124", cuda: str = "12.4") -> Snapshot:
    arches = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    return box(
        dist("torch", torch, LINUX),
        dist("numpy", "2.1.0", "cp311-cp311-manylinux_2_17_x86_64 cp311-cp311-manylinux2014_x86_64"),
        dist("six", "1.17", "py2-none-any py3-none-any"),
        torch=Torch(version=torch, cuda=cuda, arch_list=arches),
    )


def asked(driver: str | None = "550.54.14", cards: tuple[str, ...] = ("RTX 4090",), python: str | None = "3.11", glibc: str | None = "2.35") -> Fit:  # fmt: skip
    return fit(environment(), described_target(driver, cards, python, glibc))


def test_a_machine_like_its_own_fits() -> None:
    found = asked()
    assert (found.answer, found.obstacles) == ("fits", ())


@pytest.mark.parametrize(
    ("change", "subject", "words"),
    [
        pytest.param({"glibc": "2.27"}, "glibc", "torch want glibc 2.28", id="an older C library"),
        pytest.param({"python": "3.12"}, "python", "2 of its packages are compiled for 3.11", id="another Python"),
        pytest.param({"driver": "470.57.02"}, "driver 470.57.02", "needs driver", id="an old driver"),
        pytest.param({"cards": ("RTX 5090",), "driver": "580.65"}, "NVIDIA GeForce RTX 5090", "has no code for", id="a card too new"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_named_with_the_way_out(
    change: dict[str, object], subject: str, words: str
) -> None:
    found = asked(**change)  # type: ignore[arg-type]
    assert found.answer == "does-not-fit"
    row = next(one for one in found.obstacles if one.subject == subject)
    assert row.level == "fail" and words in str(row.why) and row.change is not None


def test_a_card_too_new_is_offered_another_build_and_told_that_it_is_another() -> None:
    changes = [str(one.change) for one in asked(cards=("RTX 5090",), driver="580.65").obstacles]
    assert any("+cu128 runs there" in text and "no longer the same environment" in text for text in changes)


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        pytest.param({"driver": None}, "driver", id="no driver named"),
        pytest.param({"cards": ()}, "gpu", id="no card named"),
        pytest.param({"cards": ("Some Card 9000",)}, "Some Card 9000", id="a card in no table"),
        pytest.param({"glibc": None}, "glibc", id="no C library named"),
    ],
)
def test_what_is_not_named_makes_the_answer_unknown_not_yes(change: dict[str, object], subject: str) -> None:
    found = asked(**change)  # type: ignore[arg-type]
    assert found.answer == "unknown" and subject in [one.subject for one in found.obstacles]


def test_another_processor_is_in_the_way() -> None:
    target = box(host=Host(arch="aarch64", glibc="2.39"))
    found = fit(box(dist("torch", "2.6.0", LINUX)), target)
    assert found.answer == "does-not-fit" and "x86_64" in str(found.obstacles[0].why)


def test_an_environment_for_the_cpu_fits_a_machine_without_a_driver() -> None:
    found = fit(environment("2.6.0+cpu", ""), described_target(None, (), "3.11", "2.36"))
    assert found.answer == "fits"


@pytest.mark.parametrize(
    ("tags", "need"),
    [
        ("py3-none-any", Need(None, None, None)),
        (LINUX, Need((2, 28), "x86_64", "3.11")),
        ("cp38-abi3-manylinux_2_17_x86_64 cp38-abi3-manylinux2014_x86_64", Need((2, 17), "x86_64", None)),
        ("cp311-cp311-linux_x86_64", Need(None, "x86_64", "3.11")),
        ("cp311-cp311-manylinux_2_34_aarch64", Need((2, 34), "aarch64", "3.11")),
        ("cp311-cp311-musllinux_1_2_x86_64", Need(None, "x86_64", "3.11")),
        ("nonsense", Need(None, None, None)),
    ],
)
def test_what_a_wheel_asks_for(tags: str, need: Need) -> None:
    assert need_of(tags.split()) == need


@pytest.mark.parametrize(
    ("item", "build", "name"),
    [
        (dist("torch", "2.6.0+cu124", LINUX), "", f"torch-2.6.0+cu124-{LINUX}.whl"),
        (dist("six", "1.17.0", "py2-none-any py3-none-any"), "", "six-1.17.0-py2.py3-none-any.whl"),
        (dist("typing-extensions", "4.12", "py3-none-any"), "1", "typing_extensions-4.12-1-py3-none-any.whl"),
        (dist("egg", "1", ""), "", None),
    ],
)
def test_the_wheels_file_name_is_rebuilt(item: object, build: str, name: str | None) -> None:
    assert wheel_file_name(item, build) == name  # type: ignore[arg-type]
