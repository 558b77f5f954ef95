"""Stopping a command of the user's own: the signal reaches it, whoever is there to hand it on."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from doctor.trainer_pid import trainer_alive
from doctor.watching import RunWatcher
from tests.launch.shell import SAVES, WAITS, Shell, has_said, wait_until


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_signal_reaches_the_script_and_its_exit_status_comes_back(shell: Shell, name: str) -> None:
    shell.script(WAITS.format(handler=SAVES.format(name=name)))
    process = shell.begin("--", sys.executable, "train.py")
    wait_until(has_said(shell, "ready"))
    process.send_signal(getattr(signal, name))
    assert process.wait(60) == 7
    assert "saved" in shell.one.trainer_log.read_text()


@pytest.mark.parametrize("detach", [[], ["--detach"]], ids=["attached", "detached"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_before_the_supervisor_stands_keeps_the_command_from_being_started(
    shell: Shell, name: str, detach: list[str]
) -> None:
    shell.script(WAITS.format(handler=""))
    shell.delay_supervisor(2)  # else it may stand before a busy machine has let the signal through
    process = shell.begin(*detach, "--", sys.executable, "train.py")
    wait_until(shell.one.plan.exists)
    assert not shell.one.supervisor_pid.exists(), "too late to test anything"
    process.send_signal(getattr(signal, name))
    assert process.wait(60) == 128 + getattr(signal, name)
    (end,) = shell.events("run-finished")
    assert end.data["outcome"] == "interrupted" and trainer_alive(shell.one) is not True
    assert not has_said(shell, "ready")()


def test_a_second_interrupt_goes_on_to_sigterm(shell: Shell) -> None:
    shell.script(
        WAITS.format(handler="signal.signal(signal.SIGINT, lambda *_: print('not now', flush=True))")
    )
    process = shell.begin("--", sys.executable, "train.py")
    wait_until(has_said(shell, "ready"))
    process.send_signal(signal.SIGINT)
    wait_until(has_said(shell, "not now"))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 143


def test_a_shell_script_hands_the_signal_to_what_it_runs(shell: Shell) -> None:
    shell.script(WAITS.format(handler=SAVES.format(name="SIGTERM")))
    shell.script(f"{sys.executable} train.py\necho after $?\n", "train.sh")
    process = shell.begin("--", "bash", "train.sh")
    wait_until(has_said(shell, "ready"))
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    wait_until(has_said(shell, "saved"))


def test_a_supervisor_that_is_killed_takes_nothing_with_it(shell: Shell) -> None:
    shell.script("import time\nprint('ready', flush=True)\ntime.sleep(2)\nprint('trained')")
    process = shell.begin("--", sys.executable, "train.py")
    wait_until(has_said(shell, "ready"))
    os.kill(int(shell.one.supervisor_pid.read_text().split()[0]), signal.SIGKILL)
    watcher = RunWatcher(shell.one)
    watcher.poll()
    assert watcher.status() == "running"
    assert process.wait(30) == 137
    wait_until(has_said(shell, "trained"))
    wait_until(lambda: RunWatcher(shell.one).poll() is not None and trainer_alive(shell.one) is False)
    after = RunWatcher(shell.one)
    after.poll()
    assert after.status() == "lost"


def test_whoever_cannot_wait_for_a_supervisor_that_hangs_gets_out(shell: Shell) -> None:
    """Ctrl-C three times while our own interpreter still waits for a dead disk."""
    shell.delay_supervisor(600)
    process = shell.begin("--", sys.executable, "-c", "open('begun', 'w')")
    wait_until(shell.one.stacks.exists)
    time.sleep(0.3)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert process.wait(30) == 137
    assert not (shell.folder / "begun").exists()
