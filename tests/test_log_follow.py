"""A job that was not started by us: curves from its log, stacks and host from beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor import log_follow
from doctor.log_follow import LogFollower, log_of
from doctor.process_watch import ProcessWatcher
from runner.events import RunEvent
from runner.state import RunState, fold
from tests.commands_run import doctor

TRAINER = "".join(
    f"{{'loss': {2.0 / step}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {step / 10}}}\n"
    for step in range(1, 6)
)
JOB = """
import time
for step in range(1, 400):
    print(f"step={step} loss={2 / step:.4f} lr=1e-4", flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(tmp_path / "train.log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-c", JOB], stdout=log)
    yield process
    process.kill()
    process.wait()


def test_what_stood_there_before_has_curves_and_no_pace(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("loading\n" + TRAINER + "{'loss': 0.3")
    state = fold(LogFollower(log).read())
    assert state.loss.values == [2.0, 1.0, 2 / 3, 0.5, 0.4]
    assert state.log_pace == []
    assert state.eta_seconds() is None


def test_what_comes_later_is_read_once_and_a_torn_line_waits(tmp_path: Path) -> None:
    log, state = tmp_path / "train.log", RunState()
    log.write_text("step=1 loss=2.0\nstep=2 lo")
    follower = LogFollower(log)
    fold(follower.read(), state)
    assert state.loss.values == [2.0]
    with open(log, "a") as file:
        file.write("ss=1.5\n")
    fold(follower.read(), state)
    fold(follower.read(), state)
    assert state.loss.values == [2.0, 1.5]


def test_lines_that_were_read_together_share_the_time_they_took() -> None:
    """Five lines a second, looked at once a second: a step takes a fifth of a second, not one."""
    state = RunState()
    state.add(RunEvent(seq=0, t=0.0, source="log", kind="run-started", step=None, data={}))
    for look in range(12):
        for line in range(5):
            data = {"loss": 1.0, "seconds": 1.0 if line == 0 else 0.0}
            state.add(
                RunEvent(
                    seq=look * 5 + line + 1,
                    t=float(look),
                    source="log",
                    kind="step",
                    step=look * 5 + line + 1,
                    data=data,
                )
            )
    assert state.seconds_a_step() == pytest.approx(0.2)


def test_a_log_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step=1 loss=2.0\nstep=2 loss=1.9\n")
    follower = LogFollower(log)
    fold(follower.read())
    log.write_text("step=1 loss=9.0\n")
    assert fold(follower.read()).loss.values == [9.0]


def test_the_file_that_a_process_writes_to_is_found(job: subprocess.Popen[bytes], tmp_path: Path) -> None:
    end = time.monotonic() + 20
    while log_of(job.pid) is None and time.monotonic() < end:
        time.sleep(0.05)
    assert log_of(job.pid) == tmp_path / "train.log"


def test_a_foreign_job_shows_curves_host_and_how_long_it_takes(
    job: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    watcher = ProcessWatcher(job.pid, tmp_path / "train.log")
    end = time.monotonic() + 30
    while len(watcher.poll().loss) < 8 and time.monotonic() < end:
        time.sleep(0.3)
    watcher.close()
    state = watcher.state
    assert state.loss.values[0] == 2.0
    assert state.step >= 8
    assert state.host["rss_bytes"] > 0
    assert state.log_pace
    assert watcher.as_dict()["verdict"]["kind"] == "unknown"


def test_the_command_prints_its_steps(job: subprocess.Popen[bytes], tmp_path: Path) -> None:
    end = time.monotonic() + 20
    while (tmp_path / "train.log").stat().st_size == 0 and time.monotonic() < end:
        time.sleep(0.05)
    done = doctor("watch", "--pid", str(job.pid), "--once")
    assert done.returncode == 0, done.stderr
    assert "loss" in done.stdout and "step " in done.stdout
    assert "reading the log" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--pid", "{pid}", "--log", "/nowhere/a.log"), "/nowhere/a.log cannot be read"), (("--log", "a.log"), "--log goes with --pid")],
    ids=["a log that is not there", "a log without a process"],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused(
    job: subprocess.Popen[bytes], arguments: tuple[str, ...], words: str
) -> None:
    done = doctor("watch", *(one.format(pid=job.pid) for one in arguments), "--once")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_json_streams_the_steps_of_a_foreign_job(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with open(log, "wb") as out:
        script = (
            "import time\nfor s in range(1, 6): print(f'step={s} loss={1/s}', flush=True); time.sleep(0.5)"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out)
    try:
        watched = subprocess.Popen(
            [sys.executable, "-m", "doctor", "watch", "--pid", str(process.pid), "--log", str(log), "--json"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        process.wait(30)
        output, _ = watched.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    rows = [json.loads(line) for line in output.splitlines()]
    assert rows[-1]["step"] == 5
    assert rows[-1]["last"]["loss"] == 0.2


def test_a_process_that_ends_is_said_and_not_called_a_success(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.exit(3)"])
    watcher = ProcessWatcher(process.pid)
    process.wait()
    state = watcher.poll()
    watcher.close()
    assert (watcher.status(), watcher.is_over()) == ("ended", True)
    assert "how is known to whoever started it alone" in str(state.notes[-1].data["text"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_said_to_be_one() -> None:
    process = subprocess.Popen(["/bin/sleep", "60"], user="nobody")
    try:
        watcher = ProcessWatcher(process.pid)
        state = watcher.poll()
        watcher.close()
    finally:
        process.kill()
        process.wait()
    assert "belongs to nobody, not to you" in str(state.notes[0].data["text"])


def test_a_process_that_may_not_be_looked_into_still_shows_what_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the kernel answers another user: the command and the open files are refused, /proc/PID/stat is not."""
    closed = (f"/proc/{os.getpid()}/cmdline", f"/proc/{os.getpid()}/fd")
    read_bytes, iterdir = Path.read_bytes, Path.iterdir

    def refused(self: Path) -> bytes:
        if str(self) in closed:
            raise PermissionError(13, "Permission denied", str(self))
        return read_bytes(self)

    def unlisted(self: Path) -> Iterator[Path]:
        if str(self) in closed:
            raise PermissionError(13, "Permission denied", str(self))
        return iter(iterdir(self))

    monkeypatch.setattr(Path, "read_bytes", refused)
    monkeypatch.setattr(Path, "iterdir", unlisted)
    watcher = ProcessWatcher(os.getpid())
    state = watcher.poll()
    watcher.close()
    assert watcher.name.split()[0] == str(os.getpid())
    assert state.host["rss_bytes"] > 0


def test_a_log_that_was_rotated_by_renaming_is_followed_into_the_new_file(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step=1 loss=2.0\n")
    follower = LogFollower(log)
    fold(follower.read())
    log.rename(tmp_path / "train.log.1")
    log.write_text(
        "step=2 loss=1.5\nstep=3 loss=1.25\n"
    )  # longer than the old one: its size alone says nothing
    assert fold(follower.read()).loss.values == [1.5, 1.25]


def test_of_a_log_of_gigabytes_the_end_is_read_from_a_whole_line_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_follow, "MOST_BYTES", 1 << 18)
    log = tmp_path / "train.log"
    with open(log, "wb") as file:
        file.truncate(5 << 30)
        file.seek(0, 2)
        file.write(b"\n" + b"".join(b"step=%d loss=0.5 lr=1e-4\n" % step for step in range(1, 20_001)))
    state = fold(LogFollower(log).read())
    assert state.step == 20_000
    assert 5_000 < len(list(LogFollower(log).read())) < 20_000
    assert min(state.loss.values) == max(state.loss.values) == 0.5


def test_a_log_that_grows_faster_than_it_can_be_read_is_followed_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "train.log"
    log.write_text("step=1 loss=2.0\n")
    follower, state = LogFollower(log), RunState()
    fold(follower.read(), state)
    monkeypatch.setattr(log_follow, "MOST_BYTES", 1000)
    with open(log, "a") as file:
        file.writelines(f"step={step} loss=1.0\n" for step in range(2, 1000))
    told = list(follower.read())
    assert told[-1].step == 999
    assert len(told) < 60
    assert all(event.data["loss"] == 1.0 for event in told)


@pytest.mark.parametrize(
    "content",
    [
        "训练 step=7 loss=0.25\n".encode("gbk"),
        b"\x1b[32mINFO\x1b[0m step=7 \x1b[1mloss=0.25\x1b[0m\n",
        b"step=7 loss=0.25\r\n",
        b"\xff\xfe\x00\nstep=7 loss=0.25\n\0\0\0",
    ],
    ids=["GBK", "colours", "Windows line ends", "bytes of no encoding"],
)
def test_a_line_is_read_whatever_stands_around_it(tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(content)
    state = fold(LogFollower(log).read())
    assert (state.step, state.loss.values) == (7, [0.25])
