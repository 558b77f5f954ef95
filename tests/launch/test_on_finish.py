"""``--on-finish``: what is run after a command's end, what is waited for before, and how anybody cancels it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import sys
import termios
import time

import pytest

from tests.launch.shell import WAITS, Shell, has_said, read_until, wait_until


def test_the_end_of_the_terminal_ends_neither_the_command_nor_what_follows(shell: Shell) -> None:
    shell.script("import time\nprint('ready', flush=True)\ntime.sleep(1.5)\nprint('trained')")
    process = shell.begin(
        "--on-finish",
        "touch finished",
        "--countdown",
        "0.2",
        "--",
        sys.executable,
        "train.py",
        start_new_session=True,
    )
    wait_until(has_said(shell, "ready"))
    os.killpg(process.pid, signal.SIGHUP)
    process.wait(10)
    wait_until((shell.folder / "finished").exists)
    assert "trained" in shell.one.trainer_log.read_text()


def test_on_finish_runs_after_the_end_with_the_outcome(shell: Shell) -> None:
    command = 'echo "$DOCTOR_OUTCOME $DOCTOR_EXIT_CODE" > finished'
    code, _, err = shell.run(
        "--on-finish", command, "--countdown", "0.3", "--", sys.executable, "-c", "raise SystemExit(2)"
    )
    assert code == 2 and (shell.folder / "finished").read_text() == "failed 2\n"
    assert [event.data["state"] for event in shell.events("on-finish")] == ["waiting", "running", "done"]
    assert "touch " in err, "without a terminal it is said how to cancel"


def test_on_finish_always_follows_a_stop_by_hand(shell: Shell) -> None:
    shell.script(WAITS.format(handler=""))
    process = shell.begin(
        "--on-finish",
        "touch finished",
        "--on-finish-always",
        "--countdown",
        "0",
        "--",
        sys.executable,
        "train.py",
    )
    wait_until(has_said(shell, "ready"))
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert (shell.folder / "finished").exists()


def test_a_key_cancels_the_countdown(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = shell.begin(
        "--on-finish", "touch finished", "--countdown", "60", "--", sys.executable, "-c", "print('done')",
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    screen = read_until(ours, "any key cancels")
    os.write(ours, b"x")
    screen += read_until(ours, "Cancelled; not run: touch finished")
    assert process.wait(30) == 0
    os.close(ours)
    assert "In 60 s: touch finished" in screen
    assert not (shell.folder / "finished").exists()
    assert [event.data["state"] for event in shell.events("on-finish")] == ["waiting", "cancelled"]


def test_an_interrupt_during_the_countdown_cancels_it(shell: Shell) -> None:
    process = shell.begin(
        "--on-finish", "touch finished", "--countdown", "60", "--", sys.executable, "-c", "pass"
    )
    wait_until(lambda: shell.events("on-finish"))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0 and not (shell.folder / "finished").exists()
    assert shell.events("run-finished")[-1].data["outcome"] == "completed"


def test_any_session_can_cancel_with_a_file(shell: Shell) -> None:
    process = shell.begin(
        "--on-finish", "touch finished", "--countdown", "60", "--", sys.executable, "-c", "pass"
    )
    wait_until(lambda: shell.events("on-finish"))
    shell.one.cancel_on_finish.touch()
    assert process.wait(30) == 0 and not (shell.folder / "finished").exists()


def test_it_waits_for_what_the_command_left_behind(shell: Shell) -> None:
    """The last save is still on its way when the script has ended: the machine must not go before it."""
    shell.script("sleep 1.5; touch saved\n", "save.sh")
    shell.script("import subprocess\nsubprocess.Popen(['sh', 'save.sh'], start_new_session=True)")
    command = "test -e saved && touch finished"
    code, _, err = shell.run("--on-finish", command, "--countdown", "0", "--", sys.executable, "train.py")
    assert code == 0 and (shell.folder / "finished").exists(), err
    assert re.search(r"waits for \d process\w* that the command left behind", " ".join(err.split()))


def test_a_command_of_on_finish_that_fails_is_said_with_its_last_line(shell: Shell) -> None:
    command = "echo first; echo the platform says no >&2; exit 3"
    code, _, err = shell.run("--on-finish", command, "--countdown", "0", "--", sys.executable, "-c", "pass")
    assert code == 0, "the exit status is the training's"
    assert "--on-finish failed with status 3" in " ".join(err.split()) and "the platform says no" in err
    assert shell.events("on-finish")[-1].data["exit_code"] == 3


@pytest.mark.parametrize("command", ["shutdwon", "no/such/file now"])
def test_a_program_that_is_not_there_is_said_before_the_training(shell: Shell, command: str) -> None:
    code, _, err = shell.run("--on-finish", command, "--", sys.executable, "-c", "open('trained', 'w')")
    assert code == 2 and command.split()[0] in err and not (shell.folder / "trained").exists()


@pytest.mark.parametrize(
    ("code", "outcome"),
    [("raise SystemExit(3)", "failed 3"), ("import os; os.kill(os.getpid(), 9)", "failed 137")],
    ids=["an error", "a kill"],
)
def test_it_runs_after_a_crash_too(shell: Shell, code: str, outcome: str) -> None:
    """A machine that has nothing left to do costs money however the training ended."""
    command = 'echo "$DOCTOR_OUTCOME $DOCTOR_EXIT_CODE" > finished'
    shell.run("--on-finish", command, "--countdown", "0", "--", sys.executable, "-c", code)
    assert (shell.folder / "finished").read_text() == f"{outcome}\n"


def test_it_runs_once_after_the_last_try(shell: Shell) -> None:
    command = "echo $DOCTOR_EXIT_CODE >> finished"
    shell.run("--retry", "1", "--on-finish", command, "--countdown", "0", "--", sys.executable, "-c", "raise SystemExit(5)")  # fmt: skip
    assert (shell.folder / "finished").read_text() == "5\n"


def test_a_watcher_elsewhere_sees_the_countdown_and_how_to_cancel_it(shell: Shell) -> None:
    process = shell.begin(
        "--on-finish", "touch finished", "--countdown", "60", "--", sys.executable, "-c", "pass"
    )
    wait_until(lambda: shell.events("on-finish"))
    shown = shell.doctor("watch", "one", "--once")
    assert "touch finished" in shown and str(shell.one.cancel_on_finish) in shown.replace("\n  ", "")
    shell.one.cancel_on_finish.touch()
    assert process.wait(30) == 0
    assert "Cancelled; not run: touch finished" in shell.doctor("watch", "one", "--once")
