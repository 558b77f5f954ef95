"""Killed with SIGKILL before any of its file system calls, a fix or an undo leaves what the next start names and repairs."""

from __future__ import annotations

import importlib
import os
import random
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.apply import finish, undo
from doctor.journal import Journal, locked
from doctor.model import AddLine, MovePath, RecodeFile, RemovePath, SetVariable, Step, WriteFile
from tests.curing import Picture, carry_out, picture, quiet, take_back

_READS = ("os.listdir", "os.scandir", "os.walk")


def writes(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether an audited call changes the file system: what only reads makes no new instant."""
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
    return event.startswith(("os.", "shutil.")) and event not in _READS


def make_world(root: Path) -> None:
    (root / "home/cache/blobs").mkdir(parents=True)
    (root / "home/cache/blobs/a").write_bytes(os.urandom(5000))
    (root / "home/cache/link").symlink_to("blobs/a")
    (root / "home/.bashrc").write_bytes(b"# mine\n")
    (root / "home/train.csv").write_bytes("标题\n".encode("gb18030"))
    (root / "home/~orch").mkdir()
    (root / "home/~orch/x").write_text("x")
    (root / "data").mkdir()


def steps(root: Path) -> tuple[Step, ...]:
    home, file = root / "home", str(root / "home/.config/rundoctor/env.sh")
    return (
        SetVariable(name="HF_HOME", value="/data", file=file),
        MovePath(source=str(home / "cache"), target=str(root / "data/cache")),
        AddLine(path=str(home / ".bashrc"), line=f". {file}"),
        RecodeFile(path=str(home / "train.csv"), encoding="gb18030", kept=str(home / "train.csv.original")),
        RemovePath(path=str(home / "~orch")),
        WriteFile(path=str(home / "constraints.txt"), content="torch==2.6.0\n"),
    )


def killed_at(number: int | None, act: Callable[[], object]) -> tuple[bool, int]:
    """Run ``act`` in a child that kills itself before its ``number``-th call; return whether it died, and the calls it made."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        calls = 0

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal calls
            if armed and writes(event, arguments):
                calls += 1
                if calls == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        armed = False
        try:
            for module in ("files", "move", "recode", "remove"):
                importlib.import_module(f"doctor.acts.{module}")
            sys.addaudithook(count)
            armed = True
            act()
            armed = False
            os.write(writer, str(calls).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 20)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), int(said or b"0")


def fixing(root: Path) -> Callable[[], object]:
    return lambda: carry_out(root / "state", *steps(root))


def undoing(root: Path) -> Callable[[], object]:
    return lambda: take_back(root / "state", "1")


def calls_of(root: Path, begin: Callable[[Path], Callable[[], object]], prepared: bool) -> int:
    make_world(root)
    if prepared:
        carry_out(root / "state", *steps(root))
    died, calls = killed_at(None, begin(root))
    assert not died and calls > INSTANTS
    return calls


def content(shown: Picture) -> dict[str, tuple[str, int, bytes]]:
    """What a picture shows but for times, and for the number of the change in the place of what was put aside."""
    return {re.sub(r"kept/[^/]+", "kept/N", name): item[:3] for name, item in shown.items()}


INSTANTS = 24
"""Kills of each kind; RUNDOCTOR_KILLS=all kills before every single call."""


def instants(calls: int, seed: int) -> list[int]:
    if os.environ.get("RUNDOCTOR_KILLS") == "all":
        return list(range(1, calls + 1))
    return sorted(random.Random(seed).sample(range(1, calls + 1), INSTANTS))


@pytest.mark.parametrize("repair", ["go back", "finish"])
def test_a_fix_killed_anywhere_is_named_and_repaired(tmp_path: Path, repair: str) -> None:
    calls = calls_of(tmp_path / "whole", fixing, prepared=False)
    wanted = content(picture(tmp_path / "whole"))
    for number in instants(calls, len(repair)):
        root = tmp_path / str(number)
        make_world(root)
        before = picture(root)
        died, _ = killed_at(number, fixing(root))
        assert died
        with locked(root / "state") as journal:
            half = journal.half_done()
            if not half:  # before the journal named it, nothing was touched; after it was closed, all was
                assert picture(root) == before or len(content(picture(root))) == len(wanted), number
                continue
            assert [change.id for change in half] == ["1"], number
            if repair == "go back":
                assert undo(journal, "1", quiet) is None, number
                assert picture(root) == before, number
            else:
                applied = finish(journal, half[0], lambda number, step: True, quiet)
                assert applied.outcome == "done", (number, applied.error)
                assert sorted(content(picture(root))) == sorted(wanted), number
                assert (root / "home/cache/blobs/a").read_bytes() == before["home/cache/blobs/a"][2]
            assert journal.half_done() == [], number


def test_an_undo_killed_anywhere_is_named_and_repaired(tmp_path: Path) -> None:
    calls = calls_of(tmp_path / "whole", undoing, prepared=True)
    for number in instants(calls, 7):
        root = tmp_path / str(number)
        make_world(root)
        before = picture(root)
        carry_out(root / "state", *steps(root))
        died, _ = killed_at(number, undoing(root))
        assert died
        with locked(root / "state") as journal:
            states = [entry.outcome for entry in journal.entries()]
            assert undo(journal, "1", quiet) is None, (number, states)
            assert journal.half_done() == [], number
        assert picture(root) == before, (number, states)


def test_a_repair_killed_anywhere_is_repaired_the_next_time(tmp_path: Path) -> None:
    chance = random.Random(11)
    for number in range(12):
        root = tmp_path / str(number)
        make_world(root)
        before = picture(root)
        killed_at(chance.randrange(60, 250), fixing(root))
        if not Journal(root / "state").half_done():
            continue
        killed_at(chance.randrange(5, 80), undoing(root))
        with locked(root / "state") as journal:
            for change in journal.half_done():
                assert undo(journal, change.id, quiet) is None, number
            assert undo(journal, "1", quiet) is None
        assert picture(root) == before, number


def test_a_cache_whose_deletion_was_cut_off_is_there_whole_or_gone(tmp_path: Path) -> None:
    def deleting(root: Path) -> Callable[[], object]:
        return lambda: carry_out(root / "state", RemovePath(path=str(root / "home/cache"), keep=False))

    make_world(tmp_path / "whole")
    _, calls = killed_at(None, deleting(tmp_path / "whole"))
    for number in range(1, calls + 1):
        root = tmp_path / str(number)
        make_world(root)
        before = picture(root)
        died, _ = killed_at(number, deleting(root))
        assert died
        with locked(root / "state") as journal:
            for change in journal.half_done():
                assert undo(journal, change.id, quiet) is None
            assert journal.half_done() == []
        after = picture(root)
        gone = {name: item for name, item in before.items() if not name.startswith("home/cache")}
        assert after in (before, gone), number
