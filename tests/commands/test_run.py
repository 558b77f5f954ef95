"""``doctor run`` and the verbs beside it, typed: exit codes, Ctrl-C, detaching, bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import runner
from doctor.launch import copy_runner
from doctor.trainer_pid import signal_trainer
from doctor.watching import RunWatcher
from runner.rundir import RunDir
from tests.launch.conftest import FAKE

PROFILE = """
[run]
name = "tiny"
[model]
config = {model_type = "bert", hidden_size = 32}
[data]
train = "train.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A project whose ``runner`` package has the fake trainer in the real one's place; runs are ended afterwards."""
    (tmp_path / "tiny.toml").write_text(PROFILE)
    (tmp_path / "train.csv").write_text("text,label\nyes,1\n")
    ours = tmp_path / "path"
    shutil.copytree(
        Path(runner.__file__).parent, ours / "runner", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(FAKE, ours / "runner" / "__main__.py")
    yield tmp_path
    for path in tmp_path.glob("runs/*"):
        signal_trainer(RunDir(path), signal.SIGKILL)


Doctor = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def doctor(folder: Path) -> Doctor:
    root = Path(__file__).parent.parent.parent

    def go(*arguments: str, how: str = "complete", lang: str = "en") -> subprocess.Popen[str]:
        environ = {
            **os.environ, "FAKE_TRAINER": how, "DOCTOR_LANG": lang, "DOCTOR_RUNS": str(folder / "runs"),
            "PYTHONPATH": f"{folder / 'path'}:{root}", "PYTHONUTF8": "1",
        }  # fmt: skip
        argv = [sys.executable, "-m", "doctor", *arguments]
        return subprocess.Popen(
            argv,
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return go


def ended(process: subprocess.Popen[str], seconds: float = 30) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def start(doctor: Doctor, *more: str, how: str = "complete") -> subprocess.Popen[str]:
    return doctor(
        "run", "tiny.toml", "--run-dir", "runs/one", "--python", sys.executable, "--anyway", *more, how=how
    )


def wait_for_step(folder: Path, process: subprocess.Popen[str], step: int = 3) -> RunWatcher:
    watcher = RunWatcher(RunDir(folder / "runs" / "one"))
    end = time.monotonic() + 20
    while watcher.poll().step < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    return watcher


def test_a_run_shows_its_end_and_where_its_report_lies(doctor: Doctor, folder: Path) -> None:
    code, out, err = ended(start(doctor))
    assert code == 0, err
    assert "completed (exit status 0)" in out
    assert "accuracy 0.9" in out
    assert str(folder / "runs" / "one" / "report.html") in out


def test_ctrl_c_saves_and_the_exit_status_is_the_runs_own(doctor: Doctor, folder: Path) -> None:
    process = start(doctor, how="slow")
    wait_for_step(folder, process)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 143
    assert "saving and stopping" in err
    assert "doctor run --resume" in out


def test_ctrl_c_while_the_trainer_is_being_started_is_answered_too(doctor: Doctor, folder: Path) -> None:
    process = start(doctor, how="slow")
    end = time.monotonic() + 20
    while not (folder / "runs" / "one" / "trainer.pid").exists():
        assert time.monotonic() < end
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 143, err
    assert "saving and stopping" in err


def test_a_second_ctrl_c_leaves_at_once_and_the_trainer_goes_on(doctor: Doctor, folder: Path) -> None:
    process = start(doctor, how="slow")
    watcher = wait_for_step(folder, process)
    os.kill(trainer(folder), signal.SIGSTOP)  # a trainer that takes long to save
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    code, _, err = ended(process)
    assert code == 130
    assert "goes on saving" in err
    os.kill(trainer(folder), signal.SIGCONT)
    end = time.monotonic() + 10
    while not watcher.poll().finished and time.monotonic() < end:
        time.sleep(0.05)
    assert watcher.state.finished["outcome"] == "stopped"


def trainer(folder: Path) -> int:
    return int((folder / "runs" / "one" / "trainer.pid").read_text().split()[0])


def test_a_killed_trainer_is_said_to_be_lost(doctor: Doctor, folder: Path) -> None:
    process = start(doctor, how="slow")
    wait_for_step(folder, process)
    os.kill(trainer(folder), signal.SIGKILL)
    code, out, _ = ended(process)
    assert code == 128 + signal.SIGKILL
    assert "lost" in out


def test_a_trainer_that_crashes_at_once_shows_its_own_last_words(doctor: Doctor) -> None:
    code, out, _ = ended(start(doctor, how="crash"))
    assert code == 1
    assert "RuntimeError: no such tokenizer" in out


def test_detached_returns_while_the_run_goes_on_and_a_crash_is_still_seen(
    doctor: Doctor, folder: Path
) -> None:
    code, out, err = ended(start(doctor, "--detach", how="slow"))
    assert code == 0, err
    assert "doctor watch" in out
    assert RunWatcher(RunDir(folder / "runs" / "one")).poll() is not None
    os.kill(trainer(folder), signal.SIGTERM)
    second = doctor(
        "run",
        "tiny.toml",
        "--run-dir",
        "runs/two",
        "--python",
        sys.executable,
        "--anyway",
        "--detach",
        how="crash",
    )
    code, out, _ = ended(second)
    assert code == 1
    assert "no such tokenizer" in out


def test_what_would_fail_is_refused_and_nothing_is_made(doctor: Doctor, folder: Path) -> None:
    process = doctor(
        "run",
        "tiny.toml",
        "--set",
        "data.train=nowhere.csv",
        "--run-dir",
        "runs/one",
        "--python",
        sys.executable,
    )
    code, _, err = ended(process)
    assert code == 1
    assert "nowhere.csv" in err
    assert "--anyway" in err
    assert not (folder / "runs").exists()


def test_a_dry_run_prints_every_choice_with_its_reason_and_makes_nothing(
    doctor: Doctor, folder: Path
) -> None:
    _, out, _ = ended(doctor("run", "tiny.toml", "--dry-run", "--python", sys.executable))
    assert "train.precision = " in out
    assert "run.seed = 42: " in out
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("run",), "name a profile", id="no profile"),
        pytest.param(("run", "nope"), "there is no profile nope", id="unknown profile"),
        pytest.param(("run", "tiny.toml", "--set", "train.epochs=0"), "1 problem", id="a bad value"),
        pytest.param(("run", "--resume", "nope"), "there is no run nope", id="no run to resume"),
        pytest.param(("run", "tiny.toml", "--resume", "nope"), "no profile", id="profile and resume"),
        pytest.param(("run", "tiny.toml", "--approximate"), "--resume RUN", id="inexact but not resumed"),
        pytest.param(("run", "tiny.toml", "--python", "/nowhere"), "/nowhere", id="no such interpreter"),
        pytest.param(("watch", "nope"), "there is no run nope", id="watch"),
        pytest.param(("watch", "--pid", "4194304"), "there is no process", id="watch no process"),
        pytest.param(("report", "nope"), "there is no run nope", id="report"),
        pytest.param(("stacks", "nope"), "there is no run nope", id="stacks"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line_and_exit_2(
    doctor: Doctor, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = ended(doctor(*arguments))
    assert code == 2, (out, err)
    assert words in err
    assert "Traceback" not in err


def test_a_finished_run_is_listed_watched_and_reported(doctor: Doctor, folder: Path) -> None:
    assert ended(start(doctor))[0] == 0
    rows = json.loads(ended(doctor("runs", "--json"))[1])
    assert [(row["name"], row["status"], row["step"], row["metrics"]) for row in rows] == [
        ("one", "completed", 10, {"accuracy": 0.9})
    ]
    assert "one" in ended(doctor("runs"))[1]
    screen = ended(doctor("watch", "last", "--once"))[1].splitlines()
    assert screen[0].startswith("one")
    assert screen[0].endswith("completed")
    assert all(len(line) <= 80 for line in screen)
    state = json.loads(ended(doctor("watch", "one", "--json"))[1].splitlines()[-1])
    assert (state["status"], state["step"], state["evaluation"]["accuracy"]) == ("completed", 10, 0.9)
    markdown = ended(doctor("report", "one", "--markdown"))[1]
    assert "| accuracy | 0.9 |" in markdown
    page = json.loads(ended(doctor("report", "one", "--json"))[1])
    assert page["curves"]["loss"]["training"]["value"][0] == 2.0
    html = ended(doctor("report", "one", "--html"))[1]
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "")


def test_a_run_with_escapes_and_markup_in_its_name_is_shown_harmless(doctor: Doctor, folder: Path) -> None:
    name = "a\x1b[31m<script>alert(1)</script>"
    process = doctor(
        "run",
        "tiny.toml",
        "--run-dir",
        f"runs/{name}".replace("/script", "_script"),
        "--python",
        sys.executable,
        "--anyway",
    )
    code, out, err = ended(process)
    assert code == 0, err
    path = next((folder / "runs").iterdir())
    for arguments in (
        ("runs",),
        ("watch", str(path), "--once"),
        ("report", str(path), "--html"),
        ("report", str(path), "--markdown"),
    ):
        _, out, err = ended(doctor(*arguments))
        assert "\x1b" not in out + err
        assert "<script>" not in out or arguments[0] != "report"


def test_a_run_that_cannot_be_read_is_said_and_the_others_are_listed(doctor: Doctor, folder: Path) -> None:
    assert ended(start(doctor))[0] == 0
    broken = RunDir(folder / "runs" / "broken")
    broken.make()
    broken.plan.write_text("{}")
    (broken.events / "trainer-0.jsonl").mkdir()  # stands for a file that may not be opened
    rows = json.loads(ended(doctor("runs", "--json"))[1])
    assert {row["name"]: row["status"] for row in rows} == {"one": "completed", "broken": "unreadable"}
    for arguments in (("watch", "broken", "--once"), ("report", "broken", "--markdown")):
        code, _, err = ended(doctor(*arguments))
        assert code == 1
        assert "broken cannot be read" in err
        assert "Traceback" not in err


def test_a_snapshot_or_plan_that_is_cut_in_half_costs_only_its_part_of_the_report(
    doctor: Doctor, folder: Path
) -> None:
    assert ended(start(doctor))[0] == 0
    run = RunDir(folder / "runs" / "one")
    for path in (run.plan, run.snapshot):
        path.write_bytes(path.read_bytes()[:100])
    code, out, err = ended(doctor("report", "one", "--markdown"))
    assert code == 0, err
    assert "plan.json is not a plan" in out
    assert "cut short" in out
    assert "| accuracy | 0.9 |" in out


def test_a_directory_that_holds_a_run_is_refused(doctor: Doctor) -> None:
    assert ended(start(doctor))[0] == 0
    code, _, err = ended(start(doctor))
    assert code == 1
    assert "already holds a run" in err


def test_a_report_that_cannot_be_written_says_so_and_the_run_still_counts(
    doctor: Doctor, folder: Path
) -> None:
    process = start(doctor, how="slow")
    wait_for_step(folder, process)
    (folder / "runs" / "one" / "report.html.tmp").mkdir()
    os.kill(trainer(folder), signal.SIGTERM)
    code, out, _ = ended(process)
    assert code == 143
    assert "could not be written" in out


def test_a_full_disk_at_the_start_is_one_line_and_leaves_nothing_behind(folder: Path, doctor: Doctor) -> None:
    # RLIMIT_FSIZE stands for a full disk: a write past it fails as one does.
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from doctor.commands import main\n"
        f"sys.exit(main(['run', 'tiny.toml', '--run-dir', 'runs/one', '--python', {sys.executable!r}, '--anyway']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "DOCTOR_LANG": "en"},
    )
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("doctor:")]
    assert "cannot be written" in line
    assert "File too large" in line
    assert len(line) < 600
    assert not (folder / "runs" / "one").exists()


def test_stacks_of_a_process_now(doctor: Doctor) -> None:
    pytest.importorskip("psutil")
    busy = subprocess.Popen([sys.executable, "-c", "def spin():\n while 1: sum(range(999))\nspin()"])
    try:
        code, out, err = ended(doctor("stacks", str(busy.pid), "--seconds", "1"))
    finally:
        busy.kill()
        busy.wait()
    if "py-spy is not installed" in err:
        pytest.skip("py-spy is not installed")
    assert code == 0, err
    assert "spin" in out


def test_chinese_reaches_the_progress_line_and_the_screen(doctor: Doctor, folder: Path) -> None:
    code, out, _ = ended(
        doctor("run", "tiny.toml", "--run-dir", "runs/one", "--python", sys.executable, "--anyway", lang="zh")
    )
    assert code == 0
    assert "报告" in out


def test_the_copied_runner_is_ours(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    copy_runner(run)
    assert (run.code / "runner" / "session.py").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tiny.toml"], "doctor run --on-finish CMD -- doctor run tiny.toml"),
        (["--resume", "one"], "doctor run --on-finish CMD -- doctor run --resume one"),
        ([], "doctor run --retry 2 -- python train.py"),
    ],
    ids=["a profile", "a run to go on with", "nothing"],
)
def test_what_goes_with_a_command_says_how_a_profile_becomes_one(
    doctor: Doctor, arguments: list[str], said: str
) -> None:
    process = doctor("run", *arguments, "--on-finish", "shutdown")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said in err
