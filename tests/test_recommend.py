"""What is recommended for a driver and its cards, and what is said when nothing fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.machine import encode_snapshot
from doctor.model import Driver, Facts, Gpu, Gpus, Reading, Snapshot, ok, t
from doctor.recommend import matching_transformers, recommend, target_from, target_of
from doctor.recommend_ways import ways_out
from doctor.tables.torch_builds import releases
from tests.commands_run import doctor


def best(driver: str, cards: list[str], python: str | None = None) -> str:
    target, unknown = target_from(driver, cards, python)
    assert unknown == ()
    found = recommend(target).best
    return f"{found.torch.rpartition('.')[0]}+{found.tag}" if found else ""


@pytest.mark.parametrize(
    ("driver", "cards", "python", "expected"),
    [
        pytest.param("470.57.02", ["RTX 3090"], "3.10", "2.7+cu118", id="the articles' image: CUDA 11 only"),
        pytest.param(
            "535.129.03", ["NVIDIA GeForce RTX 4090"], "3.11", "2.14+cu126", id="driver 535: CUDA 12"
        ),
        pytest.param(
            "550.54.15", ["Tesla P100-PCIE-16GB"], None, "2.14+cu126", id="Pascal: the build that kept it"
        ),
        pytest.param("570.124.06", ["RTX 5090"], "3.12", "2.11+cu128", id="Blackwell under a CUDA 12 driver"),
        pytest.param("580.65.06", ["P100", "T4"], None, "2.14+cu126", id="a mixed box: what both run"),
        pytest.param("470.57.02", ["RTX 3090"], "3.14", "", id="no wheels for this Python"),
        pytest.param("550.54.15", ["RTX 5090"], None, "", id="the card is newer than the driver"),
        pytest.param("595.71.05", ["V100"], None, "", id="the driver dropped the card"),
    ],
)
def test_the_best_build_for_a_machine(
    driver: str, cards: list[str], python: str | None, expected: str
) -> None:
    assert best(driver, cards, python) == expected


@pytest.mark.parametrize(
    ("driver", "cards", "python", "word"),
    [
        pytest.param("470.57.02", ["RTX 3090"], "3.14", "another Python", id="another Python"),
        pytest.param("580.65.06", ["P100", "RTX 5090"], None, "CUDA_VISIBLE_DEVICES", id="hide one card"),
        pytest.param("550.54.15", ["RTX 5090"], None, "570", id="a newer driver"),
        pytest.param("595.71.05", ["V100"], None, "580", id="an older driver"),
    ],
)
def test_when_nothing_fits_the_nearest_way_out_is_named(
    driver: str, cards: list[str], python: str | None, word: str
) -> None:
    target, _ = target_from(driver, cards, python)
    found = recommend(target)
    assert found.commands == {}
    assert any(word in str(way) for way in found.ways_out), found.ways_out


def test_a_card_newer_than_the_tables_is_unknown_and_gets_no_old_build() -> None:
    snapshot = Snapshot(
        facts=Facts(
            driver=ok(Driver(version="720.11.03", cuda_version="14.1")),
            gpus=ok(Gpus(items=(Gpu(name="NVIDIA X900", compute_capability="14.3"),))),
        )
    )
    found = recommend(target_of(snapshot))
    assert found.best is None
    assert found.commands == {}
    (way,) = found.ways_out
    assert str(way).startswith("unknown: compute capability 14.3")
    assert f"torch=={releases()[0].version} " in str(way)


def test_an_unknown_card_is_named_and_not_guessed() -> None:
    assert target_from("550.54.15", ["RTX 9999"], None)[1] == ("RTX 9999",)


@pytest.mark.parametrize(
    ("torch", "expected"),
    [("1.12.0", "transformers==4.4"), ("2.3.0", "transformers==5.0"), ("2.6.0", "transformers==5.2")],
)
def test_transformers_goes_with_the_torch(torch: str, expected: str) -> None:
    found = matching_transformers(torch, "3.11")
    assert found is not None
    assert found.startswith(expected)


def test_the_command_prints_what_can_be_pasted() -> None:
    done = doctor("recommend", "--driver", "470.57.02", "--gpu", "RTX 3090", "--target-python", "3.10")
    assert done.returncode == 0
    assert "torch==2.7.1" in done.stdout
    assert "whl/cu118" in done.stdout


def test_a_machine_that_nothing_fits_exits_with_one() -> None:
    assert doctor("recommend", "--driver", "595.71.05", "--gpu", "V100").returncode == 1
    assert doctor("recommend", "--driver", "595.71.05", "--gpu", "nonsense").returncode == 2


# ------------------------------------------------------------------------------- what could not be read is no answer
@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        pytest.param({"driver": Reading(status="failed", why=t("it hangs")), "gpus": Reading(status="failed", why=t("it hangs"))}, 3, "it hangs", id="a hung driver is not a machine without one"),
        pytest.param({}, 3, "nobody looked", id="a snapshot without a driver section"),
        pytest.param({"driver": ok(Driver(version="550.54.15")), "gpus": Reading(status="failed", why=t("mismatch"))}, 3, "mismatch", id="cards unread: said beside the answer"),
        pytest.param({"driver": Reading(status="absent"), "gpus": Reading(status="absent")}, 0, "the CPU build", id="looked, and there is none"),
    ],
)  # fmt: skip
def test_no_answer_of_the_driver_is_not_no_driver(
    tmp_path: Path, facts: dict[str, Reading[Any]], code: int, words: str
) -> None:
    (tmp_path / "a.json").write_bytes(encode_snapshot(Snapshot(facts=Facts(**facts))))
    done = doctor("recommend", "--facts", "a.json", cwd=tmp_path)
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout
    assert ("the CPU build" in done.stdout) == (code == 0)


def test_eight_cards_of_a_kind_are_named_once(tmp_path: Path) -> None:
    cards = (
        *(Gpu(index=index, name="NVIDIA H100", compute_capability="9.0") for index in range(8)),
        Gpu(index=8, error="GPU is lost"),
    )
    machine = Snapshot(facts=Facts(driver=ok(Driver(version="570.86.15")), gpus=ok(Gpus(items=cards))))
    (tmp_path / "a.json").write_bytes(encode_snapshot(machine))
    first = doctor("recommend", "--facts", "a.json", cwd=tmp_path).stdout.splitlines()[0]
    assert first.startswith("For: 8 x NVIDIA H100 · driver 570.86.15")
    assert ", ," not in first


# ------------------------------------------------------------------------------------------------ what is typed
def test_a_card_without_a_driver_is_not_a_machine_without_a_card() -> None:
    done = doctor("recommend", "--gpu", "H100")
    assert "/cpu" not in done.stdout
    assert "--driver VERSION" in " ".join(done.stdout.split())
    assert done.returncode == 0


@pytest.mark.parametrize(
    "name", ["RTX 4090", "rtx4090", "4090", "GeForce RTX 4090", "NVIDIA GeForce RTX 4090", "rtx-4090"]
)
def test_a_card_is_known_by_the_names_people_type(name: str) -> None:
    target, unknown = target_from("550.54.15", [name], None)
    assert (target.capabilities, unknown) == (("8.9",), ())


@pytest.mark.parametrize("name", ["", "RTX", "NVIDIA", "MI300X", "5"])
def test_a_name_that_fits_cards_of_several_kinds_is_not_guessed(name: str) -> None:
    assert target_from("550.54.15", [name], None)[1] == (name,)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--driver", "abc"),
        ("--driver", ""),
        ("--driver", "5"),
        ("--target-python", "banana"),
        ("--transformers-for", "x"),
        ("--driver", "５５０.54"),
    ],
)
def test_what_is_no_version_is_refused(option: str, value: str) -> None:
    done = doctor("recommend", option, value)
    assert (done.returncode, option in done.stderr, done.stdout) == (2, True, "")


@pytest.mark.parametrize("option", ["--python", "--target-python"])
def test_the_python_that_is_to_run_it_decides(option: str) -> None:
    asked = ("recommend", "--driver", "580.65.06", "--gpu", "RTX 3090")
    assert "Python 3.8" in doctor(*asked, option, "3.8").stdout
    best = [doctor(*asked, option, version, "--torch-args").stdout for version in ("3.8", "3.12")]
    assert best[0].startswith("torch==2.4.1"), "the last with wheels for 3.8"
    assert best[0] != best[1]


@pytest.mark.parametrize(
    "other", [("--python", "/usr/bin/python3"), ("--python", "abc"), ("--facts", "a.json")], ids=" ".join
)
def test_a_second_machine_is_refused_not_passed_over(other: tuple[str, str]) -> None:
    done = doctor("recommend", "--driver", "550.54.15", "--gpu", "RTX 3090", *other)
    assert (done.returncode, other[0] in done.stderr, done.stdout) == (2, True, "")


@pytest.mark.parametrize(
    ("python", "words", "never"),
    [
        pytest.param(
            "3.31", "unknown: Python 3.31 is newer", "has no wheels", id="a coming Python is unknown"
        ),
        pytest.param("3.6", "has no wheels for Python 3.6", "unknown", id="an old one is known to have none"),
    ],
)
def test_a_python_outside_the_table(python: str, words: str, never: str) -> None:
    target, _ = target_from("610.10", ["RTX 5090"], python)
    (way,) = map(str, ways_out(target))
    assert words in way
    assert never not in way


@pytest.mark.parametrize("name", ["6.1", "sm_61"])
def test_a_card_without_a_row_is_named_by_its_capability(name: str) -> None:
    target, unknown = target_from("550.54.15", [name], None)
    assert (target.capabilities, unknown) == (("6.1",), ())


@pytest.mark.parametrize("version", ["2.6.0", "2.6", "2.13.0+cpu", "2.9.0.dev20260101", "2.7.0a0"])
def test_a_version_as_torch_writes_it_is_taken(version: str) -> None:
    assert doctor("recommend", "--transformers-for", version).returncode == 0
