"""Who is looked after how: a rank that does not leave when the others do is named, asked for its stack, and ended."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from runner.dumps import waits_for_others, where_in
from runner.rank_ends import ABORTED, aborted_as_lost, first_to_fail, why_of
from runner.rank_record import RankLeft, stack_file
from runner.rank_watch import GRACE_S, SETTLE_S, UNKILLABLE_S, Awaited, RankWatch
from runner.rundir import RunDir
from runner.standing import Standing, standing, state_and_parent
from runner.start import Start

STOPPED = Standing(state="T", waits_in="do_signal_stop", parent=1)
STUCK = Standing(state="D", waits_in="rpc_wait_bit_killable", parent=1)
AT_WORK = Standing(state="S", parent=1)


class Machine:
    """A run's folder with ranks in it, a clock, and the signals that were sent."""

    def __init__(self, folder: Path, timeout_s: float = 600.0) -> None:
        self.run = RunDir(folder)
        self.now = 0.0
        self.states: dict[int, Standing] = {}
        self.sent: list[tuple[int, int]] = []
        (folder / "ranks").mkdir()
        (folder / "stacks").mkdir()
        self.watch = RankWatch(folder, timeout_s, 1, lambda: self.now, self.states.get, self._send)

    def _send(self, pid: int, number: int) -> None:
        if pid not in self.states:
            raise ProcessLookupError
        self.sent.append((pid, number))

    def rank(self, rank: int, state: Standing | None = None, **left: object) -> None:
        record = RankLeft(rank=rank, pid=100 + rank, started_at=0.0, **left)  # type: ignore[arg-type]
        (self.run.path / "ranks" / f"{rank}.json").write_bytes(msgspec.json.encode(record))
        self.states.pop(100 + rank, None)
        if state is not None:
            self.states[100 + rank] = state

    def wait(self, seconds: float) -> None:
        """Let time pass, looking all the while."""
        for _ in range(int(seconds)):
            self.now += 1.0
            self.watch.look()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_ranks_at_work_are_left_alone(machine: Machine) -> None:
    machine.rank(0, AT_WORK)
    machine.rank(1, STUCK)  # a slow disk: it comes back
    machine.wait(100)
    assert machine.sent == [] and machine.watch.awaited == []


def test_whoever_is_still_there_when_the_others_gave_up_is_noted_and_asked(machine: Machine) -> None:
    machine.rank(0, left_at=1.0, code=1, exchange="timed-out")
    machine.rank(1, STOPPED)
    machine.wait(SETTLE_S + 2)
    assert [(one.rank, one.standing.state) for one in machine.watch.awaited] == [(1, "T")]
    assert machine.sent == [(101, signal.SIGTERM), (101, signal.SIGCONT)]
    assert "do_signal_stop" in stack_file(machine.run.path, 1).read_text()


def test_one_that_leaves_by_itself_a_moment_later_is_not(machine: Machine) -> None:
    machine.rank(0, left_at=1.0, code=1, exchange="timed-out")
    machine.rank(1, AT_WORK)
    machine.wait(1)
    machine.rank(1, left_at=2.0, code=1, exchange="closed")
    machine.wait(60)
    assert machine.watch.awaited == [] and machine.sent == []


def test_one_that_does_not_leave_is_killed_and_one_that_cannot_be_is_given_up(machine: Machine) -> None:
    machine.rank(0, left_at=1.0, code=1, exchange="timed-out")
    machine.rank(1, STUCK)
    machine.wait(SETTLE_S + GRACE_S + 2)
    assert machine.sent[-1] == (101, signal.SIGKILL) and not machine.watch.gives_up
    machine.wait(UNKILLABLE_S + 2)
    assert machine.watch.gives_up


def test_somebody_elses_process_with_a_ranks_number_is_left_alone(machine: Machine) -> None:
    machine.rank(0, left_at=1.0, code=1, exchange="closed")
    machine.rank(1, Standing(state="S", parent=4711))
    machine.wait(SETTLE_S + GRACE_S + 5)
    assert machine.sent == [] and machine.watch.awaited == []


def test_a_rank_that_is_stopped_where_nobody_else_is_to_tell_is_ended_after_the_time_out(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, timeout_s=60.0)
    machine.rank(2, STOPPED)
    machine.wait(50)
    machine.rank(2, AT_WORK)
    machine.wait(5)
    machine.rank(2, STOPPED)
    machine.wait(50)
    assert machine.sent == []
    machine.wait(15)
    assert [one.rank for one in machine.watch.awaited] == [2]
    assert (102, signal.SIGCONT) in machine.sent


def left(rank: int, at: float | None, code: int | None, exchange: str = "") -> RankLeft:
    return RankLeft(rank=rank, pid=100 + rank, started_at=0.0, left_at=at, code=code, exchange=exchange)


def waited(rank: int, how: Standing) -> Awaited:
    return Awaited(rank=rank, pid=100 + rank, standing=how)


CULPRITS: dict[str, tuple[list[RankLeft], list[Awaited], int]] = {
    "stopped, the others timed out": ([left(0, 9.0, 1, "timed-out"), left(1, None, None)], [waited(1, STOPPED)], 1),
    "in an endless loop, the others timed out": ([left(0, 9.0, 1, "timed-out"), left(1, None, None)], [waited(1, AT_WORK)], 1),
    "failed by itself, another did not hear of it in time": ([left(0, None, None), left(1, 9.0, 1)], [waited(0, AT_WORK)], 1),
    "failed by itself later than those that lost it": ([left(0, 9.0, 1, "closed"), left(1, 9.2, 1)], [], 1),
    "stopped, the others aborted by NCCL": ([left(0, None, None), left(1, None, None)], [waited(1, STOPPED)], 1),
    "killed": ([left(0, 9.0, 1, "closed"), left(1, None, None)], [], 1),
    "all lost another machine": ([left(2, 9.1, 1, "closed"), left(3, 9.0, 1, "timed-out")], [], 3),
}  # fmt: skip


@pytest.mark.parametrize(("records", "awaited", "culprit"), CULPRITS.values(), ids=CULPRITS.keys())
def test_who_brought_it_down(records: list[RankLeft], awaited: list[Awaited], culprit: int) -> None:
    found = first_to_fail(records, Start(len(records)), awaited)
    assert found is not None and found.rank == culprit


def test_a_rank_that_nccls_watchdog_ended_waited_for_the_one_that_hangs(machine: Machine) -> None:
    """All others are gone without a word, and none of them is to blame."""
    records = [left(0, None, None), left(1, None, None), left(2, None, None)]
    for rank in (0, 2):
        stack_file(machine.run.path, rank).write_text(f"{ABORTED}\n\n{IN_EXCHANGE}")
    lost = aborted_as_lost(machine.run, records)
    assert [one.exchange for one in lost] == ["timed-out", "", "timed-out"]
    found = first_to_fail(lost, Start(3), [waited(1, AT_WORK)])
    assert found is not None and found.rank == 1


DUMP = """\
kernel: state T, waits in do_signal_stop
Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

Current thread 0x00007f02 (most recent call first):
  File "/home/me/my_loss.py", line 11 in loss
  File "/runs/a/code/runner/passes.py", line 61 in _forward
  File "/runs/a/code/runner/trainer.py", line 80 in train_all
"""
IN_EXCHANGE = """\
Traceback (most recent call last):
  File "/runs/a/code/runner/trainer.py", line 80, in train_all
    x()
  File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2810, in all_reduce
    work.wait()
RuntimeError: gloo
"""


def test_a_stack_file_says_where_a_rank_stood() -> None:
    assert where_in(DUMP) == "/home/me/my_loss.py:11 in loss"
    assert not waits_for_others(DUMP)
    assert where_in(IN_EXCHANGE) == "runner/trainer.py:80 in train_all"
    assert waits_for_others(IN_EXCHANGE)
    assert where_in("kernel: state D\n") == ""


@pytest.mark.parametrize(
    ("how", "words"),
    [(STOPPED, "which was stopped at"), (STUCK, "stuck in the kernel (rpc_wait_bit_killable)"), (AT_WORK, "which did not come")],
    ids=["stopped", "stuck", "at work"],
)  # fmt: skip
def test_the_sentence_says_who_how_and_where(machine: Machine, how: Standing, words: str) -> None:
    stack_file(machine.run.path, 1).write_text(DUMP)
    said = str(why_of(waited(1, how), machine.run))
    assert "all waited for rank 1 (process 101)" in said and words in said
    assert "/home/me/my_loss.py:11" in said and "--resume" in said


def test_a_process_is_seen_as_the_kernel_sees_it(tmp_path: Path) -> None:
    import os

    assert state_and_parent("4711 (py (x) thon) T 17 2") == ("T", 17)
    assert state_and_parent("") == ("?", 0)
    own = standing(os.getpid())
    assert own is not None and own.state in "RS" and own.parent == os.getppid()
    assert standing(999_999_999) is None
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (python) Z 1")
    assert standing(7, tmp_path) is None, "it has ended"
    (tmp_path / "7" / "stat").write_text("7 (python) D 1")
    (tmp_path / "7" / "wchan").write_text("rpc_wait")
    assert standing(7, tmp_path) == Standing(state="D", waits_in="rpc_wait", parent=1)
