"""How many processes start where: from options; and who is named when one of them is gone."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doctor.start_errors import LaunchError
from doctor.together import Together, is_here, together_of
from runner.interfaces import interface_to
from runner.order import Cut, dealt
from runner.orphans import orphans
from runner.rank_ends import first_to_fail
from runner.rank_env import RankPlace, threads_each
from runner.rank_record import RankLeft, RankRecord, read_ranks
from runner.rundir import RunDir
from runner.signals import StopRequest
from runner.strategy_choice import choose_strategy
from runner.together import Forwarder, Start, conclude, environment, start_of, torchrun_argv


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("tokens", [0, 40])
@pytest.mark.parametrize("count", [1, 5, 8, 13])
def test_every_sample_is_dealt_once_and_all_ranks_have_as_many_micro_batches(
    ranks: int, tokens: int, count: int
) -> None:
    cut = Cut(2, tokens, [8 + 3 * index for index in range(count)])
    parts = [dealt(list(range(count)), cut, rank, ranks) for rank in range(ranks)]
    assert len({len(part) for part in parts}) == 1
    real = [index for part in parts for lot in part for index in lot if index >= 0]
    assert sorted(real) == list(range(count))
    assert all(len(lot) == 1 for part in parts for lot in part if lot[0] < 0), "a stand-in is one sample"


OPTIONS: dict[str, tuple[tuple[str, int, int | None, str], Together | None]] = {
    "one process is started as ever": (("1", 1, None, ""), None),
    "two here": (("2", 1, None, ""), Together(nproc=2)),
    "a process a card": (("gpu", 1, None, ""), Together(nproc=4)),
    "the first of two machines": (("2", 2, None, "127.0.0.1:29500"), Together(nproc=2, nnodes=2, master="127.0.0.1:29500")),
    "the other of two": (("2", 2, None, "192.0.2.7:29500"), Together(nproc=2, nnodes=2, node_rank=1, master="192.0.2.7:29500")),
    "one process on each of three": (("1", 3, 2, "192.0.2.7:1"), Together(nproc=1, nnodes=3, node_rank=2, master="192.0.2.7:1")),
}  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_say_how_many(given: tuple[str, int, int | None, str], wanted: Together | None) -> None:
    assert together_of(*given, cards=4) == wanted


WRONG: dict[str, tuple[tuple[str, int, int | None, str], str]] = {
    "no number": (("two", 1, None, ""), "--nproc"),
    "none": (("0", 1, None, ""), "--nproc"),
    "a card each, and no card": (("gpu", 1, None, ""), "0 here"),
    "machines without a meeting place": (("2", 2, None, ""), "HOST:PORT"),
    "a meeting place for one machine": (("2", 1, None, "h:1"), "--nnodes"),
    "which of three is not said": (("2", 3, None, "192.0.2.7:1"), "--node-rank"),
    "a machine too many": (("2", 2, 2, "192.0.2.7:1"), "--node-rank"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG.keys())
def test_options_that_do_not_go_together_are_refused_with_the_way_out(
    given: tuple[str, int, int | None, str], said: str
) -> None:
    with pytest.raises(LaunchError) as refused:
        together_of(*given, cards=0)
    assert said in str(refused.value)


def test_only_its_own_addresses_are_here() -> None:
    assert is_here("127.0.0.1") and not is_here("192.0.2.7") and not is_here("no.such.host.invalid")


def left(rank: int, at: float | None, code: int | None) -> RankLeft:
    return RankLeft(rank=rank, pid=100 + rank, started_at=0.0, left_at=at, code=code)


ENDS: dict[str, tuple[list[RankLeft], int | None]] = {
    "one is gone without a word, the others left because of it": ([left(0, 9.0, 1), left(1, None, None)], 1),
    "the first that left with an error": ([left(0, 9.1, 1), left(1, 9.0, 1)], 1),
    "all saved": ([left(0, 9.0, 143), left(1, 9.0, 143)], None),
    "all gone at once: the earliest rank stands for them": ([left(0, None, None), left(1, None, None)], 0),
}


@pytest.mark.parametrize(("records", "culprit"), ENDS.values(), ids=ENDS.keys())
def test_who_brought_it_down(records: list[RankLeft], culprit: int | None) -> None:
    found = first_to_fail(records, Start(len(records)))
    assert (found.rank if found else None) == culprit


def test_threads_are_shared_and_never_none() -> None:
    assert threads_each(8, RankPlace(size=4, local_size=4)) == 2
    assert threads_each(1, RankPlace(size=4, local_size=4)) == 1


def test_what_does_not_fit_is_cut_into_parts() -> None:
    gib = 1 << 30
    assert choose_strategy("auto", 10 * gib, 24 * gib, 2)[0] == "ddp"
    assert choose_strategy("auto", 23 * gib, 24 * gib, 2)[0] == "fsdp"
    assert choose_strategy("auto", None, 24 * gib, 2)[0] == "ddp"
    assert choose_strategy("auto", 99 * gib, None, 2)[0] == "ddp"
    assert choose_strategy("fsdp", 1, 24 * gib, 2)[0] == "fsdp"


def test_machines_meet_where_they_are_told() -> None:
    start = start_of(["--nproc=2", "--nnodes=2", "--node-rank=1", "--master=gpu01:29500"])
    argv = torchrun_argv(start, "/run", "/run/code/runner/__main__.py", ["--resume"])
    assert {
        "--node-rank=1",
        "--master-addr=gpu01",
        "--master-port=29500",
        "--nnodes=2",
        "--nproc-per-node=2",
    } <= set(argv)
    assert argv[-3:] == ["/run/code/runner/__main__.py", "/run", "--resume"]
    with pytest.raises(ValueError, match="cannot start"):
        start_of(["--nproc=2", "--nnodes=2"])


def test_the_loopback_leads_to_itself_and_nothing_to_nowhere() -> None:
    assert interface_to("127.0.0.1") == "lo"
    assert interface_to("no.such.host.invalid") == ""


def test_how_a_rank_left_is_known_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record would stay that of a rank at work, and it would be named as one that was killed."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    try:
        with RankRecord(str(tmp_path), RankPlace(rank=1, size=2)) as record:
            record.code, record.exchange = 1, "closed"
            monkeypatch.setattr(Path, "write_bytes", full)
    finally:  # it is a process's own for good; this one goes on
        faulthandler.unregister(signal.SIGTERM)
        faulthandler.enable(2)
    (one,) = read_ranks(tmp_path)
    assert (one.code, one.exchange) == (1, "closed") and one.left_at is not None


def with_exchange(one: RankLeft, how: str) -> RankLeft:
    one.exchange = how
    return one


TOGETHER_ENDED: dict[str, tuple[list[RankLeft], int, int]] = {
    "all came to the end": ([left(0, 9.0, 0), left(1, 9.0, 0)], 0, 0),
    "all saved, and torchrun was killed": ([left(0, 9.0, 143), left(1, 9.0, 143)], -9, 143),
    "stopped before there was anything, one found the other gone": (
        [left(0, 9.0, 143), with_exchange(left(1, 9.1, 1), "closed")], 1, 143),
    "one of them never began": ([left(0, 9.0, 143)], 0, 1),
    "one failed by itself": ([left(0, 9.0, 143), left(1, 9.1, 1)], 1, 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("records", "returncode", "code"), TOGETHER_ENDED.values(), ids=TOGETHER_ENDED.keys()
)
def test_how_it_ended_is_what_the_ranks_left(
    tmp_path: Path, records: list[RankLeft], returncode: int, code: int
) -> None:
    (tmp_path / "ranks").mkdir()
    for one in records:
        (tmp_path / "ranks" / f"{one.rank}.json").write_bytes(msgspec.json.encode(one))
    found, why = conclude(RunDir(tmp_path), Start(2), returncode, [])
    assert found == code and (why is None) == (code != 1)


def test_a_rank_that_was_stopped_by_itself_takes_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("runner.together.os.kill", lambda pid, number: sent.append(pid))
    (tmp_path / "ranks").mkdir()
    forwarder = Forwarder(RunDir(tmp_path), StopRequest())
    for records in ([left(0, None, None), left(1, None, None)], [left(0, None, None), left(1, 9.0, 143)]):
        for one in records:
            (tmp_path / "ranks" / f"{one.rank}.json").write_bytes(msgspec.json.encode(one))
        forwarder.look()
        forwarder.look()
    assert sent == [100]


def test_what_a_platform_set_for_jobs_of_its_own_does_not_reach_torchrun() -> None:
    """Kubeflow sets PET_NNODES, PET_NODE_RANK ...: torchrun's options by another way."""
    found = environment(Start(2), 4, {"PET_NNODES": "4", "PET_MAX_RESTARTS": "3", "HOME": "/root"})
    assert [name for name in found if name.startswith("PET_")] == ["PET_SIGNALS_TO_HANDLE"]
    assert found["HOME"] == "/root" and found["OMP_NUM_THREADS"] == "2"


def test_a_rank_that_is_there_is_told_from_somebody_elses_process(tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    own = RankLeft(rank=0, pid=os.getpid(), started_at=0.0)
    (tmp_path / "ranks" / "0.json").write_bytes(msgspec.json.encode(own))
    assert orphans(tmp_path) == []
    waits = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", waits, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline(), (
            "until then it may be on its way there"
        )
        own.pid = process.pid
        (tmp_path / "ranks" / "0.json").write_bytes(msgspec.json.encode(own))
        assert orphans(tmp_path) == [own]
        process.communicate(b"\n")
    assert orphans(tmp_path) == []
