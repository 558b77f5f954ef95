"""Machines that cannot meet are told so at once where that can be seen, and after the time-out where it cannot."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import msgspec
import pytest

from runner.meeting import IMPORTS_S, Meeting, not_met, nowhere_to_meet
from runner.rank_record import RankLeft
from runner.start import Start
from runner.text import Text
from tests.parallel.together import finish, overrides, start
from tests.runner.tiny import make_run, outcome


def two(master: str, node_rank: int = 0) -> Start:
    return Start(1, 2, node_rank, master)


def test_a_name_that_leads_nowhere_is_said_on_every_machine() -> None:
    for node in (0, 1):
        assert "no.such.host.invalid is not known" in str(
            nowhere_to_meet(two("no.such.host.invalid:29500", node))
        )


def test_a_port_that_is_taken_is_said_on_the_first_machine_alone() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert "cannot be used" in str(nowhere_to_meet(two(place)))
        assert nowhere_to_meet(two(place, 1)) is None
    assert nowhere_to_meet(two(place)) is None


def test_one_machine_meets_itself() -> None:
    assert nowhere_to_meet(Start(2)) is None


@pytest.mark.parametrize(
    ("begin", "has_timed_out", "said"),
    [(two("gpu01:29500", 1), True, "gpu01:29500"), (two("gpu01:29500", 1), False, "status 1"), (Start(2), True, "status 1")],
    ids=["several machines", "it crashed", "one machine"],
)  # fmt: skip
def test_why_no_rank_began(begin: Start, has_timed_out: bool, said: str) -> None:
    found = not_met(begin, 1, has_timed_out)
    assert isinstance(found, Text) and said in str(found)


def test_a_meeting_is_in_vain_when_no_rank_begins_in_time(tmp_path: Path) -> None:
    """Somebody else's server at the meeting place takes the connection and never answers: torchrun would wait for ever."""
    now = [0.0]
    meeting = Meeting(tmp_path, two("gpu01:1"), 100.0, lambda: now[0])
    alone = Meeting(tmp_path, Start(2), 100.0, lambda: now[0])
    assert not meeting.is_in_vain()
    now[0] = 201.0 + IMPORTS_S
    assert meeting.is_in_vain() and not alone.is_in_vain()
    (tmp_path / "ranks").mkdir()
    record = RankLeft(rank=1, pid=1, started_at=time.time())
    (tmp_path / "ranks" / "1.json").write_bytes(msgspec.json.encode(record))
    assert not meeting.is_in_vain()


@pytest.mark.train
def test_a_machine_that_cannot_meet_ends_with_the_sentence(tmp_path: Path) -> None:
    run = make_run(tmp_path, overrides())
    flags = ["--nproc=1", "--nnodes=2", "--node-rank=1", "--master=no.such.host.invalid:29500"]
    code, said = finish(start(run, 0, *flags), 60)
    assert code == 1, said
    assert "no.such.host.invalid is not known" in str(outcome(run)["error"])
    assert "Traceback" not in said
