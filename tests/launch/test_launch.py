"""A run directory holds all a run needs, and has one trainer at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.launch import LaunchError, StartedRun, prepare_run, start_run
from doctor.model import Snapshot
from doctor.running import plan_run, resume, stop
from doctor.trainer_pid import read_mark, trainer_alive
from doctor.watching import RunWatcher
from runner.plan import decode_plan
from runner.rundir import RunDir

Start = Callable[..., StartedRun]


def wait_until(true: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_a_prepared_run_carries_our_runner_alone(prepared: RunDir) -> None:
    assert (prepared.code / "runner" / "events.py").is_file()
    assert [path.name for path in prepared.code.iterdir()] == ["runner"]
    assert not list(prepared.code.rglob("__pycache__"))
    assert decode_plan(prepared.plan.read_bytes()).name == "tiny"
    assert prepared.snapshot.is_file()


def test_a_directory_that_holds_a_run_is_refused(prepared: RunDir, profile: Path, snapshot: Snapshot) -> None:
    before = prepared.plan.read_bytes()
    with pytest.raises(LaunchError, match="already holds a run"):
        prepare_run(plan_run(str(profile), [], snapshot).plan, snapshot, prepared.path)
    assert prepared.plan.read_bytes() == before


def test_a_run_directory_that_cannot_be_made_is_a_sentence(
    profile: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError, match="cannot be written"):
        prepare_run(plan_run(str(profile), [], snapshot).plan, snapshot, tmp_path / "file" / "run")


def test_the_trainer_runs_in_its_own_session_with_the_plans_variables(start: Start) -> None:
    started = start("slow")
    assert os.getsid(started.process.pid) == started.process.pid
    watcher = RunWatcher(started.run)
    wait_until(lambda: watcher.poll().started)
    plan = decode_plan(started.run.plan.read_bytes())
    assert watcher.state.started["hash_seed"] == plan.environment["PYTHONHASHSEED"]


def test_a_hang_up_of_the_terminal_leaves_the_trainer_alone(prepared: RunDir) -> None:
    # The launcher's own session gets SIGHUP, as a shell's does when SSH drops.
    code = (
        "import sys,time\n"
        "from pathlib import Path\n"
        "from doctor.launch import start_run\n"
        "from runner.rundir import RunDir\n"
        f"start_run(RunDir({str(prepared.path)!r}), sys.executable, with_sampler=False)\n"
        "print('started', flush=True)\n"
        "time.sleep(60)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "FAKE_TRAINER": "slow"},
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"started\n"
    os.killpg(launcher.pid, signal.SIGHUP)
    assert launcher.wait(10) == -signal.SIGHUP
    launcher.stdout.close()
    watcher = RunWatcher(prepared)
    wait_until(lambda: watcher.poll().started)
    assert trainer_alive(prepared) is True
    assert stop(prepared) is True
    wait_until(lambda: trainer_alive(prepared) is False)
    assert watcher.poll().finished["outcome"] == "stopped"


def test_a_second_trainer_is_refused_while_the_first_runs(start: Start, prepared: RunDir) -> None:
    start("slow")
    with pytest.raises(LaunchError, match="already at work"):
        start_run(prepared, sys.executable, with_sampler=False)


def test_the_lock_refuses_a_second_trainer_even_without_a_pid_file(start: Start, prepared: RunDir) -> None:
    start("slow")
    prepared.trainer_pid.unlink()
    with pytest.raises(LaunchError, match="already at work"):
        start_run(prepared, sys.executable, with_sampler=False)


def test_an_interpreter_that_is_not_there_is_a_sentence(prepared: RunDir) -> None:
    with pytest.raises(LaunchError, match="could not be started"):
        start_run(prepared, "/nowhere/python", with_sampler=False)


def test_a_users_own_runner_and_doctor_in_the_working_directory_are_not_taken_for_ours(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cwd = tmp_path / "project"
    cwd.mkdir()
    for name in ("runner.py", "doctor.py", "msgspec.py"):
        (cwd / name).write_text("raise SystemExit('taken for ours')\n")
    monkeypatch.chdir(cwd)
    started = start("complete", with_sampler=True)
    assert started.process.wait(20) == 0
    assert started.sampler is not None
    assert started.sampler.wait(20) == 0, (started.run.path / "sampler.log").read_text()
    assert RunWatcher(started.run).poll().finished["outcome"] == "completed"


def test_a_stopped_run_is_resumed_where_it_was(
    start: Start, prepared: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = start("slow")
    watcher = RunWatcher(prepared)
    wait_until(lambda: watcher.poll().step >= 3)
    assert stop(prepared) is True
    assert started.process.wait(10) == 143
    monkeypatch.setenv("FAKE_TRAINER", "complete")
    again = resume(prepared, sys.executable, with_sampler=False)
    assert again.process.wait(10) == 0
    state = watcher.poll()
    assert (state.started["resumed_from_step"], state.finished["outcome"], state.step) == (5, "completed", 10)


@pytest.mark.parametrize("approximate", [False, True])
def test_whether_a_run_may_go_on_inexactly_reaches_the_trainer(
    start: Start, prepared: RunDir, approximate: bool
) -> None:
    start("crash").process.wait(30)
    again = resume(prepared, sys.executable, with_sampler=False, approximate=approximate)
    assert again.process.wait(30) in (0, 1)
    argv = again.process.args
    assert isinstance(argv, list) and ("--approximate" in argv) is approximate and "--resume" in argv


def test_a_complete_run_is_not_resumed(start: Start, prepared: RunDir) -> None:
    start("complete").process.wait(10)
    with pytest.raises(LaunchError, match="complete"):
        resume(prepared, sys.executable)


def test_a_run_that_another_host_writes_to_is_not_resumed(start: Start, prepared: RunDir) -> None:
    started = start("slow")
    watcher = RunWatcher(prepared)
    wait_until(lambda: watcher.poll().step >= 3)
    started.process.kill()
    started.process.wait()
    mark = read_mark(prepared.trainer_pid)
    assert mark is not None
    prepared.trainer_pid.write_text(f"{mark.pid} {mark.start_ticks} otherhost other-boot pid:[1]\n")
    with pytest.raises(LaunchError, match="seems to run there"):
        resume(prepared, sys.executable)


def test_a_killed_trainer_is_lost_and_not_running(start: Start, prepared: RunDir) -> None:
    started = start("slow")
    watcher = RunWatcher(prepared)
    wait_until(lambda: watcher.poll().step >= 3)
    assert watcher.status() == "running"
    started.process.kill()
    # Not reaped yet: a zombie has ended, too.
    wait_until(lambda: trainer_alive(prepared) is False)
    wait_until(lambda: watcher.poll() and watcher.status() == "lost", 3)
    assert watcher.is_over()


def test_a_silent_trainer_is_stalled_once_a_first_step_would_be_done(start: Start, prepared: RunDir) -> None:
    start("silent")
    early = RunWatcher(prepared, clock=lambda: time.time() + 120)
    wait_until(lambda: early.poll().started)
    assert early.status() == "running"  # a first step compiles, fills caches, starts workers
    watcher = RunWatcher(prepared, clock=lambda: time.time() + 700)
    wait_until(lambda: watcher.poll().started)
    assert watcher.status() == "stalled"


def test_a_run_read_at_once_and_bit_by_bit_is_the_same(start: Start, prepared: RunDir) -> None:
    started = start("complete")
    live = RunWatcher(prepared)
    while started.process.poll() is None:
        live.poll()
    live.poll()
    replayed = RunWatcher(prepared)
    replayed.poll()
    assert replayed.as_dict() == live.as_dict()
