"""``doctor bench`` as typed: a small profile, an interrupted one, and a command of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runner.tiny import PROFILE, write_rows

SCRIPT = """\
import os, time
pause = 0.02 if os.environ.get("OMP_WAIT_POLICY") == "PASSIVE" else 0.05
for step in range(1, 31):
    time.sleep(pause)
    print(f"step {step}/30 loss {1 / step:.4f}", flush=True)
"""


def doctor(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "TOKENIZERS_"))}  # fmt: skip
    argv = [sys.executable, "-m", "doctor", "bench", *words]
    done = subprocess.run(
        argv, cwd=folder, env={**environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.csv", 120)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    return tmp_path / "tiny.toml"


@pytest.mark.train
def test_a_profile_is_measured_in_pairs_on_the_same_samples_with_the_same_loss(profile: Path) -> None:
    done = doctor(profile.parent, str(profile), "--levers", "bucketing,pinning", "--steps", "3", "--pairs", "1", "--json", "--html", "page.html", "--python", sys.executable)  # fmt: skip
    found: Any = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["bucketing"]["verdict"] == "too few pairs" and rows["pinning"]["verdict"] == "skipped"
    assert rows["bucketing"]["loss"] == "equal" and rows["bucketing"]["loss_difference"] < 1e-4
    assert rows["before"]["padding_share"] > rows["bucketing"]["padding_share"]
    assert rows["before"]["peak_bytes"] > 100 << 20 and not found.get("winners")
    assert "<circle" in (profile.parent / "page.html").read_text()


@pytest.mark.train
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_stop_keeps_what_was_measured_and_leaves_no_process(profile: Path, number: signal.Signals) -> None:
    (profile.parent / "tmp").mkdir()
    argv = [sys.executable, "-m", "doctor", "bench", str(profile), "--levers", "padding,bucketing", "--steps", "2", "--pairs", "6", "--json", "--python", sys.executable]  # fmt: skip
    child = subprocess.Popen(argv, cwd=profile.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                             env={**os.environ, "TMPDIR": str(profile.parent / "tmp")})  # fmt: skip
    assert child.stderr is not None and child.stdout is not None
    for line in child.stderr:
        if "bucketing" in line:
            break
    time.sleep(0.5)
    child.send_signal(number)
    found: Any = json.loads(child.stdout.read())
    child.wait()
    assert "interrupted" in found["stopped"]["msgid"]
    assert next(row for row in found["rows"] if row["name"] == "padding")["runs"] == 1
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(profile.parent) not in "".join(line for line in listed.splitlines() if "bench_steps.py" in line)  # fmt: skip
    assert not list((profile.parent / "tmp").glob("doctor-bench-*"))


def test_a_command_is_compared_by_the_steps_its_log_tells(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = doctor(tmp_path, "--levers", "waiting,tf32", "--pairs", "3", "--json", "--", sys.executable, "train.py")  # fmt: skip
    found: Any = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["rows"]}
    assert found["is_command"] and found["by_steps"]
    assert rows["waiting"]["runs"] == 3 and rows["waiting"]["speed"]["ratio"] > 1.3
    assert rows["tf32"]["verdict"] == "skipped"


def test_a_command_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('no data folder')")
    done = doctor(tmp_path, "--levers", "waiting", "--pairs", "1", "--", sys.executable, "train.py", check=False)  # fmt: skip
    assert done.returncode == 1 and "no data folder" in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "Name a profile"),
        (("quickstart", "--", "python", "x.py"), "Name a profile"),
        (("quickstart", "--levers", "paddding"), "paddding"),
        (("quickstart", "--steps", "1"), "--steps"),
        (("--write", "x.toml", "--", "python", "x.py"), "--write"),
    ],
    ids=["nothing", "both", "no such lever", "one step", "a command cannot be written"],
)
def test_a_wrong_command_line_is_named(tmp_path: Path, words: tuple[str, ...], named: str) -> None:
    done = doctor(tmp_path, *words, check=False)
    assert done.returncode == 2 and named in done.stderr
