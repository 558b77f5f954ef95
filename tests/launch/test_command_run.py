"""A command of the user's own under ``doctor run -- COMMAND``: real processes, from the command line to the last word."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.launch import LaunchError
from doctor.probes.trainer_of import BusiestPython, busiest_python
from doctor.running import resume
from doctor.watching import RunWatcher, summarise
from runner.command_plan import decode_any, decode_command
from runner.events import read_events
from runner.plan import PlanError, decode_plan
from tests.launch.shell import TRAINS, Shell, has_said, wait_until


# -- an ordinary end ---------------------------------------------------------------------------------------------
def test_a_script_runs_and_its_log_becomes_events(shell: Shell) -> None:
    shell.script(TRAINS)
    code, out, err = shell.run("--", sys.executable, "train.py")
    assert code == 0, err
    assert out == shell.one.trainer_log.read_text(), "stdout is the command's own output and nothing else"
    assert [(event.step, event.data["loss"]) for event in shell.events("step")] == [
        (1, 1.0), (2, 0.5), (3, 0.3333), (4, 0.25), (5, 0.2),
    ]  # fmt: skip
    assert [event.data for event in shell.events("evaluation")] == [{"loss": 0.5, "accuracy": 0.75}]
    watcher = RunWatcher(shell.one)
    state = watcher.poll()
    assert (watcher.status(), state.step, state.finished["exit_code"]) == ("completed", 5, 0)
    row = summarise(shell.one)
    assert (row.status, row.step, row.loss, row.metrics) == ("completed", 5, 0.2, {"accuracy": 0.75})
    assert shell.one.report.is_file() and "train.py" in shell.one.report.read_text()


def test_the_script_is_kept_and_what_was_changed_shows_between_two_runs(shell: Shell) -> None:
    shell.script("print('step=1 loss=0.5')\nTOKEN = 'hf_abcdefghijklmnopqrstuvwx'\n")
    shell.run("--", sys.executable, "train.py")
    kept = shell.one.script / "train.py"
    assert kept.read_text() == (shell.folder / "train.py").read_text() and kept.stat().st_mode & 0o077 == 0
    shell.script("print('step=1 loss=0.4')\nTOKEN = 'hf_zyxwvutsrqponmlkjihgfedcba'\n")
    shell.one.path.rename(shell.folder / "first")
    shell.run("--", sys.executable, "train.py")
    text = shell.doctor("report", "first", "one")
    assert "-print('step=1 loss=0.5')" in text and "+print('step=1 loss=0.4')" in text
    assert "hf_" not in text


def test_the_plan_says_what_was_started_and_why_each_variable_is_set(shell: Shell) -> None:
    shell.script("import os\nprint(dict(os.environ))")
    shell.environ["MKL_NUM_THREADS"] = "1"
    code, out, _ = shell.run("--", sys.executable, "train.py", "--lr", "1e-4")
    plan = decode_command(shell.one.plan.read_bytes())
    assert (code, plan.name, list(plan.argv)) == (0, "train", [sys.executable, "train.py", "--lr", "1e-4"])
    assert (plan.cwd, plan.environment["PYTHONHASHSEED"]) == (str(shell.folder), "0")
    seen: dict[str, str] = eval(out)
    assert {name: seen.get(name) for name in plan.environment} == plan.environment
    assert seen["DOCTOR_RUN_DIR"] == str(shell.one.path) and seen["DOCTOR_RETRY"] == "0"
    assert seen["PYTHONPATH"] == shell.environ["PYTHONPATH"], "nothing of ours is put on its path"
    reasons = {item.name: str(item.why) for item in plan.decisions}
    assert seen["MKL_NUM_THREADS"] == "1" and "set by you" in reasons["MKL_NUM_THREADS"]
    assert set(plan.environment) <= set(reasons) and all(reasons.values())


def test_a_dry_run_names_the_variables_with_their_reasons_and_starts_nothing(shell: Shell) -> None:
    code, out, _ = shell.run("--dry-run", "--", sys.executable, "-c", "open('started', 'w')")
    assert code == 0 and "PYTHONHASHSEED=0: " in out
    assert not (shell.folder / "started").exists() and not shell.one.path.exists()


@pytest.mark.parametrize("code", [0, 1, 3, 77])
def test_the_exit_status_is_the_commands_own(shell: Shell, code: int) -> None:
    assert shell.run("--", sys.executable, "-c", f"raise SystemExit({code})")[0] == code
    assert shell.events("run-finished")[-1].data["exit_code"] == code


def test_a_program_that_is_not_there_is_a_sentence_and_no_run(shell: Shell) -> None:
    code, _, err = shell.run("--", "no-such-program-anywhere", "x")
    assert code == 2 and "there is no command no-such-program-anywhere" in err
    assert not shell.one.path.exists()


def test_a_command_is_not_ours_to_resume(shell: Shell) -> None:
    shell.run("--", sys.executable, "-c", "raise SystemExit(1)")
    with pytest.raises(LaunchError, match="Start it again: doctor run -- "):
        resume(shell.one)
    with pytest.raises(PlanError, match="a command of your own"):
        decode_plan(shell.one.plan.read_bytes())
    assert decode_any(shell.one.plan.read_bytes()).digest


# -- beside a callback, and the face -----------------------------------------------------------------------------
def test_a_script_that_writes_its_own_events_is_not_read_from_its_log(shell: Shell) -> None:
    shell.script(
        "import runner\nfor step in (1, 2):\n    runner.log(step=step, loss=0.123456 / step)\n    print(f'step={step} loss=9.9', flush=True)"
    )
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 0, err
    assert shell.events("step") == []
    state = RunWatcher(shell.one).poll()
    assert (state.step, state.loss.values, state.finished["steps"]) == (2, [0.123456, 0.061728], 2)


def test_evaluations_that_a_hand_written_loop_only_prints_are_read(shell: Shell) -> None:
    """It tells its steps with runner.log, and prints what an epoch came to: at the step that it told last."""
    shell.script(
        "import runner, time\nfor step in (1, 2, 3):\n    runner.log(step=step, loss=1 / step)\n"
        "print('Epoch 1/2: train_loss=0.6 val_loss=0.5 val_acc=0.75', flush=True)\ntime.sleep(0.5)\n"
        "runner.log(step=4, loss=0.1)\nrunner.log(step=4, val_acc=0.8)\n"
        "print('Epoch 2/2: train_loss=0.2 val_loss=0.4 val_acc=0.8', flush=True)"
    )
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 0, err
    state = RunWatcher(shell.one).poll()
    told = [(event.step, event.data.get("accuracy"), event.data.get("loss")) for event in state.evaluations]
    assert told == [(3, 0.75, 0.5), (4, 0.8, None)], "once it tells them itself, its print is no second one"


def test_the_sampler_looks_at_the_python_below_a_shell(shell: Shell) -> None:
    shell.script(
        "import time\ndef hot():\n    end = time.time() + 9\n    while time.time() < end: pass\nhot()"
    )
    shell.script(f"{sys.executable} train.py; true\n", "train.sh")
    shell.run("--", "bash", "train.sh")
    sampled = [
        event for event, _ in read_events(shell.one.events / "sampler.jsonl") if event.kind == "sample-stacks"
    ]
    assert sampled, "no stacks were looked for"
    if all(event.data.get("trouble") for event in sampled):
        pytest.skip(f"no stacks can be read here: {sampled[0].data['trouble']}")
    functions = {
        frame["function"]
        for event in sampled
        for frame in event.data["frames"]
        if frame["process"] == "trainer"
    }
    assert "hot" in functions


def test_below_a_launcher_the_process_that_computes_is_the_trainer(shell: Shell) -> None:
    shell.script("import time\nend = time.time() + 30\nwhile time.time() < end: pass")
    shell.script(
        "import subprocess, sys\nprint('ready', flush=True)\nsubprocess.run([sys.executable, 'train.py'])",
        "launch.py",
    )
    process = shell.begin("--", "bash", "-c", f"{sys.executable} launch.py; true")
    wait_until(has_said(shell, "ready"))
    root = int(shell.one.trainer_pid.read_text().split()[0])
    busiest = BusiestPython(root)
    wait_until(lambda: _runs(busiest.find(), b"train.py"))
    time.sleep(0.3)
    assert _runs(busiest.find(), b"train.py"), "the launcher has only waited since the look before"
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert busiest_python(root) == root, "nothing is left of the tree"


def _runs(pid: int, words: bytes) -> bool:
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_detached_it_returns_at_once_and_the_command_goes_on(shell: Shell) -> None:
    shell.script("import time\ntime.sleep(4)\nprint('trained')")
    code, out, _ = shell.run("--detach", "--", sys.executable, "train.py")
    assert code == 0 and "doctor watch" in out and not has_said(shell, "trained")()
    wait_until(has_said(shell, "trained"))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["quickstart", "--", "python", "x.py"], id="a profile and a command"),
        pytest.param(["--retry", "2", "quickstart"], id="retry without a command"),
        pytest.param(["python", "train.py"], id="a command without dashes before it"),
        pytest.param(["--"], id="nothing after the dashes"),
        pytest.param(["--retry", "-1", "--", "python"], id="a negative count"),
    ],
)
def test_what_does_not_go_together_is_refused(shell: Shell, words: list[str]) -> None:
    code, _, err = shell.run(*words)
    assert code == 2 and err.startswith("doctor: ")


def test_watch_shows_a_supervised_command_as_json(shell: Shell) -> None:
    shell.script(TRAINS)
    shell.run("--", sys.executable, "train.py")
    out = subprocess.run(
        [sys.executable, "-m", "doctor", "watch", "one", "--json"], cwd=shell.folder, env=shell.environ,
        capture_output=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    tree = json.loads(out)
    assert (tree["status"], tree["step"], tree["last"]["loss"]) == ("completed", 5, 0.2)
