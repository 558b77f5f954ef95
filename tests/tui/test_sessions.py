"""Sessions come and go, the run does not: resized, detached, dropped, quit; the view survives or leaves, the trainer stays."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor import service
from doctor.trainer_pid import mark_of, write_mark
from tests.tui.recorded import Clock, RunBuilder
from tests.tui.terminals import ROOT, Tmux, command, new_tmux

ENVIRONMENT = [f"PYTHONPATH={ROOT}", "LC_ALL=C.UTF-8", "LANG=C.UTF-8"]


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    server = new_tmux(tmp_path_factory.mktemp("t"))
    yield server
    server.end()


@pytest.fixture
def trainer() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a trainer, in a session of its own as every trainer is."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def live(tmp_path: Path, trainer: subprocess.Popen[bytes]) -> RunBuilder:
    """A run that ``trainer`` trains, now."""
    run = RunBuilder(tmp_path / "quickstart-1")
    clock = Clock(time.time() - 30)
    run.clock = run.trainer._clock = run.sampler._clock = clock
    run.start().steps(20)
    mark = mark_of(trainer.pid)
    assert mark is not None
    write_mark(run.run.trainer_pid, mark)
    return run


def watch_in(tmux: Tmux, run: RunBuilder, size: tuple[int, int] = (160, 48)) -> None:
    shell = shlex.join(["env", *ENVIRONMENT, *command(str(run.run.path))]) + "; echo left with $?; sleep 60"
    tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), shell)
    tmux.sees("running", "step 20/100", "smoothed")


def attach(tmux: Tmux) -> tuple[int, int]:
    """Attach a client in a terminal of its own, as an SSH session has it; return its pid and the terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp("tmux", ["tmux", "-f", "/dev/null", "-S", str(tmux.socket), "attach"])
    for _ in range(200):
        if tmux("list-clients").strip():
            return pid, fd
        time.sleep(0.05)
    raise AssertionError("the client never attached")


def gone(tmux: Tmux) -> bool:
    for _ in range(200):
        if not tmux("list-clients").strip():
            return True
        time.sleep(0.05)
    return False


def test_a_terminal_that_changes_its_size_again_and_again_shows_the_run(tmux: Tmux, live: RunBuilder) -> None:
    watch_in(tmux, live)
    for columns, rows in ((80, 24), (40, 12), (200, 60), (80, 24)):
        tmux("resize-window", "-x", str(columns), "-y", str(rows))
    text = tmux.sees("[Curves]", "step 20/100", "Menu")
    assert max(len(line) for line in text.splitlines()) <= 80


def test_an_ssh_session_that_drops_leaves_view_and_run_and_the_next_one_sees_both(
    tmux: Tmux, live: RunBuilder, trainer: subprocess.Popen[bytes]
) -> None:
    watch_in(tmux, live)
    client, terminal = attach(tmux)
    os.kill(client, signal.SIGKILL)
    os.close(terminal)
    os.waitpid(client, 0)
    assert gone(tmux)
    live.steps(1, first=21)
    tmux.sees("step 21/100")
    client, terminal = attach(tmux)
    seen = b""
    for _ in range(200):
        seen += os.read(terminal, 65536)
        if b"21/100" in seen:
            break
    assert b"21/100" in seen
    tmux("detach-client")
    os.close(terminal)
    os.waitpid(client, 0)
    assert trainer.poll() is None


def test_a_connection_that_drops_without_tmux_ends_the_view_and_not_the_run(
    live: RunBuilder, trainer: subprocess.Popen[bytes]
) -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        os.execv(sys.executable, command(str(live.run.path)))
    seen = b""
    while b"smoothed" not in seen:
        seen += os.read(fd, 65536)
    os.close(fd)  # the terminal is gone: the kernel hangs up
    for _ in range(400):
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise AssertionError("the view went on without a terminal")
    assert trainer.poll() is None


@pytest.mark.parametrize("key", ["q", "C-c"])
def test_leaving_leaves_the_run(
    tmux: Tmux, live: RunBuilder, trainer: subprocess.Popen[bytes], key: str
) -> None:
    watch_in(tmux, live, (80, 24))
    tmux("send-keys", key)
    tmux.sees("left with 0")
    assert trainer.poll() is None


@pytest.mark.train
def test_a_run_started_in_the_view_goes_on_when_view_and_terminal_are_gone(
    tmux: Tmux, tmp_path: Path
) -> None:
    where = [*ENVIRONMENT, f"DOCTOR_RUNS={tmp_path}", f"VIRTUAL_ENV={sys.prefix}"]
    shell = shlex.join(["env", *where, *command()]) + "; echo left with $?; sleep 60"
    tmux("new-session", "-d", "-x", "120", "-y", "40", shell)
    tmux.sees("checks passed")
    tmux("send-keys", "2")
    tmux.sees("quickstart")
    tmux("send-keys", "End", "s")
    tmux.sees("Start a run of quickstart")
    tmux("send-keys", "y")
    for _ in range(8):  # loading a model takes its time on a busy machine
        try:
            tmux.sees("step 1/", "Curves")
            break
        except AssertionError:
            continue
    tmux("send-keys", "q")
    tmux.sees("left with 0")
    [run] = service.list_runs(tmp_path)
    assert run.status in ("starting", "running")
    tmux.end()
    watcher = service.watch_run(run.path)
    assert watcher.poll() is not None and watcher.alive is True
    assert service.stop_run(run.path)
    for _ in range(600):
        watcher.poll()
        if watcher.is_over():
            break
        time.sleep(0.2)
    assert watcher.state.finished.get("outcome") == "stopped"
