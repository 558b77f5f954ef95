"""Who calls whom: shares of looks, the widest first, bounded however deep and wide the stacks are."""

from __future__ import annotations

from doctor.call_tree import DEEPEST, NODES, call_trees
from doctor.stacks import Frame, Stack


def stack(*names: str, count: int = 1, pids: tuple[int, ...] = (7,), thread: int | None = None) -> Stack:
    frames = tuple(Frame(name, f"{name}.py", 1) for name in names)
    return Stack(pids, pids[-1] if thread is None else thread, "MainThread", frames, count)


def test_shares_are_of_looks_and_children_stand_behind_their_caller() -> None:
    stacks = [
        stack("main", "step", "forward", count=6),
        stack("main", "step", "backward", count=3),
        stack("main", "save"),
    ]
    [tree] = call_trees(stacks)
    assert tree["process"] == "trainer"
    assert [(depth, function, share) for depth, function, _, _, share in tree["nodes"]] == [
        (0, "main", 1.0), (1, "step", 0.9), (2, "forward", 0.6), (2, "backward", 0.3), (1, "save", 0.1),
    ]  # fmt: skip


def test_the_trainer_comes_first_and_side_threads_not_at_all() -> None:
    stacks = [
        stack("main", count=5),
        stack("load", count=50, pids=(7, 9)),
        stack("pin_memory", count=90, thread=1234),
    ]
    assert [tree["process"] for tree in call_trees(stacks)] == ["trainer", "child 9"]
    assert all(node[1] != "pin_memory" for tree in call_trees(stacks) for node in tree["nodes"])


def test_what_is_too_narrow_to_draw_is_left_out() -> None:
    [tree] = call_trees([stack("main", "hot", count=99), stack("main", "rare")])
    assert [node[1] for node in tree["nodes"]] == ["main", "hot"]


def test_wide_and_endless_stacks_stay_bounded() -> None:
    wide = [stack("main", f"f{index}", count=100) for index in range(40)]
    deep = [stack(*["recurse"] * 5000, count=10)]
    assert len(call_trees(wide)[0]["nodes"]) <= NODES
    nodes = call_trees(deep)[0]["nodes"]
    assert len(nodes) <= min(NODES, DEEPEST)


def test_no_stacks_no_trees() -> None:
    assert call_trees([]) == []
