"""A command of the user's own under ``doctor run -- COMMAND``: real processes, from the command line to the last word."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor.ended import Ended, notes_of
from doctor.launch import LaunchError
from doctor.probes.cgroup import parse_cgroup
from doctor.probes.trainer_of import BusiestPython, busiest_python
from doctor.running import resume
from doctor.trainer_pid import trainer_alive
from doctor.watching import RunWatcher, summarise
from runner.command_plan import decode_any, decode_command
from runner.events import RunEvent, read_events
from runner.plan import PlanError, decode_plan
from runner.rundir import RunDir

ROOT = Path(__file__).parent.parent.parent
TRAINS = """
import os, sys, time
for step in range(1, 6):
    print(f"step={step} loss={1 / step:.4f} lr=0.001")
print("step=5 val_loss=0.5 val_accuracy=0.75")
"""
WAITS = """
import signal, sys, time
{handler}
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
"""


class Shell:
    """Somebody at a prompt in ``folder``; every process begun here is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if name not in ("OMP_NUM_THREADS", "PYTHONHASHSEED")
        }
        self.environ |= {"PYTHONPATH": str(ROOT), "DOCTOR_LANG": "en", "NO_COLOR": "1"}
        self.begun: list[subprocess.Popen[bytes]] = []

    def script(self, code: str, name: str = "train.py") -> Path:
        path = self.folder / name
        path.write_text(code)
        return path

    def begin(self, *words: str, **popen: Any) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "doctor", "run", "--run-dir", "one", *words]
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen(argv, cwd=self.folder, env=self.environ, **popen)
        self.begun.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.begin(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out.decode(), err.decode()

    @property
    def one(self) -> RunDir:
        return RunDir(self.folder / "one")

    def events(self, kind: str) -> list[RunEvent]:
        return [
            event for event, _ in read_events(self.one.events / "trainer-log.jsonl") if event.kind == kind
        ]

    def notes(self) -> list[str]:
        return [event.data["text"]["msgid"] for event in self.events("note")]

    def close(self) -> None:
        for pid_file in (self.one.supervisor_pid, self.one.trainer_pid):
            if pid_file.exists():
                end(int(pid_file.read_text().split()[0]))
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            process.wait(10)


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def wait_until(true: Callable[[], object], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def has_said(shell: Shell, words: str) -> Callable[[], bool]:
    return lambda: shell.one.trainer_log.exists() and words in shell.one.trainer_log.read_text()


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


# -- failures ----------------------------------------------------------------------------------------------------
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB"


def test_a_cuda_out_of_memory_is_explained(shell: Shell) -> None:
    shell.script(
        f"import sys\nprint('step=1 loss=0.5')\nprint({OOM!r}, file=sys.stderr)\nraise SystemExit(1)"
    )
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 1 and "The card's memory did not suffice for 2.00 GiB more." in err
    note = next(event for event in shell.events("note") if event.data.get("explains") == "cuda-oom")
    assert (note.data["level"], note.data["line_number"]) == ("fail", 2)
    assert RunWatcher(shell.one).poll().finished["outcome"] == "failed"


def test_an_unknown_failure_keeps_its_last_error_line(shell: Shell) -> None:
    shell.script("class Odd(Exception): pass\nraise Odd('the moon is full')")
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 1 and "the moon is full" in err


def test_a_script_that_kills_itself_is_told_from_one_killed_for_memory(shell: Shell) -> None:
    shell.script("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    code, _, _ = shell.run("--", sys.executable, "train.py")
    assert code == 137
    assert any(note.startswith("Ended by SIGKILL") for note in shell.notes())
    assert not any("for memory while the command ran" in note for note in shell.notes())


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param(
            Ended(-9, 3, 4, memory_limit="16.0 GiB"),
            "The kernel killed {count} process(es)",
            id="the counter moved",
        ),
        pytest.param(
            Ended(1, 3, 5),
            "The kernel killed {count} process(es)",
            id="a rank was killed, the launcher exits 1",
        ),
        pytest.param(Ended(-9, 3, 3), "Ended by SIGKILL from outside", id="the counter did not move"),
        pytest.param(
            Ended(137, 0, 0), "Ended with status 137: what it ran was ended by SIGKILL", id="under a shell"
        ),
        pytest.param(
            Ended(-9, None, None), "Ended by SIGKILL. Whether for memory cannot be seen", id="nobody counts"
        ),
        pytest.param(Ended(-11, 0, 0), "Ended by the signal {name}.", id="a crash in native code"),
        pytest.param(Ended(1, 0, 0), "Ended with status {code}; no error", id="no word in the log"),
    ],
)
def test_how_a_command_ended_is_told_by_signal_and_counters(ended: Ended, expected: str) -> None:
    notes = list(notes_of(ended, "hello\n", 0, None))
    assert notes[0].text.msgid.startswith(expected)


def memory_group(limit_bytes: int) -> Path | None:
    """Make a control group of version 1 below our own, with a memory limit; None where that is not permitted."""
    groups = parse_cgroup(Path("/proc/self/cgroup").read_text())
    group = (
        Path("/sys/fs/cgroup/memory") / groups.get("memory", "/").lstrip("/") / f"doctor-test-{os.getpid()}"
    )
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    except OSError:
        return None
    return group


def test_a_command_killed_for_memory_is_recognised_by_the_kernels_counter(shell: Shell) -> None:
    group = memory_group(400 << 20)
    if group is None:
        pytest.skip("no memory group can be made here")
    try:
        shell.script(
            "print('step=1 loss=0.5', flush=True)\nhog = []\nwhile True: hog.append(bytearray(8 << 20))"
        )
        process = shell.begin(
            "--",
            sys.executable,
            "train.py",
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )
        _, err = process.communicate(timeout=120)
        assert process.returncode == 137, err.decode()
        assert "killed 1 process(es) of this container for memory" in err.decode() and "400" in err.decode()
    finally:
        shell.close()
        wait_until(lambda: not (group / "cgroup.procs").read_text().split())
        group.rmdir()


def test_the_explanation_is_of_this_start_alone(shell: Shell) -> None:
    shell.script(
        f"import os\nif os.environ['DOCTOR_RETRY'] == '0':\n    print({OOM!r})\n    raise SystemExit(1)\nraise ValueError('second')"
    )
    shell.run("--retry", "1", "--", sys.executable, "train.py")
    lines = [event.data.get("explains") or event.data["text"]["msgid"] for event in shell.events("note")]
    assert lines.count("cuda-oom") == 1


# -- retry -------------------------------------------------------------------------------------------------------
def test_a_failure_is_tried_again_and_said(shell: Shell) -> None:
    shell.script(
        "import os\nprint('try', os.environ['DOCTOR_RETRY'], flush=True)\nraise SystemExit(0 if os.environ['DOCTOR_RETRY'] == '1' else 5)"
    )
    code, out, _ = shell.run("--retry", "3", "--", sys.executable, "train.py")
    assert (code, out) == (0, "try 0\ntry 1\n")
    assert [event.data["attempt"] for event in shell.events("run-started")] == [0, 1]
    assert sum("started again" in note for note in shell.notes()) == 1
    assert [event.data["outcome"] for event in shell.events("run-finished")] == ["completed"]


def test_what_a_failed_start_left_behind_is_gone_before_the_next(shell: Shell) -> None:
    shell.script(
        "import os, subprocess, sys\n"
        "if os.environ['DOCTOR_RETRY'] == '0':\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "    open('left', 'w').write(str(left.pid))\n"
        "    os._exit(1)\n"
        "print('lives' if os.path.exists('/proc/' + open('left').read()) else 'gone')\n"
    )
    code, out, _ = shell.run("--retry", "1", "--", sys.executable, "train.py")
    assert (code, out) == (0, "gone\n")


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


def test_a_stop_by_hand_is_not_tried_again(shell: Shell) -> None:
    shell.script(WAITS.format(handler=""))
    process = shell.begin(
        "--retry", "3", "--on-finish", "touch finished", "--countdown", "0", "--", sys.executable, "train.py"
    )
    wait_until(has_said(shell, "ready"))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert len(shell.events("run-started")) == 1
    assert shell.events("run-finished")[-1].data["outcome"] == "interrupted"
    assert not (shell.folder / "finished").exists()


# -- stopping ----------------------------------------------------------------------------------------------------
SAVES = "signal.signal(signal.{name}, lambda *_: (print('saved', flush=True), sys.exit(7)))"


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
def test_a_signal_before_the_supervisor_stands_reaches_the_command_all_the_same(
    shell: Shell, name: str, detach: list[str]
) -> None:
    shell.script(WAITS.format(handler=""))
    process = shell.begin(*detach, "--", sys.executable, "train.py")
    wait_until(shell.one.plan.exists)
    assert not shell.one.supervisor_pid.exists(), "too late to test anything"
    process.send_signal(getattr(signal, name))
    assert process.wait(60) == 128 + getattr(signal, name)
    (end,) = shell.events("run-finished")
    assert end.data["outcome"] == "interrupted" and trainer_alive(shell.one) is False


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


# -- on finish ---------------------------------------------------------------------------------------------------
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


def read_until(terminal: int, words: str, seconds: float = 30.0) -> str:
    """Return what a terminal shows up to ``words``."""
    seen = b""
    limit = time.monotonic() + seconds
    while words.encode() not in seen:
        assert time.monotonic() < limit, seen.decode("utf-8", "replace")
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    return seen.decode("utf-8", "replace")


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
