"""Two hosts train together: one is killed, the link between them is cut, or slow. Both sides say in our words what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.rank_record import read_ranks
from runner.rundir import RunDir
from tests.parallel.hosts import ADDRESSES, Hosts, two_hosts
from tests.parallel.together import finish, furthest, overrides, steps
from tests.runner.tiny import make_run, outcome, train

pytestmark = [pytest.mark.train, pytest.mark.long]

TIMEOUT_S = 12


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with two_hosts(str(os.getpid() % 10000)) as (made, why_not):
        if why_not:
            pytest.skip(f"two hosts in network namespaces cannot be made here: {why_not}")
        yield made


def two_runs(folder: Path, *more: str) -> list[RunDir]:
    """Return a run directory for each host, of the same plan."""
    settings = overrides("train.lr=3e-4", f"parallel.timeout_s={TIMEOUT_S}", *more)
    return [make_run(folder, settings, f"host{host}") for host in (0, 1)]


def start(hosts: Hosts, runs: list[RunDir], *flags: str) -> list[subprocess.Popen[str]]:
    return [hosts.start(run, host, *flags) for host, run in enumerate(runs)]


def wait_for_step(run: RunDir, step: int, processes: list[subprocess.Popen[str]]) -> None:
    end = time.monotonic() + 120
    while len(steps(run)) < step and time.monotonic() < end and all(one.poll() is None for one in processes):
        time.sleep(0.05)
    assert len(steps(run)) >= step, [finish(one, 30) for one in processes]


def assert_goes_on(hosts: Hosts, runs: list[RunDir], folder: Path, *more: str) -> None:
    """Both come back with --resume, and the model is that of one process."""
    for code, said in [finish(one, 150) for one in start(hosts, runs, "--resume")]:
        assert code == 0, said
    alone = make_run(folder, overrides("train.lr=3e-4", *more), "alone")
    assert train(alone) == 0
    assert furthest(alone.final, runs[0].final) <= 1e-4


LONG = "train.epochs=12"


def test_a_process_killed_on_one_host_is_said_on_both(hosts: Hosts, tmp_path: Path) -> None:
    runs = two_runs(tmp_path, LONG)
    processes = start(hosts, runs)
    wait_for_step(runs[0], 12, processes)
    (victim,) = read_ranks(runs[1].path)
    os.kill(victim.pid, signal.SIGKILL)
    ended = [finish(one, 90) for one in processes]
    assert [code for code, _ in ended] == [1, 1], ended
    here, there = (str(outcome(run)["error"]) for run in runs)
    assert "rank 1" in there and "gone without a word" in there
    assert ADDRESSES[1] in here and "a process there ended" in here and "--resume" in here
    assert_goes_on(hosts, runs, tmp_path, LONG)


def test_a_cut_link_is_said_on_both_hosts_with_the_other_ones_address(hosts: Hosts, tmp_path: Path) -> None:
    runs = two_runs(tmp_path, LONG)
    processes = start(hosts, runs)
    wait_for_step(runs[0], 12, processes)
    hosts.set_link(up=False)
    ended = [finish(one, 120) for one in processes]
    assert [code for code, _ in ended] == [1, 1], ended
    for host, run in enumerate(runs):
        error = str(outcome(run)["error"])
        assert f"rank {host} waited {TIMEOUT_S} s for" in error and ADDRESSES[1 - host] in error, error
        assert "look there whether it runs and its link is up" in error and "--resume" in error
    hosts.set_link(up=True)
    assert_goes_on(hosts, runs, tmp_path, LONG)


def test_a_slow_link_only_takes_longer(hosts: Hosts, tmp_path: Path) -> None:
    if why_not := hosts.slow("8mbit"):
        pytest.skip(f"a link cannot be slowed here: {why_not}")
    runs = two_runs(tmp_path)
    for code, said in [finish(one, 180) for one in start(hosts, runs)]:
        assert code == 0, said
    alone = make_run(tmp_path, overrides("train.lr=3e-4"), "alone")
    assert train(alone) == 0
    assert furthest(alone.final, runs[0].final) <= 1e-6
