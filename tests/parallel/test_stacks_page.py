"""``doctor stacks RUN`` of several processes is one page, which names the rank that all wait for; also after the run's end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from doctor.pyspy import Sample, find_pyspy
from doctor.rank_stacks import RankStack, awaited, left_behind, living_ranks
from runner.rank_record import RankLeft, read_ranks, stack_file
from runner.rundir import RunDir
from runner.standing import Standing
from tests.commands_run import doctor
from tests.parallel.test_rank_watch import DUMP, IN_EXCHANGE
from tests.parallel.together import finish, overrides, start, steps
from tests.runner.tiny import make_run

AT_WORK, STOPPED = Standing(state="S"), Standing(state="T")


def stack(rank: int, share: float | None, how: Standing = AT_WORK) -> RankStack:
    return RankStack(rank, 100 + rank, how, share, "a.py:1 in f", [], Sample())


WAITING: dict[str, tuple[list[RankStack], int | None]] = {
    "one outside, the others in the exchange": ([stack(0, 1.0), stack(1, 0.0), stack(2, 0.95)], 1),
    "one stopped in the exchange": ([stack(0, 1.0), stack(1, 1.0, STOPPED)], 1),
    "both work and wait by turns": ([stack(0, 0.4), stack(1, 0.2)], None),
    "one waits much, the other comes often": ([stack(0, 0.95), stack(1, 0.3)], None),
    "two outside": ([stack(0, 1.0), stack(1, 0.0), stack(2, 0.0)], None),
    "one that nobody could look at": ([stack(0, 1.0), stack(1, None)], None),
}


@pytest.mark.parametrize(("ranks", "late"), WAITING.values(), ids=WAITING.keys())
def test_the_rank_that_all_wait_for_is_named_where_there_is_one(
    ranks: list[RankStack], late: int | None
) -> None:
    found = awaited(ranks)
    assert (found.rank if found else None) == late


def test_what_ranks_left_behind_is_read_from_their_files(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    (tmp_path / "ranks").mkdir()
    run.stacks.mkdir()
    for rank, text in ((0, IN_EXCHANGE), (1, DUMP), (2, "")):
        record = RankLeft(rank=rank, pid=100 + rank, started_at=0.0, left_at=1.0, code=1)
        (tmp_path / "ranks" / f"{rank}.json").write_bytes(msgspec.json.encode(record))
        stack_file(tmp_path, rank).write_text(text)
    found = left_behind(run)
    assert [(one.rank, one.exchange_share) for one in found] == [(0, 1.0), (1, 0.0)]
    late = awaited(found)
    assert late is not None and late.place == "/home/me/my_loss.py:11 in loss"


def test_a_process_that_got_a_ranks_number_later_is_no_rank(tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    mine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path)])
    other = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", str(tmp_path / "elsewhere")]
    )
    try:
        for rank, pid in ((0, mine.pid), (1, other.pid), (2, 999_999_999)):
            record = RankLeft(rank=rank, pid=pid, started_at=0.0)
            (tmp_path / "ranks" / f"{rank}.json").write_bytes(msgspec.json.encode(record))
        assert [one.rank for one in living_ranks(RunDir(tmp_path))] == [0]
    finally:
        mine.kill()
        other.kill()
        mine.wait()
        other.wait()


@pytest.mark.train
@pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")
def test_all_ranks_of_a_run_are_on_one_page_and_the_stopped_one_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, overrides("train.lr=3e-4", "train.epochs=200", "parallel.timeout_s=600"))
    process = start(run, 2)
    end = time.monotonic() + 90
    while len(steps(run, 1)) < 8 and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    (victim,) = [one for one in read_ranks(run.path) if one.rank == 1]
    try:
        os.kill(victim.pid, signal.SIGSTOP)
        time.sleep(1)
        done = doctor("stacks", str(run.path), "--seconds", "3", timeout_s=60)
        assert done.returncode == 0, done.stderr
        first, *rest = done.stdout.splitlines()
        assert first == f"the others wait for rank 1 (process {victim.pid})", done.stdout
        assert [line.split(",")[0] for line in rest if line.startswith("rank ")] == ["rank 0", "rank 1"]
        assert "stopped by a signal" in done.stdout and "waits for the others in" in done.stdout
    finally:
        os.kill(victim.pid, signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        code, said = finish(process, 60)
    assert code == 143, said
    after = doctor("stacks", str(run.path))
    assert "rank 0, process" in after.stdout and "gone; it stood last at" in after.stdout
