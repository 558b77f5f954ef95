"""A command that failed and is started again: what is left of the first start, from where it goes on, when it stops."""

from __future__ import annotations

import signal
import sys

from tests.launch.shell import WAITS, Shell, has_said, wait_until


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


SAVES_THEN_FAILS = """
import json, os, sys, time, zipfile
from pathlib import Path
print(sys.argv[1:], os.environ.get("DOCTOR_CHECKPOINT", "-"), flush=True)
begin = int(sys.argv[-1].rpartition("-")[2]) if len(sys.argv) > 1 else 0
for step in range(begin + 1, begin + 3):
    print(f"step={step} loss={1 / step:.3f}", flush=True)
    folder = Path("out") / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "optimizer.pt", "w") as file:
        file.writestr("data.pkl", b"x" * 100)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
if step < 6:
    (folder / "optimizer.pt").write_bytes((folder / "optimizer.pt").read_bytes()[:50])
    raise RuntimeError("the card fell off the bus")
"""


def test_it_goes_on_from_the_newest_whole_checkpoint_of_its_own(shell: Shell) -> None:
    """Each start saves two, the second of them cut: the next goes on from the first."""
    shell.script(SAVES_THEN_FAILS)
    (shell.folder / "out" / "checkpoint-900").mkdir(parents=True)
    (shell.folder / "out" / "checkpoint-900" / "model.bin").write_bytes(b"another run's")
    words = ["--retry", "9", "--resume-with", "--resume {checkpoint}", "--", sys.executable, "train.py"]
    code, out, err = shell.run(*words)
    assert code == 0, err
    begun = [line for line in out.splitlines() if line.startswith("[")]
    paths = [str(shell.folder / "out" / f"checkpoint-{step}") for step in (1, 2, 3, 4)]
    assert begun == ["[] -", *(f"['--resume', '{path}'] {path}" for path in paths)]
    words_on_stderr = " ".join(err.split())  # lines are as long as the folder's name makes them
    assert words_on_stderr.count("It goes on from ") == 4
    assert "optimizer.pt is cut short or damaged (" in words_on_stderr and "checkpoint-2)" in words_on_stderr
    fell, goes_on = (
        words_on_stderr.index(words) for words in ("the card fell off the bus", "It goes on from ")
    )
    assert fell < goes_on, "said as it comes"


def test_without_a_word_for_it_the_checkpoint_is_named_and_nothing_is_added(shell: Shell) -> None:
    shell.script(SAVES_THEN_FAILS.replace("step < 6", "os.environ['DOCTOR_RETRY'] == '0'"))
    code, out, err = shell.run("--retry", "1", "--", sys.executable, "train.py")
    assert code == 0 and f"[] {shell.folder}/out/checkpoint-1" in out
    assert "whether it goes on from there is up to the script" in " ".join(err.split())


def test_a_crash_loop_that_comes_no_further_stops(shell: Shell) -> None:
    shell.script("print('step=3 loss=0.5')\nraise ValueError('bad row 17')")
    code, out, err = shell.run("--retry", "50", "--", sys.executable, "train.py")
    assert code == 1 and out.count("step=3") == 3
    assert "Ended 3 times in a row in the same way" in err
    assert shell.events("run-finished")[-1].data["outcome"] == "failed"


def test_what_left_the_commands_session_is_gone_before_the_next_start(shell: Shell) -> None:
    """torchrun's ranks have sessions of their own: killing the group of the command does not reach them."""
    shell.script(
        "import os, subprocess, sys\n"
        "if os.environ['DOCTOR_RETRY'] == '0':\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "    open('left', 'w').write(str(left.pid))\n"
        "    os._exit(1)\n"
        "print('lives' if os.path.exists('/proc/' + open('left').read()) else 'gone')\n"
    )
    code, out, _ = shell.run("--retry", "1", "--", sys.executable, "train.py")
    assert (code, out) == (0, "gone\n")


def test_a_run_that_fails_names_the_checkpoint_to_go_on_from(shell: Shell) -> None:
    shell.script(SAVES_THEN_FAILS)
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert (
        code == 1
        and "The newest whole checkpoint of this run is" in err
        and "checkpoint-1." in "".join(err.split())
    )


def test_a_process_that_overwrote_its_environment_is_gone_before_the_next_start(shell: Shell) -> None:
    """setproctitle writes over the variables by which the others are known; it is still of the command's group."""
    shell.script(
        "import os, subprocess, sys\n"
        "if os.environ['DOCTOR_RETRY'] == '0':\n"
        "    left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], env={})\n"
        "    open('left', 'w').write(str(left.pid))\n"
        "    os._exit(1)\n"
        "print('lives' if os.path.exists('/proc/' + open('left').read()) else 'gone')\n"
    )
    code, out, _ = shell.run("--retry", "1", "--", sys.executable, "train.py")
    assert (code, out) == (0, "gone\n")
