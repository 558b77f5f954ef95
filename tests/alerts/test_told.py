"""From the command line to the receiver: a supervised command, a run that is watched, and a receiver that is broken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from doctor.alert_follow import RunAlerts
from runner.alert_settings import AlertsSection
from runner.events import EventWriter, read_events
from runner.rundir import RunDir
from tests.alerts.receiver import receiving
from tests.commands_run import doctor
from tests.tui.recorded import whole_run

JOB = "import time\nfor step in range(1, 4): print(f'step={step} loss={1 / step}', flush=True); time.sleep(0.3)\n"


def wait_for(what: object, until: float = 60.0) -> None:
    assert callable(what)
    end = time.monotonic() + until
    while not what() and time.monotonic() < end:
        time.sleep(0.1)


def test_the_end_of_a_supervised_command_is_told_and_its_key_is_nowhere(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(JOB + "raise SystemExit('no data at /home/zhang/data/x.csv')\n")
    run = tmp_path / "run"
    with receiving() as chat:
        done = doctor(
            "run", "--run-dir", str(run), "--alert", "webhook=$HOOK", "--", sys.executable, str(tmp_path / "train.py"), environment={"HOOK": chat.url}
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        wait_for(lambda: chat.got)
    (text,) = chat.texts
    assert text.startswith("doctor · run\n")
    assert "step 3/" in text
    assert "zhang" not in text
    for file in (path for path in run.rglob("*") if path.is_file()):
        assert b"SECRET-KEY" not in file.read_bytes(), file


def test_a_receiver_that_hangs_holds_up_nobody_and_is_noted_in_the_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.make()
    run.plan.write_text("{}")
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0")
    writer.write("run-started")
    writer.write("step", 1, loss=float("nan"))
    writer.write("run-finished", outcome="failed")
    writer.close()
    with receiving((404, "")) as chat:
        follower = RunAlerts(run, AlertsSection(to=[f"webhook={chat.url}"]))
        follower.look()
        follower.look()
    notes = [event for event, _ in read_events(run.events / "alerts.jsonl")]
    assert [note.data["level"] for note in notes] == ["warn"], "one sentence, however many messages were lost"
    assert "SECRET-KEY" not in str(notes[0].data)
    assert [row["kind"] for row in chat.got] == ["non-finite", "failed"]


def test_a_test_message_says_what_came_of_it(tmp_path: Path) -> None:
    with receiving() as chat:
        done = doctor("watch", "--alert", "webhook=$HOOK", "--alert-test", environment={"HOOK": chat.url})
        assert done.returncode == 0, done.stderr
        assert "1 place was told" in done.stdout
    assert chat.got[0]["kind"] == "test"
    with receiving((404, "")) as chat:
        failed = doctor("watch", "--alert", f"webhook={chat.url}", "--alert-test")
    assert failed.returncode == 1
    assert "HTTP 404" in failed.stderr
    assert "SECRET-KEY" not in failed.stdout + failed.stderr


def test_who_watches_is_told_of_the_end(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "over").run
    (run.events / "trainer-0.jsonl").write_bytes(
        b"".join(
            line
            for line in (run.events / "trainer-0.jsonl").read_bytes().splitlines(True)
            if b"run-finished" not in line
        )
    )
    target = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    from doctor.trainer_pid import mark_of, write_mark

    mark = mark_of(target.pid)
    assert mark is not None
    write_mark(run.trainer_pid, mark)
    with receiving() as chat:
        command = [
            sys.executable,
            "-m",
            "doctor",
            "watch",
            str(run.path),
            "--text",
            "--seconds",
            "0.3",
            "--alert",
            f"webhook={chat.url}",
        ]
        watch = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
        reader = threading.Thread(target=watch.communicate, daemon=True)
        reader.start()
        time.sleep(4)
        target.kill()
        target.wait()
        wait_for(lambda: any(row["kind"] == "failed" for row in chat.got))
        watch.wait(60)
        reader.join(10)
    assert [row["kind"] for row in chat.got if row["kind"] == "failed"] == ["failed"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--alert", "mail=me"), "an alert goes to bell"), (("--alert", "bell", "--alert-on", "dsk"), "--alert-on takes finished"),
        (("--alert-on", "disk"), "go with --alert"), (("--alert", "webhook=https://x/?key=SECRET KEY\n"), "webhook= takes an address"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_before_anything_starts(words: tuple[str, ...], says: str) -> None:
    done = doctor("watch", *words, "--alert-test")
    assert done.returncode == 2
    assert says in done.stderr
    assert "SECRET" not in done.stderr
