"""A look through somebody else's folders: nearest first, bounded each way, past what is not theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.bounded_walk import Bounds, Entry, walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "deep/a/b/one.log",
        "deep/two.log",
        "three.log",
        ".hidden/four.log",
        "node_modules/five.log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    return tmp_path


def is_log(entry: Entry) -> bool:
    return entry.name.endswith(".log")


def names(tree: Path, bounds: Bounds) -> list[str]:
    return [path.name for path in walk(tree, is_log, bounds)]


def test_the_nearest_come_first_and_hidden_foreign_and_linked_folders_are_passed_over(tree: Path) -> None:
    assert names(tree, Bounds(depth=9)) == ["three.log", "two.log", "one.log"]


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        (Bounds(depth=0), ["three.log"]),
        (Bounds(depth=1), ["three.log", "two.log"]),
        (Bounds(depth=9, entries=3), ["three.log"]),
        (Bounds(depth=9, until=0.0), []),
        (Bounds(depth=9, passed_over=frozenset({"deep", "node_modules"})), ["three.log"]),
    ],
    ids=["this folder", "one below", "few entries", "no time", "other names"],
)
def test_a_bound_ends_the_look(tree: Path, bounds: Bounds, found: list[str]) -> None:
    assert names(tree, bounds) == found


def test_into_a_wanted_folder_the_look_does_not_go(tree: Path) -> None:
    assert [path.name for path in walk(tree, lambda entry: entry.name == "deep", Bounds(depth=9))] == ["deep"]


def test_a_folder_that_is_gone_has_nothing(tmp_path: Path) -> None:
    assert not [*walk(tmp_path / "gone", is_log, Bounds(depth=1))]
